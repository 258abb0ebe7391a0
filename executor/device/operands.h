// Checks the regions of a command and turns them into addresses.
#ifndef LOADLINE_EXECUTOR_DEVICE_OPERANDS_H_
#define LOADLINE_EXECUTOR_DEVICE_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "executor/device/device.h"
#include "executor/device/kernel.h"

namespace loadline::executor {

// OutOfRange unless every region lies inside the arena, the launch has no more
// operands than ArenaSpec::max_operands, and its workspace is as large as the
// kernel requires.
absl::Status CheckLaunch(const LaunchArgs& args, const ArenaSpec& spec);

// InvalidArgument: a copy on the compute lane. OutOfRange: outside arena or
// host store.
absl::Status CheckCopy(const CopyArgs& args, const ArenaSpec& spec);

// InvalidArgument: a fill of the host store on the compute lane. OutOfRange:
// outside arena or host store.
absl::Status CheckFill(Lane lane, Space space, const Region& region,
                       const ArenaSpec& spec);

// OutOfRange: outside the arena, or more than kMostCheckBytes.
absl::Status CheckCheck(const CheckArgs& args, const ArenaSpec& spec);

// Holds the addresses of one launch; allocates only when constructed.
class Operands {
 public:
  explicit Operands(int32_t most = 0) : inputs_(most), outputs_(most) {}

  // Addresses of a launch that CheckLaunch accepts, in an arena at `base`.
  // Valid until the next call.
  KernelArgs Resolve(const LaunchArgs& args, std::byte* base);

 private:
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_OPERANDS_H_
