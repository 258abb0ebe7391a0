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
  int64_t memory_bytes = int64_t{256} << 20;  // read, and as much written
  int64_t matmul_size = 4096;
  int64_t meter_ns = kMeterNs;  // least duration of each copy measurement
};

// A profile for plans on that GPU: rates of matrix products in f32 and bf16; of
// memory (an elementwise kernel); of copies of pinned memory, alone and
// together (at 1, 4, 16 and 64 MiB; the profile has the last); the copies'
// latency between two kernels and the compute time lost per copy
// (Machine::copy_overhead_ns); the cost of a launch in a graph; and memory
// sizes. `reserved_bytes` is the memory that the driver reports in use besides
// an arena once our context and libraries are loaded. It includes the rest of
// the arena's last page and the memory of other processes.
absl::StatusOr<MeasuredMachine> MeasureCudaMachine(
    cuda::Driver& driver, const CudaDoctorOptions& options);

// Measures the profile's copy figures again; other fields are unchanged.
absl::Status MeasureCudaCopies(cuda::Driver& driver,
                               const CudaDoctorOptions& options,
                               planner::Machine& machine);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CUDA_MEASURE_MACHINE_H_
