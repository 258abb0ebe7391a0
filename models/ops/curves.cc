// The operator table's entries of the curves. Tested in
// tests/models/infer_test.cc and tests/conformance/curves_test.cc.
#include "models/ops/curves.h"

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<OutputTypes> InferValue(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  return OutputTypes{*inputs[0]};
}

// dy and x have the same type.
absl::StatusOr<OutputTypes> InferGradient(const Node&, InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloat(inputs));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, *inputs[0]));
  return OutputTypes{*inputs[0]};
}

absl::Status CurveGradient(GradientContext& c) {
  const CurveFacts& facts = *FindCurve(c.forward().op);
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId dx, c.Emit(facts.gradient, {c.output_gradient(0), c.input(0)},
                         c.forward().attributes));
  c.SetInputGradient(0, dx);
  return absl::OkStatus();
}

template <typename C>
Operator Entry() {
  Operator op;
  op.name = C::kFacts.name;
  op.infer = InferValue;
  op.gradient = CurveGradient;
  op.cost = PerElement<C::kFacts.flops>;
  op.inplace = {{0, 0}};
  op.row_cuts = CutPerElement;
  for (const CurveAttribute& attribute : C::kFacts.attributes) {
    if (attribute.name.empty()) break;
    op.attributes.push_back({attribute.name, AttributeKind::kFloat, true});
  }
  return op;
}

}  // namespace

std::vector<Operator> CurveOperators() {
  std::vector<Operator> all;
  ForEachCurve(Curves(), [&all](auto curve) {
    const Operator value = Entry<decltype(curve)>();
    Operator gradient = value;
    gradient.name = curve.kFacts.gradient;
    gradient.min_inputs = gradient.max_inputs = 2;
    gradient.infer = InferGradient;
    gradient.gradient = nullptr;
    all.push_back(value);
    all.push_back(gradient);
  });
  return all;
}

const CurveFacts* FindCurve(absl::string_view op) {
  const CurveFacts* found = nullptr;
  ForEachCurve(Curves(), [&](auto curve) {
    const CurveFacts& facts = decltype(curve)::kFacts;
    if (facts.name == op || facts.gradient == op) found = &facts;
  });
  return found;
}

}  // namespace loadline::models
