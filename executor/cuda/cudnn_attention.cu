// cuDNN's fused attention, for bf16 only. Our own kernels handle f32, masks,
// and dropout, for which cuDNN draws other random bits. cuDNN's statistic is
// the same as ours, so forward and backward may use different implementations.
//
// Our kernels may write their result over q. cuDNN does not document this, so q
// is copied into the workspace first; the workspace for it is always planned.
// Tested in tests/conformance/ with a plain attention instead of the library,
// and with the library in tests/gpu.
#include <cuda_runtime.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "executor/cuda/cudnn.h"
#include "executor/cuda/cudnn_attention.h"
#include "executor/cuda/launch.h"
#include "executor/device/algorithms.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr char kOwn[] = "own";
constexpr char kCudnn[] = "cudnn ";

AttentionSpec SpecOf(const AttentionLayout& a, bool backward) {
  return {.backward = backward,
          .batch = a.heads / a.interleave,
          .heads = a.interleave,
          .rows = a.rows,
          .columns = a.columns,
          .width = a.width,
          .value_width = a.value_width,
          .scale = a.scale,
          .causal = a.causal};
}

std::vector<std::string> AlgorithmsFor(const AttentionSpec& spec) {
  std::vector<std::string> names;
  for (const std::string& engine : CudnnAlgorithms(spec)) {
    names.push_back(absl::StrCat(kCudnn, engine));
  }
  names.push_back(kOwn);
  return names;
}

}  // namespace

PreparedKernel PrepareCudnnAttention(const Prepare& p, const AttentionLayout& a,
                                     bool backward) {
  const std::string wanted = p.attributes().String(kAlgorithmAttribute, "");
  if (wanted == kOwn || p.output(0).dtype != DType::kBF16 || a.masked ||
      a.dropout.threshold != 0) {
    return absl::UnimplementedError("not for cuDNN");
  }
  AttentionSpec spec = SpecOf(a, backward);
  spec.algorithm = std::string(absl::StripPrefix(wanted, kCudnn));
  LOADLINE_ASSIGN_OR_RETURN(const std::shared_ptr<CudnnOperation> operation,
                            MakeCudnn(spec));
  const size_t q = backward ? 1 : 0;
  const int64_t q_bytes = p.input(static_cast<int>(q)).bytes();
  const int64_t rest_at = planner::AlignUp(q_bytes);
  return MakeKernel(
      [operation, q, q_bytes, rest_at](
          const KernelArgs& args,
          const LaunchContext& context) -> absl::Status {
        std::vector<const std::byte*> tensors(args.inputs.begin(),
                                              args.inputs.end());
        tensors.resize(q == 0 ? 3 : 6);  // without the absent mask
        if (tensors[q] == args.outputs[0]) {
          LOADLINE_RETURN_IF_ERROR(CudaStatus(
              cudaMemcpyAsync(args.workspace, tensors[q],
                              static_cast<size_t>(q_bytes),
                              cudaMemcpyDeviceToDevice, context.stream),
              "copying q"));
          tensors[q] = args.workspace;
        }
        tensors.insert(tensors.end(), args.outputs.begin(), args.outputs.end());
        return operation->Enqueue(tensors, args.workspace + rest_at,
                                  context.stream);
      },
      rest_at + operation->workspace_bytes(), /*describe=*/nullptr,
      [spec] { return AlgorithmsFor(spec); });
}

}  // namespace loadline::executor::cuda
