// From the regions of a launch to the addresses a kernel gets.
#ifndef LOADLINE_EXECUTOR_DEVICE_OPERANDS_H_
#define LOADLINE_EXECUTOR_DEVICE_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "executor/device/device.h"
#include "executor/device/kernel.h"

namespace loadline::executor {

// OutOfRange unless every region lies inside the arena, there are no more
// operands than were announced, and the workspace is as large as the kernel
// says.
absl::Status CheckLaunch(const LaunchArgs& args, const ArenaSpec& spec);

// InvalidArgument: on the compute lane. OutOfRange: outside arena or store.
absl::Status CheckCopy(const CopyArgs& args, const ArenaSpec& spec);

// InvalidArgument: the compute lane has no way to the host store. OutOfRange:
// outside arena or store.
absl::Status CheckFill(Lane lane, Space space, const Region& region,
                       const ArenaSpec& spec);

// OutOfRange: outside the arena, or more bytes than one check takes.
absl::Status CheckCheck(const CheckArgs& args, const ArenaSpec& spec);

// Where the addresses of one launch lie; allocates once.
class Operands {
 public:
  explicit Operands(int32_t most = 0) : inputs_(most), outputs_(most) {}

  // Of a launch that CheckLaunch accepts, in an arena at `base`. Valid until
  // the next call.
  KernelArgs Resolve(const LaunchArgs& args, std::byte* base);

 private:
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_OPERANDS_H_
