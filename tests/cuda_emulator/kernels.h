// The CUDA executor's own kernels, compiled for the emulator.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_KERNELS_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_KERNELS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "executor/device/kernel.h"
#include "models/graph.h"

namespace cuda_emulator {

bool HasKernel(absl::string_view op);
// As executor::PrepareCudaKernel.
absl::StatusOr<std::unique_ptr<loadline::executor::Kernel>> PrepareKernel(
    const loadline::models::Graph& graph, const loadline::models::Node& node);
// Enqueues a prepared kernel and reports its data error, as a device does.
absl::Status RunKernel(loadline::executor::Kernel& kernel,
                       const loadline::executor::KernelArgs& args);

// Runs kernels of one group (group_kernel.h) as one launch, each with its
// arguments. InvalidArgument: one does not join the first.
absl::Status RunGroup(const std::vector<loadline::executor::Kernel*>& kernels,
                      const std::vector<loadline::executor::KernelArgs>& args);

// The positions of `keys` in stable order of the keys, by StableSort.
absl::StatusOr<std::vector<uint32_t>> SortPositions(
    const std::vector<uint32_t>& keys, int64_t bound);

// n / divisor, computed by the kernels' Divider.
int64_t DivideOnDevice(int64_t n, int64_t divisor);

}  // namespace cuda_emulator

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_KERNELS_H_
