// The arena of the CPU device: one mapping with a guard page on either side.
#ifndef LOADLINE_EXECUTOR_CPU_ARENA_H_
#define LOADLINE_EXECUTOR_CPU_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "planner/base/align.h"

namespace loadline::executor {

// `bytes()` bytes at `base()`, 256-byte aligned, initially zero. The mapping is
// rounded up to whole pages, with an inaccessible page on either side. The
// arena ends at the upper guard (less than 256 bytes before it if its size is
// no multiple of 256), so that an overrun faults at once.
class Arena {
 public:
  static constexpr int64_t kAlignment = planner::kBufferAlignmentBytes;

  // ResourceExhausted: the machine has too little memory.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* base() const { return base_; }
  int64_t bytes() const { return bytes_; }
  // Bytes of the accessible pages between the guards.
  int64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  Arena() = default;

  void* mapping_ = nullptr;
  int64_t mapping_bytes_ = 0;  // including the guards
  int64_t mapped_bytes_ = 0;
  std::byte* base_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_ARENA_H_
