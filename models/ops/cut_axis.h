// Along which axes a node can be cut: run part by part, each part on a slice of
// its operands, with the numbers of the whole.
//
//   y[32,10] = Gemm(x[32,64], w[64,10], b[10])   x cut along axis 0
//   -> y is cut along axis 0; w and b are read whole
//
// A value that is cut along an axis into k parts has, in part j, the elements
// [j d/k, (j + 1) d/k) of that axis, where d is the axis' size. Where an axis
// is the product of two, such as time and batch, each part may have a range of
// the second for every element of the first: InterleavedAxis names that cut.
#ifndef LOADLINE_MODELS_OPS_CUT_AXIS_H_
#define LOADLINE_MODELS_OPS_CUT_AXIS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "models/types.h"

namespace loadline::models {

// In place of an axis:
inline constexpr int64_t kWhole = -1;  // every part reads the whole value
inline constexpr int64_t kAdded = -2;  // the whole is the sum of the parts
inline constexpr int64_t kMean = -3;   // the whole is the mean of the parts
inline constexpr int64_t kOwn = -4;  // each part has its own, unlike the whole

// A cut along `axis`, whose elements are `outer` blocks of which each part has
// its range; with one block it is the axis itself.
int64_t InterleavedAxis(int64_t axis, int64_t outer);
int64_t AxisOf(int64_t cut);
int64_t OuterOf(int64_t cut);

// What BatchNormTraining of a part normalizes with: without the statistics of
// the whole batch it cannot be cut, with its own the step is another one.
enum class BatchStatistics { kOfBatch, kOfPart };

struct NodeCut {
  std::vector<int64_t> inputs;   // as each input must be cut
  std::vector<int64_t> outputs;  // as each output is cut then
  Attributes attributes;         // of the node on one part
  // Of Gather, GatherGrad and Scatter where input 0 or the result is cut along
  // the axis that input 1 has positions of: the length of a part of that axis.
  // In a part positions count from its own beginning, so it must get those of
  // part j less j times this. 0: positions stay as they are.
  int64_t position_shift = 0;
};

// How to run `node` on one of `parts` equal parts. `types` are those of the
// whole inputs and `outputs` of the whole outputs; types[i] is null for an
// absent input. `axes[i]` is the axis along which input i is cut, or kWhole; at
// least one is cut. An input that is kWhole in `axes` and cut in the result
// must be cut by the caller, such as a constant that has a row for each
// example.
//
// A SoftmaxCrossEntropy without its input `count` is refused, since its mean is
// not that of its parts. CountTargets of a part has the number of the whole.
// FailedPrecondition, with the reason, where the parts would not have the
// numbers of the whole, or for an operator without a rule. With kOfPart,
// BatchNormTraining is cut along the examples: its statistics are kOwn, and its
// attribute `part_statistics` says so. RunningStatsUpdate, which reads them, is
// that of one part.
absl::StatusOr<NodeCut> CutNode(
    const Node& node, absl::Span<const TensorType* const> types,
    absl::Span<const TensorType> outputs, absl::Span<const int64_t> axes,
    int64_t parts, BatchStatistics statistics = BatchStatistics::kOfBatch);

// Elements that stand before `axis`: the product of the dimensions before it,
// and of its blocks. One part of a value is contiguous where this is 1.
int64_t ElementsBefore(const TensorType& type, int64_t axis);

// For two shapes of the same elements: the axis of `to` along which a part has
// the same elements as one of `from` along `axis`; none if there is no such
// axis.
std::optional<int64_t> SameRange(const TensorType& from, int64_t axis,
                                 const TensorType& to, int64_t parts);

// The type of one part.
TensorType PartOf(TensorType type, int64_t axis, int64_t parts);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_CUT_AXIS_H_
