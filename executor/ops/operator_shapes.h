// Shapes and attributes of nodes as kernels need them, shared by all devices.
#ifndef LOADLINE_EXECUTOR_OPS_OPERATOR_SHAPES_H_
#define LOADLINE_EXECUTOR_OPS_OPERATOR_SHAPES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "executor/ops/loop_nest.h"
#include "executor/ops/prepare.h"
#include "models/host_device.h"

namespace loadline::executor {

// Concat and Split: bytes of one row of each part. A row of the whole tensor is
// one row of each part in turn.
struct Parts {
  int64_t rows = 0;
  int64_t whole_bytes = 0;
  Ints part_bytes;
};
Parts ConcatParts(const Prepare& p);
Parts SplitParts(const Prepare& p);

// Position of a slice in a dense tensor of shape `whole`.
struct SliceWindow {
  int64_t first = 0;  // element offset
  Ints strides;
};
SliceWindow MakeSliceWindow(const Prepare& p, const Ints& whole);

// Input and output of a transpose, iterated in the output's order.
LoopNest<2> TransposeNest(const Prepare& p);
// The two dimensions that a transpose exchanges, and the others. For nests
// whose innermost dimension is not dense in the input.
struct TransposeTiles {
  LoopNest<2> outer;
  // The dimension that is dense in the input, and its stride in the output.
  int64_t rows;
  int64_t out_stride;
  // The output's innermost dimension, and its stride in the input.
  int64_t columns;
  int64_t in_stride;
};
TransposeTiles MakeTransposeTiles(const LoopNest<2>& nest);

// Axes of a reduction: size-1 dimensions dropped, adjacent axes of one kind
// merged.
struct ReduceAxis {
  int64_t dim;
  bool reduced;
};
std::vector<ReduceAxis> MergedReduceAxes(const Prepare& p);
// The divisor of a mean.
float MeanDivisor(const Prepare& p);

// Gather: data is [outer, size, inner]; y and dy are [outer, count, inner].
struct GatherLayout {
  AxisSplit data;
  int64_t count;
};
GatherLayout MakeGatherLayout(const Prepare& p, const TensorType& data);
// Negative indices count from the end, as ONNX says.
LOADLINE_HOST_DEVICE inline int64_t GatherRow(int64_t index, int64_t size) {
  return index < 0 ? index + size : index;
}

// Normalization over rows: all dimensions from `axis` on form one row.
struct NormRows {
  int64_t rows, size;
  float epsilon;
};
NormRows MakeNormRows(const Prepare& p, const TensorType& x);

// Normalization per channel of [n, channels, plane].
struct NormChannels {
  int64_t n, channels, plane;
  float epsilon;

  LOADLINE_HOST_DEVICE int64_t count() const { return n * plane; }
};
NormChannels MakeNormChannels(const Prepare& p, const TensorType& x);

// dx = scale rstd (dy - dbias / M - xhat dscale / M), with xhat = (x - mean)
// rstd, written as factor * dy + slope * (x - mean) + shift.
struct ChannelGrad {
  float factor, slope, shift;
};
LOADLINE_HOST_DEVICE inline ChannelGrad MakeChannelGrad(const NormChannels& s,
                                                        float scale, float rstd,
                                                        float dscale,
                                                        float dbias) {
  const auto count = static_cast<float>(s.count());
  const float factor = scale * rstd;
  return {factor, -factor * rstd * dscale / count, -factor * dbias / count};
}

// RunningStatsUpdate of one channel. PyTorch keeps the unbiased variance:
// biased * count / (count - 1).
struct RunningStats {
  double keep, epsilon, unbias;

  LOADLINE_HOST_DEVICE float Mean(float running, float mean) const {
    return static_cast<float>(keep * running + (1 - keep) * mean);
  }
  LOADLINE_HOST_DEVICE float Variance(float running, float rstd) const {
    const double r = rstd;
    const double biased = 1.0 / (r * r) - epsilon;
    const double variance = (biased > 0.0 ? biased : 0.0) * unbias;
    return static_cast<float>(keep * running + (1 - keep) * variance);
  }
};
RunningStats MakeRunningStats(const Prepare& p);

// Logits as lines along the class axis; line (outer, j) has target outer *
// inner + j.
struct ClassLines {
  AxisSplit lines;

  LOADLINE_HOST_DEVICE int64_t targets() const {
    return lines.outer * lines.inner;
  }
  // Offset in the logits of class `c` for target i.
  LOADLINE_HOST_DEVICE int64_t At(int64_t i, int64_t c) const {
    return (i / lines.inner * lines.size + c) * lines.inner + i % lines.inner;
  }
};
ClassLines MakeClassLines(const Prepare& p, const TensorType& logits);

// Whether a Gelu or its gradient uses the tanh approximation.
bool IsTanhGelu(const Prepare& p);

// Dropout keeps element e where its random word is at least `threshold`.
struct DropoutSettings {
  uint32_t salt;
  int64_t offset;      // added to the number of every element
  uint64_t threshold;  // ratio 2^32, in [0, 2^32]
  float scale;
};
// Uses `default_ratio` where the attribute is absent. InvalidArgument: a ratio
// outside [0, 1].
absl::StatusOr<DropoutSettings> MakeDropoutSettings(const Prepare& p,
                                                    double default_ratio = 0.5);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_OPERATOR_SHAPES_H_
