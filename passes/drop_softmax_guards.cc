// A softmax gives NaN for a row that contains a NaN, contains plus infinity, or
// has only minus infinities. The first two occur only in a model that has
// diverged, and PyTorch shows them. So the guard can be removed where the third
// is impossible. Tested in tests/passes/drop_softmax_guards_test.cc.
#include "passes/drop_softmax_guards.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "passes/remove_dead_nodes.h"
#include "passes/rewrite.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::GraphIndex;
using models::kNoValue;
using models::Node;
using models::ValueId;

class Guards {
 public:
  explicit Guards(const Graph& graph)
      : graph_(graph), index_(models::IndexGraph(graph)) {}

  // The p whose NaNs `node` replaces, or kNoValue.
  ValueId Guarded(const Node& node) const {
    if (node.op != "Where" || ScalarConstant(graph_, node.inputs[1]) != 0.0) {
      return kNoValue;
    }
    const ValueId p = node.inputs[2];
    const Node* isnan = Producer(node.inputs[0]);
    const Node* same = isnan != nullptr && isnan->op == "Not"
                           ? Producer(isnan->inputs[0])
                           : nullptr;
    const Node* softmax = Producer(p);
    const bool guards =
        same != nullptr && same->op == "Equal" && same->inputs[0] == p &&
        same->inputs[1] == p && softmax != nullptr &&
        softmax->op == "Softmax" &&
        graph_.value(node.outputs[0]).type == graph_.value(p).type;
    return guards && IsFinite(softmax->inputs[0]) ? p : kNoValue;
  }

 private:
  const Node* Producer(ValueId id) const {
    const int32_t producer = index_.producer[Index(id)];
    return producer < 0 ? nullptr : &graph_.nodes[producer];
  }

  bool IsFiniteConstant(ValueId id) const {
    const models::Value& value = graph_.value(id);
    if (value.kind != models::ValueKind::kConstant ||
        value.type.dtype != models::DType::kF32) {
      return false;
    }
    const absl::Span<const float> numbers = value.initial->as<float>();
    return std::all_of(numbers.begin(), numbers.end(),
                       [](float x) { return std::isfinite(x); });
  }

  // Whether `id` is a product that only finite constants scale and mask.
  bool IsFinite(ValueId id) const {
    while (const Node* node = Producer(id)) {
      if (node->op == "MatMul") return true;
      const bool selects = node->op == "Where";
      if (!selects && node->op != "Add" && node->op != "Mul" &&
          node->op != "Div") {
        return false;
      }
      const ValueId a = node->inputs[selects ? 1 : 0];
      const ValueId b = node->inputs[selects ? 2 : 1];
      if (IsFiniteConstant(b)) {
        id = a;
      } else if (IsFiniteConstant(a) && node->op != "Div") {
        id = b;
      } else {
        return false;
      }
    }
    return false;
  }

  const Graph& graph_;
  const GraphIndex index_;
};

}  // namespace

absl::Status DropSoftmaxGuards(Graph& graph) {
  const Guards guards(graph);
  std::vector<ValueId> replacement = IdentityReplacement(graph);
  bool found = false;
  for (const Node& node : graph.nodes) {
    const ValueId p = guards.Guarded(node);
    if (p == kNoValue) continue;
    replacement[Index(node.outputs[0])] = p;
    found = true;
  }
  if (!found) return absl::OkStatus();
  ReplaceUses(graph, replacement);
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
