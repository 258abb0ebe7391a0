// Measures this machine.
#ifndef LOADLINE_EXECUTOR_CPU_DOCTOR_H_
#define LOADLINE_EXECUTOR_CPU_DOCTOR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "planner/machine.h"

namespace loadline::executor {

struct DoctorOptions {
  std::string name = "this-cpu";
  // As in CpuDeviceOptions: the lanes are measured against this store.
  std::string host_store_path;
  // Bytes of each buffer that is streamed or copied; four of them are held.
  int64_t buffer_bytes = int64_t{64} << 20;
};

// A profile of this machine for CPU plans: the rate of f32 matrix products
// (oneDNN), of memory (a triad on all threads), of the CPU device's copy lanes
// alone and together, their latency, the cost of a launch, and the sizes of
// memory. The effort is fixed, about two seconds. Copies between two places in
// the same memory are honest only as a model of an accelerator's; their rates
// are those of this device.
absl::StatusOr<planner::Machine> MeasureMachine(
    const DoctorOptions& options = {});

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_DOCTOR_H_
