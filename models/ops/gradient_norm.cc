// What clipping gradients by their global norm needs: the sum of squares of
// each gradient, and the factor that all are multiplied with. Tested in
// tests/models/infer_test.cc.
#include <cmath>

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<OutputTypes> InferSumSquares(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  return OutputTypes{{DType::kF32, {1}}};
}

absl::StatusOr<OutputTypes> InferClipFactor(const Node& node,
                                            InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireF32(inputs));
  if (inputs[0]->rank() != 1) return Refuse("input 0 needs one axis");
  const double most = node.attributes.Float("max_norm", 0);
  if (!(most > 0)) return Refuse("attribute max_norm is ", most);
  return OutputTypes{{DType::kF32, {}}};
}

}  // namespace

std::vector<Operator> GradientNormOperators() {
  Operator squares;
  squares.name = "SumSquares";
  squares.infer = InferSumSquares;
  squares.cost = PerElement<2>;
  Operator factor;
  factor.name = "ClipFactor";
  factor.infer = InferClipFactor;
  factor.attributes = {{"max_norm", AttributeKind::kFloat, true}};
  return {squares, factor};
}

}  // namespace loadline::models
