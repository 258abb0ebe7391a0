// A gradient's matrix product and the operator that a pass fused with it, run
// one after the other: same kernels, same order of sums and so the same bits as
// unfused. Fusing saves time on a GPU only. Tested in tests/conformance/.
#include <algorithm>
#include <memory>
#include <utility>

#include "executor/cpu/families.h"
#include "executor/cpu/kernels.h"
#include "executor/ops/matmul_shapes.h"
#include "executor/ops/one_node.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

absl::StatusOr<std::shared_ptr<Kernel>> Part(
    const Prepare& p, absl::string_view op,
    const std::vector<TensorType>& inputs, const TensorType& output,
    models::Attributes attributes) {
  const OneNode one = MakeOneNode(p, op, inputs, output, std::move(attributes));
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                            PrepareCpuKernel(one.graph, one.node));
  return std::shared_ptr<Kernel>(std::move(kernel));
}

absl::StatusOr<std::shared_ptr<Kernel>> ProductOf(const Prepare& p) {
  return Part(p, "Gemm", {p.input(0), p.input(1)}, p.output(0),
              {{"transA", p.attributes().Int("transA", 0)},
               {"transB", p.attributes().Int("transB", 0)}});
}

int64_t Workspace(const Kernel& a, const Kernel& b) {
  return std::max(a.workspace_bytes(), b.workspace_bytes());
}

PreparedKernel GemmBiasGrad(const Prepare& p) {
  const SummedOperand dy = MakeSummedOperand(p);
  LOADLINE_ASSIGN_OR_RETURN(const auto product, ProductOf(p));
  LOADLINE_ASSIGN_OR_RETURN(
      const auto sum,
      Part(p, "ReduceSum", {p.input(dy.operand)}, p.output(1),
           {{"axes", Ints{dy.axis}}, {"keepdims", int64_t{0}}}));
  return MakeKernel(
      [product, sum, operand = static_cast<size_t>(dy.operand)](
          const KernelArgs& args) -> absl::Status {
        LOADLINE_RETURN_IF_ERROR(
            product->Run({.inputs = args.inputs,
                          .outputs = args.outputs.subspan(0, 1),
                          .workspace = args.workspace}));
        return sum->Run({.inputs = args.inputs.subspan(operand, 1),
                         .outputs = args.outputs.subspan(1, 1),
                         .workspace = args.workspace});
      },
      Workspace(*product, *sum));
}

PreparedKernel GemmGeluGrad(const Prepare& p) {
  const TensorType& y = p.output(0);
  LOADLINE_ASSIGN_OR_RETURN(const auto product, ProductOf(p));
  LOADLINE_ASSIGN_OR_RETURN(
      const auto gradient,
      Part(p, "GeluGrad", {y, p.input(2)}, y,
           {{"approximate", p.attributes().String("approximate", "none")}}));
  return MakeKernel(
      [product, gradient](const KernelArgs& args) -> absl::Status {
        LOADLINE_RETURN_IF_ERROR(
            product->Run({.inputs = args.inputs.subspan(0, 2),
                          .outputs = args.outputs,
                          .workspace = args.workspace}));
        const std::byte* const operands[] = {args.outputs[0], args.inputs[2]};
        return gradient->Run({.inputs = operands,
                              .outputs = args.outputs,
                              .workspace = args.workspace});
      },
      Workspace(*product, *gradient));
}

constexpr KernelEntry kGemmGradientKernels[] = {{"GemmBiasGrad", GemmBiasGrad},
                                                {"GemmGeluGrad", GemmGeluGrad}};

}  // namespace

absl::Span<const KernelEntry> GemmGradientKernels() {
  return kGemmGradientKernels;
}

}  // namespace loadline::executor::cpu
