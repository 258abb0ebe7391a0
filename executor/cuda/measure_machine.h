// Measures a GPU.
#ifndef LOADLINE_EXECUTOR_CUDA_MEASURE_MACHINE_H_
#define LOADLINE_EXECUTOR_CUDA_MEASURE_MACHINE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "executor/cuda/device.h"
#include "executor/cuda/driver.h"
#include "executor/measure/copy_benchmark.h"
#include "executor/measure/measured_machine.h"

namespace loadline::executor {

struct CudaDoctorOptions {
  CudaDeviceOptions device;
  int64_t copy_bytes = int64_t{64} << 20;     // the largest copy
  int64_t memory_bytes = int64_t{256} << 20;  // read, and as many written
  int64_t matmul_size = 4096;
  int64_t meter_ns = kMeterNs;  // for each measurement of lanes, at least
};

// A profile for plans of that GPU: rates of matrix products in f32 and bf16, of
// memory (an elementwise kernel), of copies of pinned memory alone and together
// (at 1, 4, 16 and 64 MiB; the profile has the last), their latency from a
// kernel to the next, what each costs computing besides (Machine::switch_ns),
// the cost of a launch in a graph, and the sizes of memory. `reserved_bytes` is
// what the driver says is taken beside an arena once our context and libraries
// are there, the rest of the arena's last page included; what other processes
// hold counts as well.
absl::StatusOr<MeasuredMachine> MeasureCudaMachine(
    cuda::Driver& driver, const CudaDoctorOptions& options);

// What the profile says of copies once more; all else stays.
absl::Status MeasureCudaCopies(cuda::Driver& driver,
                               const CudaDoctorOptions& options,
                               planner::Machine& machine);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CUDA_MEASURE_MACHINE_H_
