// Write, fsync, rename, fsync the folder: after a crash at any point there is
// either the old file or the new one. The writer holds a lock on its temporary
// file, which ends with the process, so a temporary file without a lock is one
// that a killed writer left. Tested in tests/planner/base/atomic_file_test.cc.
#include "planner/base/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
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

// A temporary name is the path, this mark, and six letters or digits.
constexpr char kTemporaryMark[] = ".loadline-tmp-";
constexpr size_t kRandomLetters = 6;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a symbolic link leads, which need not exist: renaming onto the link
// would replace it. A circle of links is returned as it is.
std::string FollowLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux allows
  std::filesystem::path at = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(at, error)) return at.string();
    const std::filesystem::path target =
        std::filesystem::read_symlink(at, error);
    if (error) return path;
    at = at.parent_path() / target;
  }
  return path;
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

// Removes the file if it is a regular one whose writer is gone. Without locks,
// as on some network file systems, it stays.
void RemoveIfAbandoned(const std::string& temporary) {
  const int fd =
      open(temporary.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      flock(fd, LOCK_EX | LOCK_NB) == 0) {
    unlink(temporary.c_str());
  }
  close(fd);
}

// Removes what killed writers of `path` left.
void RemoveAbandoned(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string start =
      absl::StrCat(slash == std::string::npos ? path : path.substr(slash + 1),
                   kTemporaryMark);
  const std::string folder = FolderOf(path);
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    const absl::string_view name = entry->d_name;
    if (name.size() == start.size() + kRandomLetters &&
        name.substr(0, start.size()) == start) {
      RemoveIfAbandoned(absl::StrCat(folder, "/", name));
    }
  }
  closedir(entries);
}

// Creates the temporary file for `path` and locks it. A cleaner may have found
// it before it was locked, and removed it; then another is made. -1: errno says
// why.
int CreateLocked(const std::string& path, std::string* temporary) {
  while (true) {
    *temporary =
        absl::StrCat(path, kTemporaryMark, std::string(kRandomLetters, 'X'));
    const int fd = mkostemp(temporary->data(), O_CLOEXEC);
    if (fd < 0) return -1;
    struct stat info;
    const bool taken =
        flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && fstat(fd, &info) == 0 && info.st_nlink > 0) return fd;
    close(fd);
    unlink(temporary->c_str());
  }
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    const std::string& named_path) {
  const std::string path = FollowLinks(named_path);
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (!exists && errno == ELOOP) return PathError(path, "opening", errno);
  if (exists && !S_ISREG(info.st_mode)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return PathError(path, "opening", errno);
    return std::unique_ptr<AtomicFile>(new AtomicFile(path, "", fd));
  }
  RemoveAbandoned(path);
  std::string temporary;
  const int fd = CreateLocked(path, &temporary);
  if (fd < 0) return PathError(path, "creating", errno);
  // mkostemp makes the file private; give it a new file's usual permissions.
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, exists ? info.st_mode & 0777 : 0666 & ~mask);
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

absl::Status AtomicFile::Rewrite(size_t offset, const void* data,
                                 size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(fd_, at, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Failed("writing", written == 0 ? EIO : errno);
    at += written;
    offset += static_cast<size_t>(written);
    bytes -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (temporary_.empty()) {
    return close(std::exchange(fd_, -1)) == 0 ? absl::OkStatus()
                                              : Failed("writing", errno);
  }
  if (fsync(fd_) != 0) return Failed("writing", errno);
  // Before the file is closed: without its lock another writer of the path
  // would remove it.
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return Failed("renaming", errno);
  }
  temporary_.clear();
  if (close(std::exchange(fd_, -1)) != 0) return Failed("writing", errno);
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
