// Measures this machine for plans on the CPU.
#ifndef LOADLINE_EXECUTOR_CPU_MEASURE_MACHINE_H_
#define LOADLINE_EXECUTOR_CPU_MEASURE_MACHINE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "executor/cpu/host_store.h"
#include "executor/measure/copy_benchmark.h"
#include "planner/problem/machine.h"

namespace loadline::executor {

inline constexpr int64_t kWantedBufferBytes = int64_t{64} << 20;

struct DoctorOptions {
  std::string name = "this-cpu";
  // As in CpuDeviceOptions: copies are measured with this store, which holds
  // at most `host_bytes` (0: the machine's memory).
  HostStoreMaker make_store = MakeMemoryStore;
  int64_t host_bytes = 0;
  // Size of each buffer that is streamed or copied. Those of the default are
  // too large for most caches; smaller ones show faster copies and memory.
  int64_t buffer_bytes = kWantedBufferBytes;
  int64_t meter_ns = kMeterNs;  // least duration of each measurement
};

// Size of the buffers with which measuring takes `most_bytes`: at most the
// wanted size, at least 1 MiB. With a store on a disk, measuring takes the
// buffers and 12 MiB more.
int64_t BufferBytesWithin(int64_t most_bytes);

// A profile of this machine for CPU plans: rates of f32 matrix products
// (oneDNN) and of memory (a triad on all threads), rates of the CPU device's
// copy lanes alone and together, their latency, the cost of a launch, and
// memory sizes. Takes about three seconds. Copies use the same cores and memory
// as compute: where overlapping them gains little, the profile says that copies
// stop compute.
absl::StatusOr<planner::Machine> MeasureMachine(
    const DoctorOptions& options = {});

// Measures the rates and the latency of copies again, overlapping with compute
// or not as the profile says, and leaves the other fields. Takes about 1.5
// seconds.
absl::Status MeasureCopies(const DoctorOptions& options,
                           planner::Machine& machine);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_MEASURE_MACHINE_H_
