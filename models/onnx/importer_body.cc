// The part of Importer that imports the nodes of a subgraph in place. Its names
// get a prefix, so that a body can be imported several times. Tested in
// tests/models/onnx_control_flow_test.cc.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "onnx/defs/schema.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int kMostBodyDepth = 16;
constexpr int64_t kMostBodyNodes = int64_t{1} << 18;

using Renames = std::map<std::string, std::string>;

void Rename(const Renames& names, std::string* name) {
  const auto renamed = names.find(*name);
  if (renamed != names.end()) *name = renamed->second;
}

// Names that the graph's nodes and outputs read, also in graphs of their own.
// Names inside differ from those around them.
void RenameReads(const Renames& names, onnx::GraphProto* graph) {
  for (auto& node : *graph->mutable_node()) {
    for (auto& name : *node.mutable_input()) Rename(names, &name);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) RenameReads(names, attribute.mutable_g());
    }
  }
  for (auto& output : *graph->mutable_output()) {
    Rename(names, output.mutable_name());
  }
}

// The body under names of its own.
onnx::GraphProto Renamed(const onnx::GraphProto& body,
                         const std::string& prefix) {
  Renames names;
  const auto own = [&](const std::string& name) {
    if (!name.empty()) names[name] = absl::StrCat(prefix, name);
  };
  for (const auto& input : body.input()) own(input.name());
  for (const auto& tensor : body.initializer()) own(tensor.name());
  for (const auto& node : body.node()) {
    for (const auto& name : node.output()) own(name);
  }
  onnx::GraphProto renamed = body;
  RenameReads(names, &renamed);
  for (auto& input : *renamed.mutable_input()) {
    Rename(names, input.mutable_name());
  }
  for (auto& tensor : *renamed.mutable_initializer()) {
    Rename(names, tensor.mutable_name());
  }
  for (auto& node : *renamed.mutable_node()) {
    for (auto& name : *node.mutable_output()) Rename(names, &name);
  }
  return renamed;
}

// The onnx library checks this for the nodes of the graph itself.
absl::Status CheckInputs(const onnx::NodeProto& node) {
  const auto* schema =
      onnx::OpSchemaRegistry::Schema(node.op_type(), kOpset, node.domain());
  if (schema == nullptr) return absl::OkStatus();
  for (int i = 0; i < schema->min_input(); ++i) {
    const auto& formal = schema->inputs();
    const size_t at = std::min(static_cast<size_t>(i), formal.size() - 1);
    if (formal[at].GetOption() == onnx::OpSchema::Single &&
        (i >= node.input_size() || node.input(i).empty())) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Importer::Bind(const std::string& name, Binding binding) {
  if (name.empty()) return;
  if (binding.constant) {
    folded_bytes_ += binding.constant->type.bytes();
  } else if (binding.id != kNoValue) {
    imported_.value_of[name] = binding.id;
  }
  bindings_[name] = std::move(binding);
}

void Importer::Forget(const std::string& name) {
  const auto it = bindings_.find(name);
  if (it != bindings_.end()) {
    if (it->second.constant && it->second.constant->data != nullptr) {
      folded_bytes_ -= it->second.constant->type.bytes();
    }
    bindings_.erase(it);
  }
  uses_.erase(name);
}

absl::Status Importer::VisitNodes(const onnx::GraphProto& graph) {
  const std::vector<bool> needed = NeededNodes(graph);
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[static_cast<size_t>(n)]) continue;
    for (const auto& name : ReadNames(graph.node(n))) ++uses_[name];
  }
  for (const auto& output : graph.output()) ++uses_[output.name()];
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[static_cast<size_t>(n)]) continue;
    const auto& node = graph.node(n);
    absl::Status status = CheckInputs(node);
    if (status.ok()) status = Visit(node);
    if (!status.ok()) {
      return absl::Status(
          status.code(), absl::StrCat(NodeLabel(node), ": ", status.message()));
    }
    Release(node);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Binding>> Importer::VisitBody(
    const onnx::GraphProto& body, std::vector<Binding> inputs) {
  if (static_cast<size_t>(body.input_size()) != inputs.size()) {
    return absl::InvalidArgumentError("its body has other inputs");
  }
  body_nodes_ += body.node_size();
  if (body_depth_ >= kMostBodyDepth || body_nodes_ > kMostBodyNodes) {
    return absl::ResourceExhaustedError(
        "the model's control flow is too deep, or has too many nodes when it "
        "is written out");
  }
  const onnx::GraphProto own =
      Renamed(body, absl::StrCat("body", bodies_++, "/"));
  for (int i = 0; i < own.input_size(); ++i) {
    Bind(own.input(i).name(), std::move(inputs[static_cast<size_t>(i)]));
  }
  for (const auto& tensor : own.initializer()) {
    int64_t budget_bytes = options_.max_bytes;
    LOADLINE_ASSIGN_OR_RETURN(Tensor contents,
                              ReadTensor(tensor, "", &budget_bytes));
    LOADLINE_RETURN_IF_ERROR(
        DefineConstant(tensor.name(), std::move(contents)));
  }
  ++body_depth_;
  const absl::Status visited = VisitNodes(own);
  --body_depth_;
  LOADLINE_RETURN_IF_ERROR(visited);
  std::vector<Binding> outputs;
  for (const auto& output : own.output()) {
    const Binding* binding = Find(output.name());
    if (binding == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("its body does not make '", output.name(), "'"));
    }
    outputs.push_back(*binding);
  }
  for (const auto& output : own.output()) --uses_[output.name()];
  for (const auto& input : own.input()) Forget(input.name());
  for (const auto& tensor : own.initializer()) Forget(tensor.name());
  for (const auto& node : own.node()) {
    for (const auto& name : node.output()) Forget(name);
  }
  return outputs;
}

}  // namespace loadline::models::onnx_internal
