// Connects tests, which include no CUDA header, with emulated kernels. Used by
// tests/conformance/cuda_kernel_conformance_test.cc.
#include "tests/cuda_emulator/kernels.h"

#include "executor/cuda/group_kernel.h"
#include "executor/cuda/kernels.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/sort.h"
#include "planner/base/status_macros.h"

namespace cuda_emulator {

namespace cuda = loadline::executor::cuda;

bool HasKernel(absl::string_view op) {
  return loadline::executor::HasCudaKernel(op);
}

absl::StatusOr<std::unique_ptr<loadline::executor::Kernel>> PrepareKernel(
    const loadline::models::Graph& graph, const loadline::models::Node& node) {
  return loadline::executor::PrepareCudaKernel(graph, node);
}

absl::Status RunKernel(loadline::executor::Kernel& kernel,
                       const loadline::executor::KernelArgs& args) {
  auto& cuda_kernel = static_cast<cuda::CudaKernel&>(kernel);
  cuda::DataErrorWord word = cuda::kNoDataError;
  LOADLINE_RETURN_IF_ERROR(cuda_kernel.Enqueue(args, {nullptr, &word, 5}));
  if (word == cuda::kNoDataError) return absl::OkStatus();
  const cuda::DataError error = cuda::UnpackDataError(word);
  if (error.launch != 5) return absl::InternalError("not the launch's number");
  return cuda_kernel.DescribeDataError(error.position);
}

absl::Status RunGroup(const std::vector<loadline::executor::Kernel*>& kernels,
                      const std::vector<loadline::executor::KernelArgs>& args) {
  std::vector<cuda::GroupKernel::Member> members;
  for (size_t i = 0; i < kernels.size(); ++i) {
    auto* kernel = dynamic_cast<cuda::GroupKernel*>(kernels[i]);
    if (kernel == nullptr || (i > 0 && !members[0].kernel->Joins(*kernel)) ||
        static_cast<int64_t>(i) >= kernel->most_members()) {
      return absl::InvalidArgumentError("not one group");
    }
    members.push_back({kernel, args[i]});
  }
  cuda::DataErrorWord word = cuda::kNoDataError;
  return members[0].kernel->EnqueueGroup(members, {nullptr, &word, 0});
}

absl::StatusOr<std::vector<uint32_t>> SortPositions(
    const std::vector<uint32_t>& keys, int64_t bound) {
  const auto count = static_cast<int64_t>(keys.size());
  const cuda::StableSort sort(count, bound);
  std::vector<std::byte> workspace(static_cast<size_t>(sort.workspace_bytes()));
  for (size_t i = 0; i < keys.size(); ++i) {
    sort.Unsorted(workspace.data())[i] = {keys[i], static_cast<uint32_t>(i)};
  }
  LOADLINE_RETURN_IF_ERROR(sort.Enqueue(workspace.data(), nullptr));
  std::vector<uint32_t> positions;
  for (size_t i = 0; i < keys.size(); ++i) {
    positions.push_back(sort.Sorted(workspace.data())[i].position);
  }
  return positions;
}

int64_t DivideOnDevice(int64_t n, int64_t divisor) {
  return cuda::Divider(divisor).Divide(n);
}

}  // namespace cuda_emulator
