// Reads attributes with ONNX's defaults. Tested in tests/conformance/.
#include "executor/ops/conv_shapes.h"

namespace loadline::executor {

absl::StatusOr<ConvShapes> MakeConvShapes(const Prepare& p, const TensorType& x,
                                          const TensorType& w,
                                          const TensorType& y) {
  const size_t spatial = x.dims.size() - 2;
  if (x.rank() < 3 || x.rank() > 5) {
    return absl::UnimplementedError(
        "Conv takes images of one to three dimensions (node " + p.node().name +
        ")");
  }
  ConvShapes s;
  s.x = x.dims;
  s.w = w.dims;
  s.y = y.dims;
  s.strides = p.attributes().IntList("strides", Ints(spatial, 1));
  s.dilations = p.attributes().IntList("dilations", Ints(spatial, 1));
  const Ints pads = p.attributes().IntList("pads", Ints(2 * spatial, 0));
  s.group = p.attributes().Int("group", 1);
  if (s.strides.size() != spatial || s.dilations.size() != spatial ||
      pads.size() != 2 * spatial) {
    return p.Invalid("strides, dilations or pads of the wrong length");
  }
  s.pads_begin.assign(pads.begin(), pads.begin() + spatial);
  s.pads_end.assign(pads.begin() + spatial, pads.end());
  if (s.group < 1 || w.dims[0] % s.group != 0) {
    return p.Invalid("group does not divide the output channels");
  }
  return s;
}

}  // namespace loadline::executor
