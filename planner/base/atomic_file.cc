// Write, fsync, rename, fsync the folder: after a crash at any point there is
// either the old file or the new one. Tested in
// tests/planner/base/atomic_file_test.cc.
#include "planner/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::planner {
namespace {

absl::Status PathError(const std::string& path, const char* doing, int error) {
  const std::string text =
      absl::StrCat(doing, " ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::InvalidArgumentError(text);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Writes all bytes to `fd`, repeating after signals and partial writes. False:
// errno says why (EIO if the file takes no bytes).
bool WriteAll(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return PathError(path, "opening", errno);
    return std::unique_ptr<AtomicFile>(new AtomicFile(path, "", fd));
  }
  std::string temporary = absl::StrCat(path, ".tmp-XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return PathError(path, "creating", errno);
  // mkostemp makes the file private; give it a new file's usual permissions.
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(path, std::move(temporary), fd));
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status AtomicFile::Failed(const char* doing, int error) const {
  return PathError(path_, doing, error);
}

absl::Status AtomicFile::Write(const void* data, size_t bytes) {
  return WriteAll(fd_, data, bytes) ? absl::OkStatus()
                                    : Failed("writing", errno);
}

absl::Status AtomicFile::Commit() {
  if (temporary_.empty()) {
    return close(std::exchange(fd_, -1)) == 0 ? absl::OkStatus()
                                              : Failed("writing", errno);
  }
  if (fsync(fd_) != 0) return Failed("writing", errno);
  const int fd = std::exchange(fd_, -1);
  if (close(fd) != 0) return Failed("writing", errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return Failed("renaming", errno);
  }
  temporary_.clear();
  const int folder =
      open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);  // not supported everywhere; the rename is done either way
    close(folder);
  }
  return absl::OkStatus();
}

absl::Status WriteWholeFile(const std::string& path, absl::string_view bytes) {
  LOADLINE_ASSIGN_OR_RETURN(const auto file, AtomicFile::Create(path));
  LOADLINE_RETURN_IF_ERROR(file->Write(bytes.data(), bytes.size()));
  return file->Commit();
}

}  // namespace loadline::planner
