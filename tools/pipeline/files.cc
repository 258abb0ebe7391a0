// Whole files. Tested by tests/tools/pipeline/files_test.cc.
#include "tools/pipeline/files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "planner/base/atomic_file.h"
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
  return planner::WriteWholeFile(path, text);
}

}  // namespace loadline::tools
