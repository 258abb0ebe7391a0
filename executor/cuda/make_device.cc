// Combines the real driver with all kernels. Tested in tests/gpu.
#include "executor/cuda/make_device.h"

#include "executor/cuda/device.h"
#include "executor/cuda/kernels.h"
#include "executor/cuda/measure_machine.h"
#include "executor/cuda/runtime_driver.h"

namespace loadline::executor {
namespace {

CudaDeviceOptions OptionsFor(int index) {
  return {.index = index, .prepare = PrepareCudaKernel};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int index) {
  return CudaDevice::Create(cuda::RuntimeDriver(), OptionsFor(index));
}

absl::StatusOr<MeasuredMachine> MeasureCuda(int index) {
  return MeasureCudaMachine(cuda::RuntimeDriver(),
                            {.device = OptionsFor(index)});
}

absl::Status MeasureCudaCopies(planner::Machine& machine, int index) {
  return MeasureCudaCopies(cuda::RuntimeDriver(), {.device = OptionsFor(index)},
                           machine);
}

}  // namespace loadline::executor
