// Where the parts of a workspace begin.
#ifndef LOADLINE_EXECUTOR_ALIGN_UP_H_
#define LOADLINE_EXECUTOR_ALIGN_UP_H_

#include <cstdint>

namespace loadline::executor {

// What plans align buffers to.
inline constexpr int64_t kBufferAlignment = 256;

// The next multiple of `alignment` from `bytes` on.
constexpr int64_t AlignUp(int64_t bytes, int64_t alignment = kBufferAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_ALIGN_UP_H_
