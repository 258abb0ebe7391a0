// Both write the nodes as a graph of ONNX, which the importer visits as it does
// a body: so constants are folded. Tested in
// tests/models/onnx_control_flow_test.cc.
#include "models/onnx/unrolled_body.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/node_attributes.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

onnx::NodeProto* AddNode(const char* op, const onnx::NodeProto& of,
                         onnx::GraphProto* graph) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type(op);
  node->set_name(of.name());
  return node;
}

void AddInt(const char* name, int64_t number, onnx::NodeProto* node) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(number);
}

// A vector of one number.
void AddAxes(int64_t axis, onnx::GraphProto* graph) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Constant");
  node->add_output("axes");
  auto* values = node->add_attribute();
  values->set_name("value_ints");
  values->set_type(onnx::AttributeProto::INTS);
  values->add_ints(axis);
}

}  // namespace

absl::StatusOr<const onnx::GraphProto*> BodyOf(const onnx::NodeProto& node,
                                               const char* attribute) {
  const auto* found = FindAttribute(node, attribute);
  if (found == nullptr || !found->has_g()) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs a graph ", attribute));
  }
  return &found->g();
}

absl::StatusOr<Binding> StackBindings(Importer& importer,
                                      const onnx::NodeProto& node,
                                      std::vector<Binding> parts,
                                      int64_t axis) {
  onnx::GraphProto graph;
  AddAxes(axis, &graph);
  for (size_t i = 0; i < parts.size(); ++i) {
    graph.add_input()->set_name(absl::StrCat("part", i));
    onnx::NodeProto* row = AddNode("Unsqueeze", node, &graph);
    row->set_name(absl::StrCat(node.name(), "/part"));
    row->add_input(absl::StrCat("part", i));
    row->add_input("axes");
    row->add_output(absl::StrCat("row", i));
  }
  onnx::NodeProto* concat = AddNode("Concat", node, &graph);
  for (size_t i = 0; i < parts.size(); ++i) {
    concat->add_input(absl::StrCat("row", i));
  }
  concat->add_output("all");
  AddInt("axis", axis, concat);
  graph.add_output()->set_name("all");
  LOADLINE_ASSIGN_OR_RETURN(std::vector<Binding> made,
                            importer.VisitBody(graph, std::move(parts)));
  return std::move(made[0]);
}

absl::StatusOr<std::vector<Binding>> UnstackBinding(Importer& importer,
                                                    const onnx::NodeProto& node,
                                                    Binding whole, int64_t axis,
                                                    int64_t count) {
  onnx::GraphProto graph;
  AddAxes(axis, &graph);
  graph.add_input()->set_name("whole");
  onnx::NodeProto* split = AddNode("Split", node, &graph);
  split->add_input("whole");
  AddInt("axis", axis, split);
  AddInt("num_outputs", count, split);
  for (int64_t i = 0; i < count; ++i) {
    split->add_output(absl::StrCat("row", i));
    onnx::NodeProto* part = AddNode("Squeeze", node, &graph);
    part->set_name(absl::StrCat(node.name(), "/part"));
    part->add_input(absl::StrCat("row", i));
    part->add_input("axes");
    part->add_output(absl::StrCat("part", i));
    graph.add_output()->set_name(absl::StrCat("part", i));
  }
  return importer.VisitBody(graph, {std::move(whole)});
}

}  // namespace loadline::models::onnx_internal
