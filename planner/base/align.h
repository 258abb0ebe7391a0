// Rounding sizes and addresses up to an alignment.
#ifndef LOADLINE_PLANNER_BASE_ALIGN_H_
#define LOADLINE_PLANNER_BASE_ALIGN_H_

#include <cstdint>

namespace loadline::planner {

// The alignment of buffers in an arena, unless a problem says otherwise.
inline constexpr int64_t kBufferAlignmentBytes = 256;

// The smallest multiple of `alignment` that is at least `bytes`. Requires
// 0 <= bytes, 0 < alignment, and that the result fits int64_t.
constexpr int64_t AlignUp(int64_t bytes,
                          int64_t alignment = kBufferAlignmentBytes) {
  const int64_t rest = bytes % alignment;
  return rest == 0 ? bytes : bytes + (alignment - rest);
}

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_ALIGN_H_
