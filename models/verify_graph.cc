// VerifyGraph: checks every invariant of a Graph, in the order in which later
// checks depend on them. Runs after every pass. Tested in
// tests/models/verify_graph_test.cc, one corruption at a time.
#include <set>

#include "absl/strings/str_cat.h"
#include "models/graph.h"
#include "models/ops/operator.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InternalError(absl::StrCat("broken graph: ", parts...));
}

bool InRange(const Graph& graph, ValueId id) {
  return static_cast<int32_t>(id) >= 0 && Index(id) < graph.values.size();
}

absl::Status CheckValue(const Value& value) {
  if (value.name.empty()) return Broken("a value has no name");
  const absl::StatusOr<TensorType> type =
      MakeTensorType(value.type.dtype, value.type.dims);
  if (!type.ok()) {
    return Broken("value \"", value.name, "\": ", type.status().message());
  }
  if (value.initial.has_value() != IsPersistent(value.kind)) {
    return Broken("value \"", value.name, "\" ",
                  value.initial.has_value() ? "is not persistent but has"
                                            : "is persistent but lacks",
                  " first contents");
  }
  if (!value.initial.has_value()) return absl::OkStatus();
  const Tensor& initial = *value.initial;
  // ImportOptions::allow_missing_weights.
  if (initial.type == value.type && initial.data == nullptr &&
      value.kind != ValueKind::kConstant) {
    return absl::OkStatus();
  }
  if (initial.type != value.type || initial.data == nullptr ||
      static_cast<int64_t>(initial.data->size()) != value.type.bytes()) {
    return Broken("first contents of value \"", value.name,
                  "\" are not of its type ", value.type.ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const Graph& graph) {
  std::set<absl::string_view> names;
  for (const Value& value : graph.values) {
    if (!names.insert(value.name).second) {
      return Broken("two values are named \"", value.name, "\"");
    }
  }
  names.clear();
  for (const Node& node : graph.nodes) {
    if (node.name.empty()) return Broken("a node has no name");
    if (!names.insert(node.name).second) {
      return Broken("two nodes are named \"", node.name, "\"");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const Graph& graph) {
  std::set<ValueId> listed;
  for (ValueId id : graph.inputs) {
    if (!InRange(graph, id)) return Broken("an input is no value");
    if (graph.value(id).kind != ValueKind::kInput) {
      return Broken("value \"", graph.value(id).name,
                    "\" is listed as an input but is none");
    }
    if (!listed.insert(id).second) {
      return Broken("input \"", graph.value(id).name, "\" is listed twice");
    }
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].kind == ValueKind::kInput &&
        listed.count(ValueId(static_cast<int32_t>(i))) == 0) {
      return Broken("input \"", graph.values[i].name, "\" is not listed");
    }
  }
  return absl::OkStatus();
}

// Checks one node, given the values that exist before it; marks its outputs.
absl::Status CheckNode(const Graph& graph, const Node& node,
                       std::vector<bool>* ready) {
  std::vector<const TensorType*> types;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      types.push_back(nullptr);
      continue;
    }
    if (!InRange(graph, id)) {
      return Broken("node \"", node.name, "\" reads no value");
    }
    if (!(*ready)[Index(id)]) {
      return Broken("node \"", node.name, "\" reads \"", graph.value(id).name,
                    "\" before it is made");
    }
    types.push_back(&graph.value(id).type);
  }
  const absl::StatusOr<std::vector<TensorType>> inferred =
      InferTypes(node, types);
  if (!inferred.ok()) return Broken(inferred.status().message());
  if (inferred->size() != node.outputs.size()) {
    return Broken("node \"", node.name, "\" has ", node.outputs.size(),
                  " outputs, its operator makes ", inferred->size());
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (!InRange(graph, id)) {
      return Broken("node \"", node.name, "\" makes no value");
    }
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kIntermediate) {
      return Broken("node \"", node.name, "\" makes \"", value.name,
                    "\", which is not an intermediate value");
    }
    if ((*ready)[Index(id)]) {
      return Broken("value \"", value.name,
                    "\" is made twice, again by node \"", node.name, "\"");
    }
    if (value.type != (*inferred)[i]) {
      return Broken("value \"", value.name, "\" is ", value.type.ToString(),
                    " but node \"", node.name, "\" makes ",
                    (*inferred)[i].ToString());
    }
    (*ready)[Index(id)] = true;
  }
  return absl::OkStatus();
}

absl::Status CheckUpdates(const Graph& graph) {
  std::set<ValueId> old_versions;
  std::set<ValueId> new_versions;
  for (const auto& [old_id, new_id] : graph.updates) {
    if (!InRange(graph, old_id) || !InRange(graph, new_id)) {
      return Broken("an update names no value");
    }
    const Value& old_version = graph.value(old_id);
    const Value& new_version = graph.value(new_id);
    if (old_version.kind != ValueKind::kParameter &&
        old_version.kind != ValueKind::kState) {
      return Broken("an update changes \"", old_version.name,
                    "\", which is neither a parameter nor a state");
    }
    if (new_version.kind != ValueKind::kIntermediate) {
      return Broken("the update of \"", old_version.name,
                    "\" is not made by a node");
    }
    if (new_version.type != old_version.type) {
      return Broken("the update of \"", old_version.name, "\" is ",
                    new_version.type.ToString(), ", not ",
                    old_version.type.ToString());
    }
    if (!old_versions.insert(old_id).second) {
      return Broken("\"", old_version.name, "\" is updated twice");
    }
    if (!new_versions.insert(new_id).second) {
      return Broken("\"", new_version.name, "\" updates two values");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyGraph(const Graph& graph) {
  for (const Value& value : graph.values) {
    LOADLINE_RETURN_IF_ERROR(CheckValue(value));
  }
  LOADLINE_RETURN_IF_ERROR(CheckNames(graph));
  LOADLINE_RETURN_IF_ERROR(CheckInputs(graph));
  std::vector<bool> ready;
  for (const Value& value : graph.values) {
    ready.push_back(value.kind != ValueKind::kIntermediate);
  }
  for (const Node& node : graph.nodes) {
    LOADLINE_RETURN_IF_ERROR(CheckNode(graph, node, &ready));
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    if (!ready[i]) {
      return Broken("value \"", graph.values[i].name, "\" is made by no node");
    }
  }
  for (ValueId id : graph.outputs) {
    if (!InRange(graph, id)) return Broken("an output is no value");
  }
  return CheckUpdates(graph);
}

}  // namespace loadline::models
