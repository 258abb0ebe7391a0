// Reads shapes and attributes. Tested through every device's kernels in
// tests/conformance/.
#include "executor/ops/operator_shapes.h"

#include <algorithm>
#include <cmath>

namespace loadline::executor {
namespace {

Parts MakeParts(const Prepare& p, const TensorType& whole,
                const std::vector<const TensorType*>& parts) {
  Parts made;
  const int64_t axis = p.attributes().Int("axis", 0);
  const AxisSplit split = SplitAt(whole.dims, axis);
  const int64_t cell = split.inner * models::DTypeBytes(whole.dtype);
  made.rows = split.outer;
  made.whole_bytes = split.size * cell;
  for (const TensorType* part : parts) {
    made.part_bytes.push_back(SplitAt(part->dims, axis).size * cell);
  }
  return made;
}

}  // namespace

Parts ConcatParts(const Prepare& p) {
  std::vector<const TensorType*> types;
  types.reserve(static_cast<size_t>(p.inputs()));
  for (int i = 0; i < p.inputs(); ++i) types.push_back(&p.input(i));
  return MakeParts(p, p.output(0), types);
}

Parts SplitParts(const Prepare& p) {
  std::vector<const TensorType*> types;
  types.reserve(static_cast<size_t>(p.outputs()));
  for (int i = 0; i < p.outputs(); ++i) types.push_back(&p.output(i));
  return MakeParts(p, p.input(0), types);
}

SliceWindow MakeSliceWindow(const Prepare& p, const Ints& whole) {
  SliceWindow window;
  const Ints dense = DenseStrides(whole);
  window.strides = dense;
  const Ints starts = p.attributes().IntList("starts");
  Ints all;
  for (size_t i = 0; i < starts.size(); ++i) all.push_back(i);
  const Ints axes = p.attributes().IntList("axes", all);
  const Ints steps = p.attributes().IntList("steps", Ints(starts.size(), 1));
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = PositiveAxis(axes[i], whole.size());
    window.first += starts[i] * dense[axis];
    window.strides[axis] = dense[axis] * steps[i];
  }
  return window;
}

LoopNest<2> TransposeNest(const Prepare& p) {
  Ints reversed;
  for (int64_t d = p.input(0).rank(); d-- > 0;) reversed.push_back(d);
  const Ints dense = DenseStrides(p.input(0).dims);
  Ints strides;
  for (int64_t axis : p.attributes().IntList("perm", reversed)) {
    strides.push_back(dense[axis]);
  }
  const Ints& out = p.output(0).dims;
  return LoopNest<2>(out, {strides, DenseStrides(out)});
}

TransposeTiles MakeTransposeTiles(const LoopNest<2>& nest) {
  Ints dims = nest.dims();
  Ints in = nest.strides(0);
  Ints out = nest.strides(1);
  const int64_t columns = dims.back();
  const int64_t in_stride = in.back();
  dims.pop_back();
  in.pop_back();
  out.pop_back();
  const auto d = std::find(in.begin(), in.end(), 1) - in.begin();
  const int64_t rows = dims[d];
  const int64_t out_stride = out[d];
  dims.erase(dims.begin() + d);
  in.erase(in.begin() + d);
  out.erase(out.begin() + d);
  return {LoopNest<2>(dims, {in, out}), rows, out_stride, columns, in_stride};
}

std::vector<ReduceAxis> MergedReduceAxes(const Prepare& p) {
  const Ints& dims = p.input(0).dims;
  std::vector<bool> reduced(dims.size(), !p.attributes().Has("axes"));
  for (int64_t axis : p.attributes().IntList("axes")) {
    reduced[PositiveAxis(axis, p.input(0).rank())] = true;
  }
  std::vector<ReduceAxis> merged;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    if (!merged.empty() && merged.back().reduced == reduced[d]) {
      merged.back().dim *= dims[d];
    } else {
      merged.push_back({dims[d], reduced[d]});
    }
  }
  return merged;
}

float MeanDivisor(const Prepare& p) {
  return static_cast<float>(p.input(0).elements()) /
         static_cast<float>(std::max<int64_t>(p.output(0).elements(), 1));
}

GatherLayout MakeGatherLayout(const Prepare& p, const TensorType& data) {
  return {SplitAt(data.dims, p.attributes().Int("axis", 0)),
          p.input(1).elements()};
}

NormRows MakeNormRows(const Prepare& p, const TensorType& x) {
  const int64_t axis = PositiveAxis(p.attributes().Int("axis", -1), x.rank());
  return {Elements(x.dims, 0, axis), Elements(x.dims, axis, x.rank()),
          static_cast<float>(p.attributes().Float("epsilon", 1e-5))};
}

NormChannels MakeNormChannels(const Prepare& p, const TensorType& x) {
  return {x.dims[0], x.dims[1], Elements(x.dims, 2, x.rank()),
          static_cast<float>(p.attributes().Float("epsilon", 1e-5))};
}

RunningStats MakeRunningStats(const Prepare& p) {
  const auto count = static_cast<double>(p.attributes().Int("count", 1));
  return {p.attributes().Float("momentum", 0.9),
          p.attributes().Float("epsilon", 1e-5),
          count > 1 ? count / (count - 1) : 1.0};
}

ClassLines MakeClassLines(const Prepare& p, const TensorType& logits) {
  return {SplitAt(logits.dims, p.attributes().Int("class_axis", -1))};
}

bool IsTanhGelu(const Prepare& p) {
  return p.attributes().String("approximate", "none") == "tanh";
}

absl::StatusOr<DropoutSettings> MakeDropoutSettings(const Prepare& p,
                                                    double default_ratio) {
  const double ratio = p.attributes().Float("ratio", default_ratio);
  if (!(ratio >= 0 && ratio <= 1)) return p.Invalid("ratio outside [0, 1]");
  return DropoutSettings{
      static_cast<uint32_t>(p.attributes().Int("salt", 0)),
      p.attributes().Int("offset", 0),
      static_cast<uint64_t>(std::llround(std::ldexp(ratio, 32))),
      ratio < 1 ? static_cast<float>(1.0 / (1.0 - ratio)) : 0.0f};
}

}  // namespace loadline::executor
