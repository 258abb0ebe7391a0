// The node is found by its name in the message, because three programs refuse:
// the onnx library's checker, the import, and the comparison of graphs. Tested
// in tests/conformance/pruned_export_test.cc.
#include "models/onnx/pruned_refusal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr size_t kMostNamed = 4;

// The ONNX node's name: its second node in the graph is NAME.1.
std::string FileName(const Graph& graph, int32_t n) {
  const absl::string_view name = graph.nodes[static_cast<size_t>(n)].name;
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || dot + 1 == name.size() ||
      !std::all_of(name.begin() + static_cast<long>(dot) + 1, name.end(),
                   absl::ascii_isdigit)) {
    return std::string(name);
  }
  const absl::string_view stem = name.substr(0, dot);
  const bool first =
      std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [stem](const Node& node) { return node.name == stem; });
  return std::string(first ? stem : name);
}

bool MentionsName(absl::string_view message, absl::string_view name) {
  for (const char* quote : {"\"", "'"}) {
    if (absl::StrContains(message, absl::StrCat(quote, name, quote))) {
      return true;
    }
  }
  return absl::StrContains(message, absl::StrCat("node name: ", name, ")"));
}

// The first node of the graph that the message names; -1: none.
int32_t NamedNode(const Graph& graph, absl::string_view message) {
  int32_t found = -1;
  size_t length = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::string& name = graph.nodes[n].name;
    if (name.size() > length && MentionsName(message, name)) {
      found = static_cast<int32_t>(n);
      length = name.size();
    }
  }
  return found;
}

class Layers {
 public:
  Layers(const Graph& original, const Graph& pruned)
      : original_(original), pruned_(pruned), index_(IndexGraph(original)) {}

  // Those nearest before the node that make pruned channels out of weights; if
  // there are none, those nearest in any direction.
  std::vector<std::string> Near(int32_t node) {
    Walk(node, /*forward=*/false);
    if (found_.empty()) Walk(node, /*forward=*/true);
    return found_;
  }

 private:
  const Node& NodeAt(int32_t n) const {
    return original_.nodes[static_cast<size_t>(n)];
  }
  bool Changed(ValueId id) const {
    return original_.value(id).type != pruned_.value(id).type;
  }
  void Walk(int32_t node, bool forward) {
    std::vector<bool> seen(original_.nodes.size(), false);
    std::vector<int32_t> next = {node};
    seen[static_cast<size_t>(node)] = true;
    const auto visit = [&](int32_t n) {
      if (n < 0 || seen[static_cast<size_t>(n)]) return;
      seen[static_cast<size_t>(n)] = true;
      if (IsLayer(n)) {
        found_.push_back(FileName(original_, n));
      } else {
        next.push_back(n);
      }
    };
    for (size_t at = 0; at < next.size(); ++at) {
      for (ValueId input : NodeAt(next[at]).inputs) {
        if (input == kNoValue || !Changed(input)) continue;
        visit(index_.producer[Index(input)]);
      }
      for (ValueId output : NodeAt(next[at]).outputs) {
        if (!forward || output == kNoValue || !Changed(output)) continue;
        for (NodeId reader : index_.consumers[Index(output)]) {
          visit(static_cast<int32_t>(Index(reader)));
        }
      }
    }
  }
  bool IsLayer(int32_t n) const {
    const Node& node = NodeAt(n);
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [this](ValueId id) {
                         return id != kNoValue && Changed(id) &&
                                original_.value(id).type.rank() > 1 &&
                                original_.value(id).kind ==
                                    ValueKind::kParameter;
                       }) &&
           std::any_of(node.outputs.begin(), node.outputs.end(),
                       [this](ValueId id) { return Changed(id); });
  }

  const Graph& original_;
  const Graph& pruned_;
  const GraphIndex index_;
  std::vector<std::string> found_;
};

}  // namespace

absl::Status ExplainRefusal(const Graph& original, const Graph& pruned,
                            const absl::Status& why) {
  const int32_t node = NamedNode(original, why.message());
  const std::string what = absl::StrCat(
      "the pruned model cannot be written as ONNX: ", why.message());
  if (node < 0) {
    return absl::UnimplementedError(absl::StrCat(
        what,
        ". Exclude layers from pruning (exclude_op_names) until it can; "
        "`loadline groups` lists them"));
  }
  std::vector<std::string> layers = Layers(original, pruned).Near(node);
  if (layers.size() > kMostNamed) layers.resize(kMostNamed);
  const Node& found = original.nodes[static_cast<size_t>(node)];
  return absl::UnimplementedError(absl::StrCat(
      what, ". ", found.op, " '", FileName(original, node),
      "' needs sizes or numbers that the file would compute differently from "
      "the pruned channels. To keep these channels, put into the recipe's "
      "object: exclude_op_names: [",
      absl::StrJoin(layers, ", ",
                    [](std::string* out, const std::string& name) {
                      absl::StrAppend(out, "\"", name, "\"");
                    }),
      "]"));
}

}  // namespace loadline::models::onnx_internal
