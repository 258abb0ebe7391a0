// Convolution and its two gradients by cuDNN; a bias is added afterwards, by
// our own kernel, over the result. A 1-d image is a 2-d one of height 1.
// Tested in tests/conformance/ with a plain convolution in the library's place,
// and with the library by the suite in tests/gpu.
#include "executor/conv_shapes.h"
#include "executor/cuda/cudnn_conv.h"
#include "executor/cuda/families.h"
#include "executor/cuda/sub_kernel.h"
#include "executor/cuda/types.h"
#include "planner/status_macros.h"

namespace loadline::executor::cuda {
namespace {

absl::StatusOr<std::shared_ptr<CudnnConv>> MakeConv(const Prepare& p,
                                                    ConvKind kind,
                                                    const TensorType& x,
                                                    const TensorType& w,
                                                    const TensorType& y) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(p));
  LOADLINE_ASSIGN_OR_RETURN(const ConvShapes s, MakeConvShapes(p, x, w, y));
  ConvSpec spec{.kind = kind,
                .dtype = x.dtype,
                .x = s.x,
                .w = s.w,
                .y = s.y,
                .strides = s.strides,
                .dilations = s.dilations,
                .pads_begin = s.pads_begin,
                .pads_end = s.pads_end};
  if (s.strides.size() == 1) {
    for (Ints* dims : {&spec.x, &spec.w, &spec.y}) {
      dims->insert(dims->begin() + 2, 1);
    }
    spec.strides.insert(spec.strides.begin(), 1);
    spec.dilations.insert(spec.dilations.begin(), 1);
    spec.pads_begin.insert(spec.pads_begin.begin(), 0);
    spec.pads_end.insert(spec.pads_end.begin(), 0);
  }
  return MakeCudnnConv(spec);
}

PreparedKernel MakeConvKernel(const std::shared_ptr<CudnnConv>& conv,
                              const std::shared_ptr<CudaKernel>& add_bias) {
  return MakeKernel(
      [conv, add_bias](const KernelArgs& args,
                       const LaunchContext& context) -> absl::Status {
        std::byte* const y = args.outputs[0];
        LOADLINE_RETURN_IF_ERROR(conv->Enqueue(
            args.inputs[0], args.inputs[1], y, args.workspace, context.stream));
        if (add_bias == nullptr) return absl::OkStatus();
        const std::byte* const addends[] = {y, args.inputs[2]};
        return add_bias->Enqueue({.inputs = addends, .outputs = args.outputs},
                                 context);
      },
      conv->workspace_bytes());
}

PreparedKernel Conv(const Prepare& p) {
  const TensorType& y = p.output(0);
  LOADLINE_ASSIGN_OR_RETURN(
      const auto conv,
      MakeConv(p, ConvKind::kForward, p.input(0), p.input(1), y));
  std::shared_ptr<CudaKernel> add_bias;
  if (p.has_input(2)) {
    TensorType bias = p.input(2);
    bias.dims.resize(y.dims.size() - 1, 1);  // over all but the channels
    LOADLINE_ASSIGN_OR_RETURN(add_bias, MakeSubKernel(p, "Add", {y, bias}, y));
  }
  return MakeConvKernel(conv, add_bias);
}

PreparedKernel ConvInputGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const auto conv,
      MakeConv(p, ConvKind::kInputGrad, p.output(0), p.input(1), p.input(0)));
  return MakeConvKernel(conv, nullptr);
}

PreparedKernel ConvWeightGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const auto conv,
      MakeConv(p, ConvKind::kWeightGrad, p.input(1), p.output(0), p.input(0)));
  return MakeConvKernel(conv, nullptr);
}

constexpr KernelEntry kKernels[] = {
    {"Conv", Conv},
    {"ConvInputGrad", ConvInputGrad},
    {"ConvWeightGrad", ConvWeightGrad},
};

}  // namespace

absl::Span<const KernelEntry> ConvKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
