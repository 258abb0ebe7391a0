// Rules for matrix products and convolutions.
// Tested in tests/models/onnx_rules_test.cc.
#include "models/onnx/node_attributes.h"
#include "models/onnx/walk.h"
#include "models/onnx/window.h"
#include "planner/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

absl::Status MatMul(Walk& walk, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId a, walk.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId b, walk.Use(node, 1));
  return walk.EmitOne(node, "MatMul", {a, b});
}

absl::Status Gemm(Walk& walk, const onnx::NodeProto& node) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < (walk.Has(node, 2) ? 3 : 2); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, walk.Use(node, i));
    inputs.push_back(id);
  }
  return walk.EmitOne(node, "Gemm", std::move(inputs),
                      {{"alpha", FloatAttribute(node, "alpha", 1.0)},
                       {"beta", FloatAttribute(node, "beta", 1.0)},
                       {"transA", IntAttribute(node, "transA", 0)},
                       {"transB", IntAttribute(node, "transB", 0)}});
}

absl::Status Conv(Walk& walk, const onnx::NodeProto& node) {
  const Ints weight = walk.Type(node, 1).dims;
  if (weight.size() < 3) {
    return absl::InvalidArgumentError("its weight needs spatial axes");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      Attributes attributes,
      WindowAttributes(node, walk.Type(node, 0).dims,
                       {weight.begin() + 2, weight.end()}));
  attributes.Set("group", IntAttribute(node, "group", 1));
  std::vector<ValueId> inputs;
  for (int i = 0; i < (walk.Has(node, 2) ? 3 : 2); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, walk.Use(node, i));
    inputs.push_back(id);
  }
  return walk.EmitOne(node, "Conv", std::move(inputs), std::move(attributes));
}

}  // namespace

const std::map<std::string, Rule>& LinearRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"MatMul", MatMul}, {"Gemm", Gemm}, {"Conv", Conv}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
