// A lock between processes, for files that several of them change.
#ifndef LOADLINE_PLANNER_BASE_FILE_LOCK_H_
#define LOADLINE_PLANNER_BASE_FILE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace loadline::planner {

// Held from Acquire, which waits for it, until the object or the process ends.
// The lock is on PATH.lock, which stays: PATH itself may be replaced meanwhile.
// It orders threads of one process too. InvalidArgument if that file cannot be
// created or locked.
class FileLock {
 public:
  static absl::StatusOr<FileLock> Acquire(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_FILE_LOCK_H_
