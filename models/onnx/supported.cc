// An unsupported operator is the user's to act on, so the error names every
// node that needs one, not the first.
// Tested in tests/models/onnx_import_test.cc.
#include "models/onnx/supported.h"

#include <algorithm>
#include <set>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/fold.h"
#include "models/onnx/import.h"
#include "models/onnx/walk.h"

namespace loadline::models {
namespace {
constexpr char kPayload[] = "loadline/unsupported-operators";
}  // namespace

bool IsUnsupported(const absl::Status& status) {
  return absl::IsUnimplemented(status) &&
         status.GetPayload(kPayload).has_value();
}

namespace onnx_internal {

const std::vector<std::string>& LateOperators() {
  static const auto* const kNames = new std::vector<std::string>{
      "Attention", "RMSNormalization", "RotaryEmbedding", "Swish"};
  return *kNames;
}

const std::vector<std::string>& CompositeOperators() {
  static const auto* const kNames = new std::vector<std::string>{
      "Celu",      "Clip",      "Elu",          "HardSigmoid",
      "HardSwish", "LeakyRelu", "Mish",         "PRelu",
      "ReduceL1",  "ReduceL2",  "ReduceLogSum", "ReduceSumSquare",
      "Selu",      "Softplus",  "Softsign",     "ThresholdedRelu"};
  return *kNames;
}

void UnsupportedList::Add(const onnx::NodeProto& node, const std::string& why) {
  std::string key = node.domain().empty()
                        ? node.op_type()
                        : absl::StrCat(node.domain(), "::", node.op_type());
  if (!why.empty()) absl::StrAppend(&key, " (", why, ")");
  nodes_[key].push_back(node.name().empty() && node.output_size() > 0
                            ? absl::StrCat("maker of ", node.output(0))
                            : node.name());
}

absl::Status UnsupportedList::ToStatus() const {
  std::string text = "the model needs operators that are not supported:";
  for (const auto& [key, nodes] : nodes_) {
    absl::StrAppend(&text, "\n  ", key, " x", nodes.size(), ": ",
                    absl::StrJoin(nodes, ", "));
  }
  absl::StrAppend(&text,
                  "\nWrite these parts of the model with other operators "
                  "(models/ops/operators.md lists those there are) and export "
                  "it again, or add the operators as CONTRIBUTING.md says.");
  absl::Status status = absl::UnimplementedError(text);
  std::vector<std::string> keys;
  for (const auto& [key, nodes] : nodes_) keys.push_back(key);
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(keys, "\n")));
  return status;
}

std::string NodeLabel(const onnx::NodeProto& node) {
  const std::string name = node.name().empty() && node.output_size() > 0
                               ? absl::StrCat("making '", node.output(0), "'")
                               : absl::StrCat("'", node.name(), "'");
  return absl::StrCat("node ", name, " (", node.op_type(), ")");
}

std::vector<bool> NeededNodes(const onnx::GraphProto& graph) {
  std::set<std::string> wanted;
  for (const auto& output : graph.output()) wanted.insert(output.name());
  std::vector<bool> needed(static_cast<size_t>(graph.node_size()));
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const auto& node = graph.node(i);
    const bool need =
        std::any_of(node.output().begin(), node.output().end(),
                    [&](const auto& name) { return wanted.count(name) > 0; });
    if (!need) continue;
    needed[static_cast<size_t>(i)] = true;
    wanted.insert(node.input().begin(), node.input().end());
  }
  return needed;
}

absl::Status CheckSupported(const onnx::GraphProto& graph) {
  std::set<std::string> known(LateOperators().begin(), LateOperators().end());
  known.insert(CompositeOperators().begin(), CompositeOperators().end());
  const std::vector<bool> needed = NeededNodes(graph);
  UnsupportedList unsupported;
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto& node = graph.node(i);
    if (!needed[static_cast<size_t>(i)]) continue;
    const bool default_domain =
        node.domain().empty() || node.domain() == "ai.onnx";
    if (!default_domain ||
        (!HasRule(node.op_type()) && !CanFold(node.op_type()) &&
         known.count(node.op_type()) == 0)) {
      unsupported.Add(node, "");
    }
  }
  return unsupported.empty() ? absl::OkStatus() : unsupported.ToStatus();
}

}  // namespace onnx_internal
}  // namespace loadline::models
