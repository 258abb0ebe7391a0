// What every device shares for the commands that look for bugs: how long a
// delay lasts, and what a check has to say.
#ifndef LOADLINE_EXECUTOR_DEVICE_STRESS_COMMANDS_H_
#define LOADLINE_EXECUTOR_DEVICE_STRESS_COMMANDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "executor/device/device.h"

namespace loadline::executor {

// From (seed, turn) alone. Half are none at all; the rest are as often short as
// long: every power of two below `most_ns` is as likely as the next.
int64_t DelayNs(const DelayArgs& args);

// Of the calling thread.
void SleepNs(int64_t ns);

// OK if the bytes at `found` are what the check wants; else Internal, with the
// owner, how many differ, and where the first of them lies.
absl::Status FindDamage(const CheckArgs& args, const std::byte* found);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_STRESS_COMMANDS_H_
