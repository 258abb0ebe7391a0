// Delays and checks that every device implements the same way, for finding
// bugs.
#ifndef LOADLINE_EXECUTOR_DEVICE_STRESS_COMMANDS_H_
#define LOADLINE_EXECUTOR_DEVICE_STRESS_COMMANDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "executor/device/device.h"

namespace loadline::executor {

// Depends on (seed, turn) only. Half of the delays are zero; the others are
// uniform within a power of two below `most_ns`, every power equally likely.
int64_t DelayNs(const DelayArgs& args);

// Blocks the calling thread.
void SleepNs(int64_t ns);

// OK if the bytes at `found` are as the check requires. Otherwise Internal:
// names the owner, the number of wrong bytes and the position of the first.
absl::Status FindDamage(const CheckArgs& args, const std::byte* found);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_STRESS_COMMANDS_H_
