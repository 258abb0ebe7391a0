// The devices that a training step can be planned for and run on.
#ifndef LOADLINE_TOOLS_PIPELINE_DEVICE_H_
#define LOADLINE_TOOLS_PIPELINE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/measure/measured_machine.h"
#include "planner/problem/machine.h"
#include "tools/cli/device_names.h"

namespace loadline::tools {

// Makes the device that --device names, without an arena. `host_store`: file
// for offloaded values; empty: memory. Unavailable: no GPU, or a build without
// CUDA. InvalidArgument: a GPU with a file as host store.
absl::StatusOr<std::unique_ptr<executor::Device>> MakeDevice(
    const std::string& device, const std::string& host_store = "");

// Measures the device's whole profile; takes some seconds.
absl::StatusOr<executor::MeasuredMachine> MeasureDevice(
    const std::string& device);

// Measures the copy figures of a profile again; other fields are unchanged.
absl::Status MeasureCopiesOf(const std::string& device,
                             planner::Machine& machine);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_DEVICE_H_
