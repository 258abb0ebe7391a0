// Follows models/onnx/quantized_weights.cc and inference_form.cc, which decide
// what the export rounds. Tested in
// tests/passes/compress/quantize_biases_test.cc and, against ONNX Runtime, in
// tests/onnxruntime/quantized_test.
#include "passes/compress/quantize_biases.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Index;
using models::kNoValue;
using models::Node;
using models::NodeId;
using models::TensorType;
using models::ValueId;

// A float holds every integer of so many bits.
constexpr int64_t kBits = 24;
constexpr double kMostCode = (1 << 23) - 1;

// What the file has as an initializer.
bool IsVector(const models::Value& value, int64_t elements) {
  return models::IsPersistent(value.kind) &&
         value.type == TensorType{models::DType::kF32, {elements}};
}

}  // namespace

BiasQuantizer::BiasQuantizer(Graph& graph,
                             const std::vector<QuantizePoint>& points)
    : graph_(graph),
      producer_(graph.values.size(), nullptr),
      nodes_(graph.nodes),
      readers_(models::IndexGraph(graph).consumers),
      is_output_(graph.values.size(), false) {
  for (const Node& node : nodes_) {
    for (ValueId id : node.outputs) producer_[Index(id)] = &node;
  }
  for (ValueId id : graph.outputs) is_output_[Index(id)] = true;
  for (const QuantizePoint& point : points) {
    points_[point.tensor.value] = &point;
    value_of_[point.tensor.name] = point.tensor.value;
  }
}

bool BiasQuantizer::IsFolded(const Node& conv, ValueId weight) const {
  const ValueId y = conv.outputs[0];
  if (conv.op != "Conv" || is_output_[Index(y)] ||
      readers_[Index(y)].size() != 1 || readers_[Index(weight)].size() != 1 ||
      !points_.at(weight)->tensor.symmetric) {
    return false;
  }
  const Node& norm = nodes_[Index(readers_[Index(y)][0])];
  if (norm.op != "BatchNormalization" || norm.inputs[0] != y) return false;
  const int64_t channels = graph_.value(y).type.dims[1];
  for (size_t i = 1; i < norm.inputs.size(); ++i) {
    if (!IsVector(graph_.value(norm.inputs[i]), channels)) return false;
  }
  return true;
}

std::optional<BiasQuantizer::Integer> BiasQuantizer::Find(
    const std::vector<ValueId>& inputs, const Node& node) const {
  const bool plain_gemm = node.op == "Gemm" &&
                          node.attributes.Float("alpha", 1) == 1 &&
                          node.attributes.Float("beta", 1) == 1;
  if (node.op != "Conv" && !plain_gemm) return std::nullopt;
  ValueId x = inputs[0];
  while (producer_[Index(x)] != nullptr &&
         producer_[Index(x)]->op == "Dropout") {
    x = producer_[Index(x)]->inputs[0];
  }
  const auto input = points_.find(x);
  const auto weight = points_.find(inputs[1]);
  if (input == points_.end() || weight == points_.end() ||
      !weight->second->tensor.weight) {
    return std::nullopt;
  }
  const std::string& same_as = input->second->tensor.same_as;
  if (!same_as.empty()) x = value_of_.at(same_as);
  const auto input_scale = scales_.find(x);
  const auto weight_scale = scales_.find(inputs[1]);
  // None: a codebook, or a range that is only watched.
  if (input_scale == scales_.end() || weight_scale == scales_.end()) {
    return std::nullopt;
  }
  Integer integer;
  integer.input_scale = input_scale->second;
  integer.weight_scale = weight_scale->second;
  integer.name = weight->second->tensor.name;
  integer.channels = graph_.value(node.outputs[0]).type.dims[1];
  if (inputs.size() > 2 && inputs[2] != kNoValue) {
    // One that is computed, or has another shape, stays a float.
    if (!IsVector(graph_.value(inputs[2]), integer.channels)) {
      return std::nullopt;
    }
    integer.bias = inputs[2];
  }
  return integer;
}

absl::StatusOr<ValueId> BiasQuantizer::Add(absl::string_view op,
                                           const Integer& integer,
                                           absl::string_view what,
                                           std::vector<ValueId> inputs) {
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      graph_.AddNode(op, absl::StrCat(integer.name, ".bias_", what),
                     std::move(inputs)));
  return outputs[0];
}

absl::StatusOr<ValueId> BiasQuantizer::Constant(const Integer& integer,
                                                absl::string_view what,
                                                int64_t channels,
                                                double number) {
  std::string name = absl::StrCat(integer.name, ".bias_", what);
  for (int i = 1; graph_.Find(name).has_value(); ++i) {
    name = absl::StrCat(integer.name, ".bias_", what, ".", i);
  }
  const std::vector<float> numbers(static_cast<size_t>(channels),
                                   static_cast<float>(number));
  return graph_.AddConstant(
      name,
      models::MakeTensor({models::DType::kF32, {channels}}, numbers.data()));
}

// `bias` in steps of `step`, which is at least 0, or of |bias| / kMostCode
// where that is more. As in a range's grid, no gradient goes to the step.
absl::StatusOr<ValueId> BiasQuantizer::Round(const Integer& integer,
                                             ValueId bias, ValueId step) {
  LOADLINE_ASSIGN_OR_RETURN(
      const ValueId most,
      Constant(integer, "codes", integer.channels, -kMostCode));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId low,
                            Add("Mul", integer, "low", {step, most}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId high,
                            Add("Abs", integer, "high", {bias}));
  const models::Attributes grid = {
      {"bits", kBits}, {"signed", int64_t{1}}, {"symmetric", int64_t{1}}};
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> scale,
      graph_.AddNode("QuantizationGrid",
                     absl::StrCat(integer.name, ".bias_grid"), {low, high},
                     grid));
  models::Attributes by_channel = grid;
  by_channel.Set("axis", int64_t{0});
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> rounded,
      graph_.AddNode("FakeQuantize",
                     absl::StrCat(integer.name, ".bias_quantized"),
                     {bias, scale[0], scale[1]}, by_channel));
  return rounded[0];
}

absl::Status BiasQuantizer::QuantizeFolded(const Integer& conv, Node* norm) {
  const ValueId scale = norm->inputs[1];
  const ValueId bias = norm->inputs[2];
  const ValueId mean = norm->inputs[3];
  LOADLINE_ASSIGN_OR_RETURN(
      const ValueId epsilon,
      Constant(conv, "epsilon", 1, norm->attributes.Float("epsilon", 0)));
  LOADLINE_ASSIGN_OR_RETURN(
      const ValueId variance,
      Add("Add", conv, "variance", {norm->inputs[4], epsilon}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId deviation,
                            Add("Sqrt", conv, "deviation", {variance}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId factor,
                            Add("Div", conv, "factor", {scale, deviation}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId moved,
                            Add("Mul", conv, "moved", {mean, factor}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId shift,
                            Add("Sub", conv, "shift", {bias, moved}));
  if (conv.bias != kNoValue) {
    LOADLINE_ASSIGN_OR_RETURN(const ValueId own,
                              Add("Mul", conv, "own", {conv.bias, factor}));
    LOADLINE_ASSIGN_OR_RETURN(shift, Add("Add", conv, "sum", {shift, own}));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const ValueId product,
      Add("Mul", conv, "step", {conv.weight_scale, conv.input_scale}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId size,
                            Add("Abs", conv, "size", {factor}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId step,
                            Add("Mul", conv, "step", {product, size}));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId rounded, Round(conv, shift, step));
  LOADLINE_ASSIGN_OR_RETURN(norm->inputs[2],
                            Add("Add", conv, "shifted", {rounded, moved}));
  return absl::OkStatus();
}

absl::Status BiasQuantizer::Quantize(const std::vector<ValueId>& inputs,
                                     Node* node) {
  if (node->op == "BatchNormalization") {
    const auto conv = folded_.find(inputs[0]);
    return conv == folded_.end() ? absl::OkStatus()
                                 : QuantizeFolded(conv->second, node);
  }
  const std::optional<Integer> integer = Find(inputs, *node);
  if (!integer.has_value()) return absl::OkStatus();
  if (IsFolded(*node, inputs[1])) {
    if (node->inputs.size() > 2) node->inputs.resize(2);
    folded_[node->outputs[0]] = *integer;
    return absl::OkStatus();
  }
  if (integer->bias == kNoValue) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const ValueId step,
                            Add("Mul", *integer, "step",
                                {integer->weight_scale, integer->input_scale}));
  LOADLINE_ASSIGN_OR_RETURN(node->inputs[2],
                            Round(*integer, integer->bias, step));
  return absl::OkStatus();
}

}  // namespace loadline::passes
