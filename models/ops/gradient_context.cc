// Helpers for writing gradient rules. Tested in tests/models/gradient_test.cc.
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "models/ops/operator.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::models {

GradientContext::GradientContext(Graph* graph, NodeId forward,
                                 absl::Span<const ValueId> output_gradients,
                                 std::vector<bool> wanted)
    : graph_(graph),
      forward_(graph->node(forward)),
      output_gradients_(output_gradients.begin(), output_gradients.end()),
      wanted_(std::move(wanted)),
      input_gradients_(forward_.inputs.size(), kNoValue) {
  LOADLINE_CHECK(output_gradients_.size() == forward_.outputs.size());
  LOADLINE_CHECK(wanted_.size() == forward_.inputs.size());
}

absl::StatusOr<std::vector<ValueId>> GradientContext::EmitAll(
    absl::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  return graph_->AddNode(op, absl::StrCat(forward_.name, ".grad"),
                         std::move(inputs), std::move(attributes),
                         Phase::kBackward);
}

absl::StatusOr<ValueId> GradientContext::Emit(absl::string_view op,
                                              std::vector<ValueId> inputs,
                                              Attributes attributes) {
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> outputs,
      EmitAll(op, std::move(inputs), std::move(attributes)));
  LOADLINE_CHECK(outputs.size() == 1);
  return outputs[0];
}

absl::StatusOr<ValueId> GradientContext::Scalar(float value) {
  for (size_t i = 0; i < graph_->values.size(); ++i) {
    const Value& v = graph_->values[i];
    if (v.kind == ValueKind::kConstant && v.type.dims.empty() &&
        v.type.dtype == DType::kF32 &&
        std::bit_cast<uint32_t>(v.initial->as<float>()[0]) ==
            std::bit_cast<uint32_t>(value)) {
      return ValueId(static_cast<int32_t>(i));
    }
  }
  return graph_->AddConstant(absl::StrCat("scalar_", value),
                             ScalarTensor(value));
}

absl::StatusOr<ValueId> GradientContext::SumTo(ValueId gradient,
                                               const TensorType& wanted_type) {
  // Copies, because emitting nodes moves the graph's values.
  const TensorType type = wanted_type;
  const std::vector<int64_t> dims = this->type(gradient).dims;
  if (dims == type.dims) return gradient;
  LOADLINE_CHECK(dims.size() >= type.dims.size());
  const size_t extra = dims.size() - type.dims.size();
  Ints axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t target = i < extra ? 1 : type.dims[i - extra];
    LOADLINE_CHECK(target == 1 || target == dims[i]);
    if (target == 1 && dims[i] != 1) axes.push_back(static_cast<int64_t>(i));
  }
  ValueId sum = gradient;
  if (!axes.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(
        sum, Emit("ReduceSum", {sum}, {{"axes", axes}, {"keepdims", 0}}));
  }
  if (this->type(sum).dims == type.dims) return sum;
  return Emit("Reshape", {sum}, {{"shape", type.dims}});
}

void GradientContext::SetInputGradient(int i, ValueId gradient) {
  LOADLINE_CHECK(type(gradient) == type(input(i)));
  input_gradients_[i] = gradient;
}

}  // namespace loadline::models
