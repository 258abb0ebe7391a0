// Quantizes the weights, inputs and outputs of chosen nodes, in float.
//
//   y = Conv(x, w)          wq = FakeQuantize(w, grid of w's channels)
//   z = Relu(y)       ->    low', high' = RangeUpdate(low, high, range of x)
//                           xq = FakeQuantize(x, grid of [low', high'])
//                           y = Conv(xq, wq)
//                           zq = FakeQuantize(Relu(y), ...)
//
// Runs on an imported model, before BuildTrainingStep. A tensor has one
// quantizer, and all its readers read what that gives. A node's output is
// quantized behind the normalization, bias and Relu or Clip that follow it
// alone, since an integer kernel computes these too. What is only moved
// (Reshape, Transpose, MaxPool, ...) keeps the grid of where it came from.
// Biases are rounded as the export rounds them (quantize_biases.h).
//
// Persistent values, by the quantized tensor's name: `NAME.low`, `NAME.high`
// are the range of an input or output; `NAME.log_scale` is trained, and
// `NAME.zero_point` goes with it (lsq); `NAME.codebook`, `NAME.codes` replace a
// weight (kmeans). The grid of a weight follows the weight.
#ifndef LOADLINE_PASSES_COMPRESS_ADD_FAKE_QUANTIZE_H_
#define LOADLINE_PASSES_COMPRESS_ADD_FAKE_QUANTIZE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "passes/compress/recipe.h"

namespace loadline::passes {

enum class QuantizeStage {
  kCalibrate,  // observers watch the float model; nothing is quantized
  kTrain,      // observers watch, and tensors are quantized
  kFrozen,     // tensors are quantized by the ranges and scales as they are
};

// One entry of a recipe at work.
struct QuantizeRequest {
  std::vector<models::NodeId> nodes;
  QuantizeSpec spec;
  QuantizeStage stage = QuantizeStage::kTrain;
};

// One tensor that is quantized.
struct QuantizedTensor {
  std::string name;         // in the model
  models::ValueId value{};  // in the model, before the pass
  bool weight = false;
  Quantizer quantizer = Quantizer::kUniform;
  int64_t bits = 8;
  bool is_signed = true;
  bool symmetric = true;
  std::optional<int64_t> axis;  // of the channels
  // Not empty: moved elements of this tensor, on its grid. No quantizer of its
  // own.
  std::string same_as;
};

// Settings of inputs win over those of outputs where a tensor is both. Errors,
// with the node: InvalidArgument (a weight that is no parameter; 1 bit for
// another quantizer than kmeans; a name that is taken), Unimplemented (an
// operator or an observer that cannot be quantized).
absl::StatusOr<std::vector<QuantizedTensor>> AddFakeQuantize(
    models::Graph& model, absl::Span<const QuantizeRequest> requests);

// The contents of a persistent value by name; none if there is no such value.
using ValueReader =
    std::function<std::optional<models::Tensor>(absl::string_view name)>;

// Gives the values that quantizers of a phase begin with their initial
// contents: codebooks and codes by k-means from the weights, scales of lsq from
// the weights and the ranges. `graph`: one that AddFakeQuantize or a later pass
// made. `before`: what the phase before left. Values that `before` holds
// already are not changed. FailedPrecondition: `before` lacks a weight.
absl::Status StartQuantizers(absl::Span<const QuantizedTensor> tensors,
                             const ValueReader& before, models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_ADD_FAKE_QUANTIZE_H_
