// The CUDA device that the command uses: the real driver and all kernels.
#ifndef LOADLINE_EXECUTOR_CUDA_MAKE_DEVICE_H_
#define LOADLINE_EXECUTOR_CUDA_MAKE_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/measure/measured_machine.h"

namespace loadline::executor {

// GPU `index` of those visible to the process. Unavailable, saying what to do:
// no such GPU, or the program was built without CUDA.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int index = 0);

// Measures that GPU (measure_machine.h).
absl::StatusOr<MeasuredMachine> MeasureCuda(int index = 0);
absl::Status MeasureCudaCopies(planner::Machine& machine, int index = 0);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CUDA_MAKE_DEVICE_H_
