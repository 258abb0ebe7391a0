// Convolution and its two gradients through oneDNN.
//
// oneDNN chooses the formats ("any"), and tensors are reordered into the
// workspace where those differ from plain NCHW, as PyTorch does. The choice
// depends on shapes, machine and thread count only, so runs repeat bit for bit.
// Nodes with empty tensors do not occur: the import refuses them. Tested in
// tests/conformance/.
#include "executor/cpu/families.h"
#include "executor/cpu/onednn.h"
#include "executor/ops/conv_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

// Geometry in oneDNN's conventions.
struct Geometry {
  Ints x, w, y, bias;  // w is [group, O / group, I / group, ...] for groups
  Ints strides, dilations, pads_begin, pads_end;
  DType dtype = DType::kF32;
};

absl::StatusOr<Geometry> MakeGeometry(const Prepare& p, const TensorType& x,
                                      const TensorType& w,
                                      const TensorType& y) {
  LOADLINE_ASSIGN_OR_RETURN(const ConvShapes s, MakeConvShapes(p, x, w, y));
  Geometry g{.x = s.x,
             .w = s.w,
             .y = s.y,
             .bias = {s.w[0]},
             .strides = s.strides,
             .dilations = s.dilations,
             .pads_begin = s.pads_begin,
             .pads_end = s.pads_end,
             .dtype = x.dtype};
  // oneDNN counts the gaps between taps: 0 is a dense kernel.
  for (int64_t& d : g.dilations) --d;
  if (s.group != 1) {
    g.w[0] /= s.group;
    g.w.insert(g.w.begin(), s.group);
  }
  return g;
}

dnnl::convolution_forward::primitive_desc ForwardDesc(const Geometry& g,
                                                      bool bias) {
  const dnnl::memory::desc b =
      bias ? PlainDesc(g.bias, ProductType(g.dtype)) : dnnl::memory::desc();
  return {CpuEngine(),
          prop_kind::forward_training,
          algorithm::convolution_direct,
          AnyDesc(g.x, g.dtype),
          AnyDesc(g.w, g.dtype),
          b,
          AnyDesc(g.y, g.dtype),
          g.strides,
          g.dilations,
          g.pads_begin,
          g.pads_end,
          UserScratchpad()};
}

PreparedKernel Conv(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Geometry g, MakeGeometry(p, p.input(0), p.input(1), p.output(0)));
  const bool bias = p.has_input(2);
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    const auto pd = ForwardDesc(g, bias);
    const auto x = program.Reordered(
        program.AddInput(0, PlainDesc(g.x, g.dtype)), pd.src_desc());
    const auto w = program.Reordered(
        program.AddInput(1, PlainDesc(g.w, g.dtype)), pd.weights_desc());
    const auto y = program.AddOutput(0, PlainDesc(g.y, g.dtype));
    const auto result = program.ResultSlot(y, pd.dst_desc());
    std::vector<std::pair<int, int>> arguments = {
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, result}};
    if (bias) {
      const auto b = program.Reordered(
          program.AddInput(2, PlainDesc(g.bias, g.dtype)), pd.bias_desc());
      arguments.push_back({DNNL_ARG_BIAS, b});
    }
    program.AddStep(dnnl::convolution_forward(pd), arguments,
                    pd.scratchpad_desc());
    program.StoreResult(result, y);
  });
}

PreparedKernel ConvInputGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Geometry g, MakeGeometry(p, p.output(0), p.input(1), p.input(0)));
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    const dnnl::convolution_backward_data::primitive_desc pd(
        CpuEngine(), algorithm::convolution_direct, AnyDesc(g.x, g.dtype),
        AnyDesc(g.w, g.dtype), AnyDesc(g.y, g.dtype), g.strides, g.dilations,
        g.pads_begin, g.pads_end, ForwardDesc(g, false), UserScratchpad());
    const auto dy = program.Reordered(
        program.AddInput(0, PlainDesc(g.y, g.dtype)), pd.diff_dst_desc());
    const auto w = program.Reordered(
        program.AddInput(1, PlainDesc(g.w, g.dtype)), pd.weights_desc());
    const auto dx = program.AddOutput(0, PlainDesc(g.x, g.dtype));
    const auto result = program.ResultSlot(dx, pd.diff_src_desc());
    program.AddStep(dnnl::convolution_backward_data(pd),
                    {{DNNL_ARG_DIFF_DST, dy},
                     {DNNL_ARG_WEIGHTS, w},
                     {DNNL_ARG_DIFF_SRC, result}},
                    pd.scratchpad_desc());
    program.StoreResult(result, dx);
  });
}

PreparedKernel ConvWeightGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Geometry g, MakeGeometry(p, p.input(1), p.output(0), p.input(0)));
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    const dnnl::convolution_backward_weights::primitive_desc pd(
        CpuEngine(), algorithm::convolution_direct, AnyDesc(g.x, g.dtype),
        AnyDesc(g.w, g.dtype), AnyDesc(g.y, g.dtype), g.strides, g.dilations,
        g.pads_begin, g.pads_end, ForwardDesc(g, false), UserScratchpad());
    const auto dy = program.Reordered(
        program.AddInput(0, PlainDesc(g.y, g.dtype)), pd.diff_dst_desc());
    const auto x = program.Reordered(
        program.AddInput(1, PlainDesc(g.x, g.dtype)), pd.src_desc());
    const auto dw = program.AddOutput(0, PlainDesc(g.w, g.dtype));
    const auto result = program.ResultSlot(dw, pd.diff_weights_desc());
    program.AddStep(dnnl::convolution_backward_weights(pd),
                    {{DNNL_ARG_DIFF_DST, dy},
                     {DNNL_ARG_SRC, x},
                     {DNNL_ARG_DIFF_WEIGHTS, result}},
                    pd.scratchpad_desc());
    program.StoreResult(result, dw);
  });
}

constexpr KernelEntry kKernels[] = {
    {"Conv", Conv},
    {"ConvInputGrad", ConvInputGrad},
    {"ConvWeightGrad", ConvWeightGrad},
};

}  // namespace

absl::Span<const KernelEntry> ConvKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
