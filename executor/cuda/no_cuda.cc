// In place of make_device.cc where there was no toolkit to build with.
#include "executor/cuda/make_device.h"

namespace loadline::executor {

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int) {
  return absl::UnavailableError(
      "this loadline was built without CUDA (install the CUDA Toolkit and "
      "cuDNN 9 and build again, or use --device cpu)");
}

}  // namespace loadline::executor
