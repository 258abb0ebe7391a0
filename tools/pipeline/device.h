// The devices that a training step can be planned for and run on.
#ifndef LOADLINE_TOOLS_PIPELINE_DEVICE_H_
#define LOADLINE_TOOLS_PIPELINE_DEVICE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/measure/measured_machine.h"
#include "planner/problem/machine.h"
#include "tools/cli/device_names.h"

namespace loadline::tools {

// In all of these, `device` is a name of tools/cli/device_names.h.

// Where the CPU copies to unless --host-store says so: the first of $TMPDIR,
// /var/tmp and /tmp that is a folder on a disk and can be written to. A file
// system in RAM is none: a copy there would free no memory. "": there is none.
std::string HostStoreFolder();

// Makes the device, without an arena. On the CPU, what is copied out goes to a
// file: a new one at `host_store`, or if that is a folder or empty, a file
// without a name there or in HostStoreFolder(). An arena with host bytes is a
// FailedPrecondition without such a folder. Unavailable: no GPU, or a build
// without CUDA. InvalidArgument: a `host_store` in RAM, or on another device.
absl::StatusOr<std::unique_ptr<executor::Device>> MakeDevice(
    const std::string& device, const std::string& host_store = "");

// Machine::provisional of a profile that was measured while the disk was full.
inline constexpr char kNoHostStore[] = "no host store";

// Measures the device's whole profile; takes some seconds. The CPU's has no
// copies without a HostStoreFolder(). On the CPU, measuring takes at most
// `most_bytes` of memory (but 17 MiB in any case); a profile measured in fewer
// bytes than wanted is provisional, and so is one whose HostStoreFolder() had
// no room, which has no copies either.
absl::StatusOr<executor::MeasuredMachine> MeasureDevice(
    const std::string& device,
    int64_t most_bytes = std::numeric_limits<int64_t>::max());

// Whether MeasureDevice within these bytes gives a profile that is not
// provisional.
bool CanMeasureFully(int64_t most_bytes);

// Measures the copy figures of a profile again; other fields are unchanged.
absl::Status MeasureCopiesOf(const std::string& device,
                             planner::Machine& machine);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_DEVICE_H_
