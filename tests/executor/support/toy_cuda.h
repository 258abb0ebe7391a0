// The toy's training step on a CUDA device without a GPU.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_TOY_CUDA_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_TOY_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/cuda/device.h"
#include "executor/program/program.h"
#include "tests/executor/support/fake_cuda_driver.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {

// A device on `driver`, which must outlive it. `graph`: CudaDeviceOptions.
std::unique_ptr<CudaDevice> ToyCudaDevice(FakeCudaDriver& driver,
                                          bool graph = true);

// What a few steps of training gave.
struct ToyOutcome {
  std::vector<float> losses;                    // by step
  std::vector<std::vector<std::byte>> weights;  // by saved value

  bool operator==(const ToyOutcome& o) const {
    return losses == o.losses && weights == o.weights;
  }
};

inline constexpr int64_t kToySteps = 4;

// Runs kToySteps steps; the learning rate changes from step to step.
absl::StatusOr<ToyOutcome> TrainToy(const Toy& toy, const planner::Plan& plan,
                                    Device& device, LoadOptions load = {});
// The same on the CPU, with everything kept.
ToyOutcome TrainToyOnCpu(const Toy& toy);

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_TOY_CUDA_H_
