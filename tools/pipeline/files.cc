// Regular files are replaced as a whole (AtomicFile); pipes and devices, which
// cannot be replaced, are written directly. Tested by
// tests/tools/pipeline/files_test.cc.
#include "tools/pipeline/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "executor/files/atomic_file.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

absl::Status FileError(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder"));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": unreadable"));
  return std::move(text).str();
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0 ? absl::OkStatus() : FileError("stdout");
  }
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return FileError(path);
    const bool written = executor::WriteAll(fd, text.data(), text.size());
    const absl::Status status = written ? absl::OkStatus() : FileError(path);
    close(fd);
    return status;
  }
  LOADLINE_ASSIGN_OR_RETURN(const auto file,
                            executor::AtomicFile::Create(path));
  LOADLINE_RETURN_IF_ERROR(file->Write(text.data(), text.size()));
  return file->Commit();
}

}  // namespace loadline::tools
