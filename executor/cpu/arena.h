// The arena: one mapping, guarded on both sides, that a step never leaves.
#ifndef LOADLINE_EXECUTOR_CPU_ARENA_H_
#define LOADLINE_EXECUTOR_CPU_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "planner/base/align.h"

namespace loadline::executor {

// `bytes()` bytes at `base()`, 256-byte aligned and zero at first. The mapping
// is rounded up to whole pages with an inaccessible page on either side; the
// arena's end lies against the upper guard (less than 256 bytes from it where
// its size is no multiple of 256), so that an overrun faults at once.
class Arena {
 public:
  static constexpr int64_t kAlignment = planner::kBufferAlignmentBytes;

  // ResourceExhausted where the machine has no such room.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* base() const { return base_; }
  int64_t bytes() const { return bytes_; }
  // Whole pages between the guards.
  int64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  Arena() = default;

  void* mapping_ = nullptr;
  int64_t mapping_bytes_ = 0;  // guards included
  int64_t mapped_bytes_ = 0;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_ARENA_H_
