// Tested by the suite in tests/gpu.
#include "executor/cuda/make_device.h"

#include "executor/cuda/device.h"
#include "executor/cuda/doctor.h"
#include "executor/cuda/kernels.h"
#include "executor/cuda/runtime_driver.h"

namespace loadline::executor {

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int index) {
  return CudaDevice::Create(cuda::RuntimeDriver(),
                            {.index = index, .prepare = PrepareCudaKernel});
}

namespace {

CudaDoctorOptions OptionsFor(int index) {
  return {.device = {.index = index, .prepare = PrepareCudaKernel}};
}

}  // namespace

absl::StatusOr<MeasuredMachine> MeasureCuda(int index) {
  return MeasureCudaMachine(cuda::RuntimeDriver(), OptionsFor(index));
}

absl::Status MeasureCudaCopies(planner::Machine& machine, int index) {
  return MeasureCudaCopies(cuda::RuntimeDriver(), OptionsFor(index), machine);
}

}  // namespace loadline::executor
