// Tested in tests/passes/add_gradients_test.cc for structure and in
// tests/conformance/gradient_test.cc against finite differences.
#include "passes/add_gradients.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "models/differentiate.h"
#include "passes/rewrite.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {

using models::Graph;
using models::ValueId;

absl::StatusOr<Gradients> AddGradients(Graph& graph, ValueId loss) {
  const models::TensorType& type = graph.value(loss).type;
  if (type.elements() != 1 || type.dtype != models::DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("a loss is one f32 number, and '", graph.value(loss).name,
                     "' is ", type.ToString()));
  }
  models::Differential what = {
      .y = loss, .seed_name = "loss.grad", .ends = "the loss and a parameter"};
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const models::Value& value = graph.values[i];
    if (value.kind == models::ValueKind::kParameter &&
        IsFloat(value.type.dtype)) {
      what.targets.push_back(ValueId{static_cast<int32_t>(i)});
    }
  }
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<ValueId> found,
                            models::Differentiate(graph, what));
  Gradients gradients;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != models::kNoValue) gradients[what.targets[i]] = found[i];
  }
  if (gradients.empty()) {
    return absl::InvalidArgumentError(
        "the loss depends on no parameter of the model: nothing to train");
  }
  return gradients;
}

}  // namespace loadline::passes
