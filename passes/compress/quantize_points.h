// Which tensors of a model the entries of a recipe quantize, and how.
#ifndef LOADLINE_PASSES_COMPRESS_QUANTIZE_POINTS_H_
#define LOADLINE_PASSES_COMPRESS_QUANTIZE_POINTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph.h"
#include "passes/compress/add_fake_quantize.h"

namespace loadline::passes {

struct QuantizePoint {
  QuantizedTensor tensor;
  QuantizeStage stage = QuantizeStage::kTrain;
  Observer observer = Observer::kEmaMinMax;
};

// Whether AddFakeQuantize can quantize nodes of this operator.
bool CanQuantize(const models::Node& node);

// Ascending by value. Errors: those of AddFakeQuantize.
absl::StatusOr<std::vector<QuantizePoint>> FindQuantizePoints(
    const models::Graph& model, absl::Span<const QuantizeRequest> requests);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_QUANTIZE_POINTS_H_
