// Replaces make_device.cc in builds without the CUDA Toolkit.
#include "executor/cuda/make_device.h"

namespace loadline::executor {
namespace {

absl::Status NoCuda() {
  return absl::UnavailableError(
      "this build has no CUDA: build with LOADLINE_CUDA=on (it takes the CUDA "
      "Toolkit and cuDNN 9), or run without --device cuda");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int) { return NoCuda(); }

absl::StatusOr<MeasuredMachine> MeasureCuda(int) { return NoCuda(); }

absl::Status MeasureCudaCopies(planner::Machine&, int) { return NoCuda(); }

}  // namespace loadline::executor
