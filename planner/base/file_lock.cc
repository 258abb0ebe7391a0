// flock: the system releases it however the process ends. Tested in
// tests/tools/pipeline/machine_profile_test.cc.
#include "planner/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace loadline::planner {

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  const std::string name = absl::StrCat(path, ".lock");
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) {
    int result = 0;
    do {
      result = flock(fd, LOCK_EX);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return FileLock(fd);
  }
  const absl::Status status = absl::InvalidArgumentError(
      absl::StrCat("locking ", name, ": ", std::strerror(errno)));
  if (fd >= 0) close(fd);
  return status;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace loadline::planner
