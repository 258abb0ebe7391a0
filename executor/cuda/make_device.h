// The CUDA device as the command has it: the real driver and every kernel.
#ifndef LOADLINE_EXECUTOR_CUDA_MAKE_DEVICE_H_
#define LOADLINE_EXECUTOR_CUDA_MAKE_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/measure/measured_machine.h"

namespace loadline::executor {

// GPU `index` of those that the process sees. Unavailable, with what to do:
// there is none, or the program was built without CUDA.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int index = 0);

// That GPU, measured (doctor.h).
absl::StatusOr<MeasuredMachine> MeasureCuda(int index = 0);
absl::Status MeasureCudaCopies(planner::Machine& machine, int index = 0);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CUDA_MAKE_DEVICE_H_
