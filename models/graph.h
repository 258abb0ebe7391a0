// The Graph: what a model or a whole training step computes. It is in static
// single assignment form, every value has a static type, and nodes are in a
// valid order.
//
// Example:
//   Graph graph;
//   ValueId x = graph.AddInput("x", {DType::kF32, {32, 64}});
//   ValueId w = graph.AddParameter("w", initial);
//   LOADLINE_ASSIGN_OR_RETURN(std::vector<ValueId> y,
//                             graph.AddNode("MatMul", "fc", {x, w}));
//
// Views: the output of an operator with the `view` trait (Reshape) shares its
// input's bytes; see models/storage.h.
#ifndef LOADLINE_MODELS_GRAPH_H_
#define LOADLINE_MODELS_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/attributes.h"
#include "models/name_index.h"
#include "models/types.h"

namespace loadline::models {

enum class ValueId : int32_t {};
enum class NodeId : int32_t {};
// An absent optional input.
inline constexpr ValueId kNoValue{-1};
constexpr size_t Index(ValueId id) { return static_cast<size_t>(id); }
constexpr size_t Index(NodeId id) { return static_cast<size_t>(id); }

enum class ValueKind {
  kInput,         // passed at every step: data, target
  kParameter,     // persistent, trained
  kState,         // persistent: running statistics, optimizer state
  kConstant,      // persistent, never changes
  kIntermediate,  // output of a node
};
constexpr bool IsPersistent(ValueKind kind) {
  return kind == ValueKind::kParameter || kind == ValueKind::kState ||
         kind == ValueKind::kConstant;
}

struct Value {
  std::string name;  // unique within the graph
  TensorType type;
  ValueKind kind = ValueKind::kIntermediate;
  // Initial contents of kParameter, kState, kConstant.
  std::optional<Tensor> initial;
};

// The part of the training step that a node belongs to; for reports.
enum class Phase { kForward, kLoss, kBackward, kUpdate };

struct Node {
  std::string name;  // unique within the graph
  std::string op;    // a name of the operator table, models/ops/operator.h
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  Phase phase = Phase::kForward;
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // a valid order
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  // (persistent value, the value that replaces it when the step ends).
  std::vector<std::pair<ValueId, ValueId>> updates;

  const Value& value(ValueId id) const { return values[Index(id)]; }
  Value& value(ValueId id) { return values[Index(id)]; }
  const Node& node(NodeId id) const { return nodes[Index(id)]; }

  ValueId AddInput(absl::string_view name, TensorType type);
  ValueId AddParameter(absl::string_view name, Tensor initial);
  ValueId AddState(absl::string_view name, Tensor initial);
  ValueId AddConstant(absl::string_view name, Tensor tensor);
  // Appends a node; its output types come from the operator's `infer`.
  // Normalizes negative axes and drops trailing absent inputs. Names that are
  // taken get a suffix. Outputs are named `name` or `name.1`, ... Errors:
  // unknown operator (Unimplemented), types that the operator refuses.
  absl::StatusOr<std::vector<ValueId>> AddNode(absl::string_view op,
                                               absl::string_view name,
                                               std::vector<ValueId> inputs,
                                               Attributes attributes = {},
                                               Phase phase = Phase::kForward);
  // Scans all values.
  std::optional<ValueId> Find(absl::string_view value_name) const;
  // Gives another name, which nothing of the kind may have. Names that change
  // otherwise may be given a second time by AddNode.
  void Rename(ValueId id, std::string to);
  void Rename(NodeId id, std::string to);

 private:
  ValueId AddValue(absl::string_view value_name, TensorType type,
                   ValueKind kind, std::optional<Tensor> initial);
  ValueId AddPersistent(absl::string_view value_name, Tensor initial,
                        ValueKind kind);

  NameIndex node_names_;
  NameIndex value_names_;
};

// Removes the nodes marked in `erase` (one flag per node) and every
// intermediate value that then is neither made nor used; ids move up. Returns
// the new id of each old value, kNoValue for a removed one.
std::vector<ValueId> EraseNodes(Graph* graph, const std::vector<bool>& erase);

// Checks all invariants of a Graph: ids in range, single assignment (every
// intermediate value is made by exactly one node, other values by none), valid
// order, unique names, types as the operators infer them, initial contents of
// the right size, `inputs` listing every kInput value once, updates of equal
// type. Internal error naming the node or value.
absl::Status VerifyGraph(const Graph& graph);

// For each value, the node that makes it (-1: none) and its readers, in order.
struct GraphIndex {
  std::vector<int32_t> producer;
  std::vector<std::vector<NodeId>> consumers;
};
GraphIndex IndexGraph(const Graph& graph);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_GRAPH_H_
