// The size that the system reports is only a hint: a file may grow, and a pipe
// has none. Tested in tests/planner/base/read_file_test.cc.
#include "planner/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/base/units.h"

namespace loadline::planner {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 16;

absl::Status TooLarge(const std::string& path, int64_t most_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, ": larger than ", FormatBytes(most_bytes),
                   ", the most that is read of such a file"));
}

absl::Status SystemError(const std::string& path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  return error == ENOENT || error == ENOTDIR
             ? absl::NotFoundError(absl::StrCat(path, ": no such file"))
             : absl::UnavailableError(text);
}

absl::Status CheckKind(const std::string& path, const struct stat& info,
                       int64_t most_bytes) {
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder"));
  }
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a device"));
  }
  return S_ISREG(info.st_mode) && info.st_size > most_bytes
             ? TooLarge(path, most_bytes)
             : absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path,
                                    int64_t most_bytes, int64_t expected) {
  std::string text;
  text.reserve(static_cast<size_t>(expected));
  while (true) {
    const size_t size = text.size();
    text.resize(size + kChunkBytes);
    const ssize_t count = read(fd, text.data() + size, kChunkBytes);
    text.resize(size + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path, errno);
    if (count == 0) return text;
    if (static_cast<int64_t>(text.size()) > most_bytes) {
      return TooLarge(path, most_bytes);
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          int64_t most_bytes) {
  struct stat info;
  // Before it is opened: opening a device can have effects.
  if (stat(path.c_str(), &info) != 0) return SystemError(path, errno);
  LOADLINE_RETURN_IF_ERROR(CheckKind(path, info, most_bytes));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, errno);
  absl::StatusOr<std::string> text =
      ReadAll(fd, path, most_bytes,
              S_ISREG(info.st_mode) ? static_cast<int64_t>(info.st_size) : 0);
  close(fd);
  return text;
}

}  // namespace loadline::planner
