// The class number that marks a target without a class: PyTorch's default for
// ignore_index. It adds nothing to a mean, and does not count in it.
#ifndef LOADLINE_EXECUTOR_DEVICE_IGNORED_TARGET_H_
#define LOADLINE_EXECUTOR_DEVICE_IGNORED_TARGET_H_

#include <cstdint>

namespace loadline::executor {

inline constexpr int64_t kIgnoredTarget = -100;

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_IGNORED_TARGET_H_
