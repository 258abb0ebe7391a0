// The product with v of a match, or the Transpose after it, is replaced in
// place by the Attention, so that its output keeps its name. The other nodes of
// the match then have no readers and are removed. MatchAttention finds the
// match. Tested in tests/passes/fuse_attention_test.cc and
// fuse_attention_masks_test.cc.
#include "passes/fuse_attention.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/match_attention.h"
#include "passes/remove_dead_nodes.h"
#include "passes/rewrite.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::GraphIndex;
using models::kNoValue;
using models::Node;
using models::ValueId;

// The width of the widest heads that every device has a kernel for.
constexpr int64_t kMostWidth = 256;

bool IsWide(const Graph& graph, const AttentionOperand& operand) {
  const models::Ints& dims = graph.value(operand.value).type.dims;
  const size_t last = operand.perm.empty()
                          ? dims.size() - 1
                          : static_cast<size_t>(operand.perm.back());
  return dims[last] > kMostWidth;
}

// Builds the nodes of a match's operands, and the Attention.
class Rewriter {
 public:
  Rewriter(Graph& graph, const AttentionMatch& match)
      : graph_(graph),
        match_(match),
        name_(graph.nodes[match.last].name),
        old_nodes_(graph.nodes.size()) {}

  absl::Status Run() {
    std::vector<ValueId> inputs;
    for (const AttentionOperand* operand : {&match_.q, &match_.k, &match_.v}) {
      ValueId value = operand->value;
      if (!operand->perm.empty()) {
        LOADLINE_ASSIGN_OR_RETURN(
            value, Make("Transpose", {value}, {{"perm", operand->perm}}));
      }
      inputs.push_back(value);
    }
    if (match_.mask.has_value()) {
      LOADLINE_ASSIGN_OR_RETURN(ValueId mask, MakeMask(*match_.mask));
      inputs.push_back(mask);
    }
    Attributes attributes = {{"scale", match_.scale},
                             {"causal", int64_t{match_.causal}},
                             {"interleaved", int64_t{match_.interleaved}}};
    if (match_.ratio > 0) {
      attributes.Set("ratio", match_.ratio);
      attributes.Set("salt", match_.salt);
      if (match_.offset.has_value()) attributes.Set("offset", *match_.offset);
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        graph_.AddNode("Attention", name_, inputs, attributes));
    // The last node becomes the Attention; its first output stays the same.
    Node& last = graph_.nodes[match_.last];
    const ValueId y = last.outputs[0];
    const std::string name = last.name;
    last = std::move(graph_.nodes.back());
    last.outputs[0] = y;
    last.name = name;
    const std::string statistic = absl::StrCat(name, ".lse");
    if (!graph_.Find(statistic).has_value()) {
      graph_.Rename(made[1], statistic);
    }
    graph_.nodes.pop_back();
    std::rotate(graph_.nodes.begin() + static_cast<int64_t>(match_.last),
                graph_.nodes.begin() + static_cast<int64_t>(old_nodes_),
                graph_.nodes.end());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<ValueId> Make(absl::string_view op,
                               std::vector<ValueId> inputs,
                               Attributes attributes) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph_.AddNode(op, absl::StrCat(name_, ".", op), std::move(inputs),
                       std::move(attributes)));
    return outputs[0];
  }

  absl::StatusOr<ValueId> MakeMask(const AttentionMask& mask) {
    if (mask.value != kNoValue) return mask.value;
    const auto scalar = [&](float value) {
      return graph_.AddConstant(absl::StrCat(name_, ".mask"),
                                models::ScalarTensor(value));
    };
    const ValueId if_true = scalar(mask.if_true);
    return Make("Where", {mask.condition, if_true, scalar(mask.if_false)}, {});
  }

  Graph& graph_;
  const AttentionMatch match_;
  const std::string name_;
  const size_t old_nodes_;
};

}  // namespace

absl::Status FuseAttention(Graph& graph) {
  GraphIndex index = models::IndexGraph(graph);
  std::vector<bool> named = NamedByGraph(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op != "Softmax") continue;
    const std::optional<AttentionMatch> match =
        MatchAttention(graph, index, named, graph.nodes[i]);
    if (!match.has_value() || IsWide(graph, match->q) ||
        IsWide(graph, match->v)) {
      continue;
    }
    LOADLINE_RETURN_IF_ERROR(Rewriter(graph, *match).Run());
    index = models::IndexGraph(graph);
    named = NamedByGraph(graph);
  }
  return RemoveDeadNodes(graph);
}

}  // namespace loadline::passes
