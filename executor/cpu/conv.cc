// Convolution and its two gradients through oneDNN.
//
// oneDNN chooses the formats ("any"), and tensors are reordered into the
// workspace where those differ from plain NCHW, as PyTorch does. The choice
// depends on shapes, machine and thread count only, so runs repeat bit for bit.
//
// These formats pad channels to multiples of 8 or 16. Where padding would make
// the reordered tensors much larger than the plain ones, the batch is computed
// in parts that reuse one workspace. So reordered tensors take at most
// about 1.5 times the bytes of the plain ones, however few channels there are.
//
// Nodes with empty tensors do not occur: the import refuses them. Tested in
// tests/conformance/.
#include <algorithm>
#include <cmath>
#include <utility>

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

dnnl::convolution_backward_data::primitive_desc InputGradDesc(
    const Geometry& g) {
  return {CpuEngine(),
          algorithm::convolution_direct,
          AnyDesc(g.x, g.dtype),
          AnyDesc(g.w, g.dtype),
          AnyDesc(g.y, g.dtype),
          g.strides,
          g.dilations,
          g.pads_begin,
          g.pads_end,
          ForwardDesc(g, false),
          UserScratchpad()};
}

dnnl::convolution_backward_weights::primitive_desc WeightGradDesc(
    const Geometry& g, const dnnl::memory::desc& w) {
  return {CpuEngine(),
          algorithm::convolution_direct,
          AnyDesc(g.x, g.dtype),
          w,
          AnyDesc(g.y, g.dtype),
          g.strides,
          g.dilations,
          g.pads_begin,
          g.pads_end,
          ForwardDesc(g, false),
          UserScratchpad()};
}

// A part of the batch.
struct Part {
  Geometry g;
  int64_t x_byte, y_byte;  // where its examples begin
};

// The batch in as many parts as the reordered tensors take times the bytes of
// the plain ones, rounded. `x` and `y` are the formats of the whole batch.
std::vector<Part> PartsOfBatch(const Geometry& g, const dnnl::memory::desc& x,
                               const dnnl::memory::desc& y) {
  double reordered = 0, plain = 0;
  for (const auto& [desc, dims] : {std::pair(x, g.x), std::pair(y, g.y)}) {
    const auto bytes =
        static_cast<double>(PlainDesc(dims, ProductType(g.dtype)).get_size());
    plain += bytes;
    if (desc != PlainDesc(dims, g.dtype)) {
      reordered += static_cast<double>(desc.get_size());
    }
  }
  const int64_t batch = g.x[0];
  const int64_t parts =
      std::clamp<int64_t>(std::llround(reordered / plain), 1, batch);
  const int64_t size = (batch + parts - 1) / parts;
  const auto example_bytes = [&](const Ints& dims) {
    return static_cast<int64_t>(PlainDesc(dims, g.dtype).get_size()) / batch;
  };
  std::vector<Part> made;
  for (int64_t first = 0; first < batch; first += size) {
    Part& part = made.emplace_back(Part{.g = g});
    part.g.x[0] = part.g.y[0] = std::min(size, batch - first);
    part.x_byte = first * example_bytes(g.x);
    part.y_byte = first * example_bytes(g.y);
  }
  return made;
}

PreparedKernel Conv(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Geometry whole,
      MakeGeometry(p, p.input(0), p.input(1), p.output(0)));
  const bool bias = p.has_input(2);
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    const auto of_whole = ForwardDesc(whole, bias);
    const auto plain_w = program.AddInput(1, PlainDesc(whole.w, whole.dtype));
    const auto plain_b =
        bias ? program.AddInput(2, PlainDesc(whole.bias, whole.dtype)) : -1;
    for (const Part& part :
         PartsOfBatch(whole, of_whole.src_desc(), of_whole.dst_desc())) {
      program.ReuseTemporaries(0);
      const Geometry& g = part.g;
      const auto pd = ForwardDesc(g, bias);
      const auto x = program.Reordered(
          program.AddInput(0, PlainDesc(g.x, g.dtype), part.x_byte),
          pd.src_desc());
      const auto w = program.Reordered(plain_w, pd.weights_desc());
      const auto y = program.AddOutput(0, PlainDesc(g.y, g.dtype), part.y_byte);
      const auto result = program.ResultSlot(y, pd.dst_desc());
      std::vector<std::pair<int, int>> arguments = {
          {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, result}};
      if (bias) {
        arguments.push_back(
            {DNNL_ARG_BIAS, program.Reordered(plain_b, pd.bias_desc())});
      }
      program.AddStep(dnnl::convolution_forward(pd), arguments,
                      pd.scratchpad_desc());
      program.StoreResult(result, y);
    }
  });
}

PreparedKernel ConvInputGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Geometry whole,
      MakeGeometry(p, p.output(0), p.input(1), p.input(0)));
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    const auto of_whole = InputGradDesc(whole);
    const auto plain_w = program.AddInput(1, PlainDesc(whole.w, whole.dtype));
    for (const Part& part : PartsOfBatch(whole, of_whole.diff_src_desc(),
                                         of_whole.diff_dst_desc())) {
      program.ReuseTemporaries(0);
      const Geometry& g = part.g;
      const auto pd = InputGradDesc(g);
      const auto dy = program.Reordered(
          program.AddInput(0, PlainDesc(g.y, g.dtype), part.y_byte),
          pd.diff_dst_desc());
      const auto w = program.Reordered(plain_w, pd.weights_desc());
      const auto dx =
          program.AddOutput(0, PlainDesc(g.x, g.dtype), part.x_byte);
      const auto result = program.ResultSlot(dx, pd.diff_src_desc());
      program.AddStep(dnnl::convolution_backward_data(pd),
                      {{DNNL_ARG_DIFF_DST, dy},
                       {DNNL_ARG_WEIGHTS, w},
                       {DNNL_ARG_DIFF_SRC, result}},
                      pd.scratchpad_desc());
      program.StoreResult(result, dx);
    }
  });
}

// The gradients of several parts are added in f32, one after the other.
PreparedKernel WeightGradByParts(const Prepare& p, const Geometry& whole) {
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    const auto of_whole = WeightGradDesc(whole, AnyDesc(whole.w, whole.dtype));
    const std::vector<Part> parts =
        PartsOfBatch(whole, of_whole.src_desc(), of_whole.diff_dst_desc());
    const auto dw = program.AddOutput(0, PlainDesc(whole.w, whole.dtype));
    // Of all parts, in the format of the first.
    const auto sum_desc =
        parts.size() == 1
            ? of_whole.diff_weights_desc()
            : WeightGradDesc(parts[0].g, AnyDesc(whole.w, DType::kF32))
                  .diff_weights_desc();
    const auto sum = program.ResultSlot(dw, sum_desc);
    const int64_t after_sum = program.temporary_mark();
    for (const Part& part : parts) {
      program.ReuseTemporaries(after_sum);
      const Geometry& g = part.g;
      const auto pd = WeightGradDesc(g, sum_desc);
      const auto dy = program.Reordered(
          program.AddInput(0, PlainDesc(g.y, g.dtype), part.y_byte),
          pd.diff_dst_desc());
      const auto x = program.Reordered(
          program.AddInput(1, PlainDesc(g.x, g.dtype), part.x_byte),
          pd.src_desc());
      const bool first = &part == &parts.front();
      const auto of_part = first ? sum : program.AddTemporary(sum_desc);
      program.AddStep(dnnl::convolution_backward_weights(pd),
                      {{DNNL_ARG_DIFF_DST, dy},
                       {DNNL_ARG_SRC, x},
                       {DNNL_ARG_DIFF_WEIGHTS, of_part}},
                      pd.scratchpad_desc());
      if (!first) program.AddTo(sum, of_part);
    }
    program.StoreResult(sum, dw);
  });
}

// The plain tensor of `dims` with its first two axes exchanged, up to `size` in
// the others.
dnnl::memory::desc ExchangedDesc(const Ints& dims, const Ints& size,
                                 DType dtype) {
  Ints strides = DenseStrides(dims);
  std::swap(strides[0], strides[1]);
  Ints exchanged = {dims[1], dims[0]};
  exchanged.insert(exchanged.end(), size.begin(), size.end());
  return {exchanged, OneDnnType(dtype), strides};
}

Ints SpatialOf(const Ints& dims) { return {dims.begin() + 2, dims.end()}; }

// dw[o, i, k] is the sum over n and j of
//   dy[n, o, j] x[n, i, j stride + k dilation - pad],
// which is a convolution of x with dy: the examples are its channels, the input
// channels its examples, and stride and dilation change places. Unimplemented
// if oneDNN has none.
PreparedKernel WeightGradAsConv(const Prepare& p, const Geometry& g) {
  const Ints kernel = SpatialOf(g.w), steps = SpatialOf(g.y);
  Ints read = SpatialOf(g.x);  // of x; no product reads what comes after
  Ints strides = g.dilations, dilations = g.strides, pads_end = g.pads_end;
  for (size_t d = 0; d < read.size(); ++d) {
    ++strides[d];
    --dilations[d];
    const int64_t reach = (kernel[d] - 1) * strides[d] +
                          (steps[d] - 1) * g.strides[d] + 1 - g.pads_begin[d];
    pads_end[d] = std::max<int64_t>(0, reach - read[d]);
    read[d] = std::min(read[d], reach);
    if (read[d] <= 0) return absl::UnimplementedError("reads padding only");
  }
  return MakeOneDnnKernel(p, [&](OneDnnProgram& program) {
    const auto x_desc = ExchangedDesc(g.x, read, g.dtype);
    const auto dy_desc = ExchangedDesc(g.y, steps, g.dtype);
    const auto dw_desc = ExchangedDesc(g.w, kernel, g.dtype);
    const dnnl::convolution_forward::primitive_desc pd(
        CpuEngine(), prop_kind::forward_inference,
        algorithm::convolution_direct, AnyDesc(x_desc.get_dims(), g.dtype),
        AnyDesc(dy_desc.get_dims(), g.dtype),
        AnyDesc(dw_desc.get_dims(), g.dtype), strides, dilations, g.pads_begin,
        pads_end, UserScratchpad());
    const auto dw = program.AddOutput(0, dw_desc);
    const auto result = program.ResultSlot(dw, pd.dst_desc());
    const auto dy =
        program.Reordered(program.AddInput(0, dy_desc), pd.weights_desc());
    const auto x =
        program.Reordered(program.AddInput(1, x_desc), pd.src_desc());
    program.AddStep(
        dnnl::convolution_forward(pd),
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, dy}, {DNNL_ARG_DST, result}},
        pd.scratchpad_desc());
    program.StoreResult(result, dw);
  });
}

// Where oneDNN has no kernel of its own for the processor and the shape, it
// multiplies matrices, and takes four times the bytes of the weights for each
// thread: 72 MiB instead of 9 for 512 x 512 x 3 x 3 and images of one pixel on
// two threads, and five times as long.
PreparedKernel ConvWeightGrad(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(
      const Geometry whole,
      MakeGeometry(p, p.input(1), p.output(0), p.input(0)));
  PreparedKernel by_parts = WeightGradByParts(p, whole);
  const int64_t tensors =
      p.input(0).bytes() + p.input(1).bytes() + p.output(0).bytes();
  if (!by_parts.ok() || whole.w.size() != whole.x.size() ||
      (*by_parts)->workspace_bytes() <= 2 * tensors) {
    return by_parts;
  }
  PreparedKernel as_conv = WeightGradAsConv(p, whole);
  return as_conv.ok() &&
                 (*as_conv)->workspace_bytes() < (*by_parts)->workspace_bytes()
             ? std::move(as_conv)
             : std::move(by_parts);
}

constexpr KernelEntry kConvKernels[] = {
    {"Conv", Conv},
    {"ConvInputGrad", ConvInputGrad},
    {"ConvWeightGrad", ConvWeightGrad},
};

}  // namespace

absl::Span<const KernelEntry> ConvKernels() { return kConvKernels; }

}  // namespace loadline::executor::cpu
