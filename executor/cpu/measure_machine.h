// Measures this machine.
#ifndef LOADLINE_EXECUTOR_CPU_MEASURE_MACHINE_H_
#define LOADLINE_EXECUTOR_CPU_MEASURE_MACHINE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "executor/measure/copy_benchmark.h"
#include "planner/problem/machine.h"

namespace loadline::executor {

struct DoctorOptions {
  std::string name = "this-cpu";
  // As in CpuDeviceOptions: the lanes are measured against this store.
  std::string host_store_path;
  // Bytes of each buffer that is streamed or copied; four of them are held.
  int64_t buffer_bytes = int64_t{64} << 20;
  int64_t meter_ns = kMeterNs;  // for each measurement, at least
};

// A profile of this machine for CPU plans: the rate of f32 matrix products
// (oneDNN), of memory (a triad on all threads), of the CPU device's copy lanes
// alone and together, their latency, the cost of a launch, and the sizes of
// memory. It takes about three seconds. Copies use the cores and the
// memory that computing uses: where running them beside it gains little, the
// profile says that copies stop compute.
absl::StatusOr<planner::Machine> MeasureMachine(
    const DoctorOptions& options = {});

// The rates and the latency of copies once more, of the kind the profile says
// (beside computing or not); all else stays. About a second and a half.
absl::Status MeasureCopies(const DoctorOptions& options,
                           planner::Machine& machine);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_MEASURE_MACHINE_H_
