// The user has to change the model, so the error names every node with an
// unsupported operator, not just the first. Tested in
// tests/models/onnx_import_test.cc.
#include "models/onnx/supported.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "models/onnx/convert_opset.h"
#include "models/onnx/fold.h"
#include "models/onnx/import.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"

namespace loadline::models {
namespace {

constexpr char kPayload[] = "loadline/unsupported-operators";
constexpr char kAdvice[] = "loadline/unsupported-advice";

// UnsupportedOperator::why of an old version of an operator.
constexpr char kBeforeOpset[] = "before opset ";

// It has ONNX's domain, and ONNX does not know it.
constexpr char kOfOnnxRuntime[] = "SimplifiedLayerNormalization";

// What to do about all of them; the nodes do not matter.
std::string AdviceFor(const std::vector<UnsupportedOperator>& operators) {
  const auto any = [&operators](auto matches) {
    return std::any_of(
        operators.begin(), operators.end(),
        [&](const UnsupportedOperator& op) { return matches(op.name); });
  };
  if (any([](absl::string_view name) {
        return absl::StrContains(name, "QuantizeLinear") ||
               absl::StrContains(name, "QLinear") ||
               absl::StrContains(name, "NBits");
      })) {
    return "the model is quantized: such an export is for inference and is "
           "evaluated in ONNX Runtime (docs/compression.md has the few lines); "
           "give the model in float";
  }
  if (any([](absl::string_view name) {
        return absl::StartsWith(name, "com.microsoft") ||
               name == kOfOnnxRuntime;
      })) {
    return "ONNX Runtime's optimizer writes operators of the domain "
           "com.microsoft and SimplifiedLayerNormalization: give the model as "
           "it was before, or optimized at level ORT_ENABLE_BASIC";
  }
  if (std::all_of(operators.begin(), operators.end(),
                  [](const UnsupportedOperator& op) {
                    return absl::StartsWith(op.why, kBeforeOpset);
                  })) {
    return "export the model again with opset 17 to 22";
  }
  std::string advice =
      "write these parts of the model with other operators "
      "(models/ops/operators.md lists those there are) and export it again, or "
      "add the operators as CONTRIBUTING.md says";
  if (any([](absl::string_view name) {
        return absl::StartsWith(name, "ai.onnx.ml::");
      })) {
    absl::StrAppend(&advice,
                    "; what only makes labels of scores, as scikit-learn's "
                    "exports have it, onnx.utils.extract_model cuts off");
  }
  return advice;
}

}  // namespace

bool IsUnsupported(const absl::Status& status) {
  return absl::IsUnimplemented(status) &&
         status.GetPayload(kPayload).has_value();
}

// The payload has a line per operator: its name, the reason and its nodes,
// separated by tabs. Names have no control characters.
std::vector<UnsupportedOperator> UnsupportedOperators(
    const absl::Status& status) {
  std::vector<UnsupportedOperator> operators;
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return operators;
  const std::string text(*payload);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    operators.push_back({parts[0], parts[1], {parts.begin() + 2, parts.end()}});
  }
  return operators;
}

std::string UnsupportedAdvice(const absl::Status& status) {
  return std::string(status.GetPayload(kAdvice).value_or(absl::Cord()));
}

namespace onnx_internal {

const std::vector<std::string>& LateOperators() {
  static const auto* const kNames =
      new std::vector<std::string>{"Attention",
                                   "CausalConvWithState",
                                   "LinearAttention",
                                   "RMSNormalization",
                                   "RotaryEmbedding",
                                   "Swish",
                                   "ai.onnx.preview::FlexAttention"};
  return *kNames;
}

const std::vector<std::string>& CompositeOperators() {
  static const auto* const kNames =
      new std::vector<std::string>{"ReduceL1",
                                   "ReduceLogSum",
                                   "ReduceSumSquare",
                                   "NegativeLogLikelihoodLoss",
                                   "SoftmaxCrossEntropyLoss",
                                   "MeanVarianceNormalization",
                                   "CenterCropPad",
                                   "HannWindow",
                                   "HammingWindow",
                                   "BlackmanWindow"};
  return *kNames;
}

namespace {

bool InDefaultDomain(const onnx::NodeProto& node) {
  return node.domain().empty() || node.domain() == "ai.onnx";
}

}  // namespace

void UnsupportedList::Add(const onnx::NodeProto& node, const std::string& why) {
  nodes_[{QualifiedName(node), why}].push_back(
      node.name().empty() && node.output_size() > 0
          ? absl::StrCat("maker of ", node.output(0))
          : node.name());
  made_.insert(node.output().begin(), node.output().end());
}

std::vector<std::string> UnsupportedList::OutputsWithout(
    const onnx::GraphProto& graph) const {
  std::set<std::string> made = made_;
  for (const auto& node : graph.node()) {
    const std::vector<std::string> read = ReadNames(node);
    if (std::any_of(read.begin(), read.end(), [&made](const auto& name) {
          return !name.empty() && made.count(name) > 0;
        })) {
      made.insert(node.output().begin(), node.output().end());
    }
  }
  std::vector<std::string> outputs;
  for (const auto& output : graph.output()) {
    if (made.count(output.name()) == 0) outputs.push_back(output.name());
  }
  return outputs;
}

absl::Status UnsupportedList::ToStatus(const onnx::GraphProto& graph) const {
  std::string text = "the model needs operators that are not supported:";
  std::vector<std::string> lines;
  std::vector<UnsupportedOperator> operators;
  for (const auto& [key, nodes] : nodes_) {
    const auto& [name, why] = key;
    absl::StrAppend(&text, "\n  ", name,
                    why.empty() ? "" : absl::StrCat(" (", why, ")"), " x",
                    nodes.size(), ": ", absl::StrJoin(nodes, ", "));
    lines.push_back(
        absl::StrCat(name, "\t", why, "\t", absl::StrJoin(nodes, "\t")));
    operators.push_back({name, why, nodes});
  }
  std::string advice = AdviceFor(operators);
  const std::vector<std::string> outputs = OutputsWithout(graph);
  if (!outputs.empty()) {
    absl::StrAppend(&advice,
                    "; onnx.utils.extract_model cuts the model to outputs that "
                    "need none of them: ",
                    absl::StrJoin(outputs, ", "));
  }
  absl::StrAppend(&text, "\n", advice);
  absl::Status status = absl::UnimplementedError(text);
  status.SetPayload(kAdvice, absl::Cord(advice));
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(lines, "\n")));
  return status;
}

std::string QualifiedName(const onnx::NodeProto& node) {
  return InDefaultDomain(node)
             ? node.op_type()
             : absl::StrCat(node.domain(), "::", node.op_type());
}

namespace {

// Names that the graph's nodes and outputs read from around it. Names inside
// differ from those around.
void AddCaptured(const onnx::GraphProto& graph,
                 std::vector<std::string>* names) {
  std::set<std::string> own;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
  for (const auto& node : graph.node()) {
    own.insert(node.output().begin(), node.output().end());
  }
  std::vector<std::string> read;
  for (const auto& node : graph.node()) {
    for (std::string& name : ReadNames(node)) read.push_back(std::move(name));
  }
  for (const auto& output : graph.output()) read.push_back(output.name());
  for (std::string& name : read) {
    if (!name.empty() && own.count(name) == 0) {
      names->push_back(std::move(name));
    }
  }
}

}  // namespace

std::vector<std::string> ReadNames(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) AddCaptured(attribute.g(), &names);
  }
  if (node.domain() != kTrainingDomain || node.op_type() != "Gradient") {
    return names;
  }
  names.push_back(StringAttribute(node, "y", ""));
  return names;
}

std::string NodeLabel(const onnx::NodeProto& node) {
  const std::string name = node.name().empty() && node.output_size() > 0
                               ? absl::StrCat("making '", node.output(0), "'")
                               : absl::StrCat("'", node.name(), "'");
  return absl::StrCat("node ", name, " (", node.op_type(), ")");
}

namespace {

// Also puts what they read into `wanted`.
std::vector<bool> FindNeeded(const onnx::GraphProto& graph,
                             std::set<std::string>& wanted) {
  for (const auto& output : graph.output()) wanted.insert(output.name());
  std::vector<bool> needed(static_cast<size_t>(graph.node_size()));
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const auto& node = graph.node(i);
    const bool need =
        std::any_of(node.output().begin(), node.output().end(),
                    [&](const auto& name) { return wanted.count(name) > 0; });
    if (!need) continue;
    needed[static_cast<size_t>(i)] = true;
    for (std::string& name : ReadNames(node)) wanted.insert(std::move(name));
  }
  return needed;
}

}  // namespace

std::set<std::string> InitializerNames(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  return names;
}

std::vector<bool> NeededNodes(const onnx::GraphProto& graph) {
  std::set<std::string> wanted;
  return FindNeeded(graph, wanted);
}

std::set<std::string> NeededNames(const onnx::GraphProto& graph) {
  std::set<std::string> wanted;
  FindNeeded(graph, wanted);
  return wanted;
}

namespace {

// Operators whose older versions mean something else, which ONNX's conversion
// of versions loses. By the first opset that is read right.
struct OldMeaning {
  absl::string_view name;
  int first_opset;
};
constexpr OldMeaning kOldMeanings[] = {
    {"GroupNormalization", 21},  // one scale for each group
    {"Hardmax", 13},             // of all axes from one on
    {"Pad", 11},                 // pads are an attribute
    {"Resize", 11},              // asymmetric coordinates
    {"Upsample", 11},            // now a Resize
};

// Why the node cannot be read in this opset; empty: it can. Opset 0: the file
// names none, which is another error.
std::string OldMeaningOf(const onnx::NodeProto& node,
                         const onnx::GraphProto& graph, int opset) {
  if (opset == 0 || !InDefaultDomain(node) || HasNewForm(node, graph, opset)) {
    return "";
  }
  if (node.op_type() == kOfOnnxRuntime) return "ONNX Runtime's own";
  for (const OldMeaning& old : kOldMeanings) {
    if (node.op_type() == old.name && opset < old.first_opset) {
      return absl::StrCat(kBeforeOpset, old.first_opset);
    }
  }
  return "";
}

}  // namespace

absl::Status CheckVersions(const onnx::GraphProto& graph, int opset) {
  const std::vector<bool> needed = NeededNodes(graph);
  UnsupportedList unsupported;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    const std::string old = OldMeaningOf(graph.node(i), graph, opset);
    if (!old.empty()) unsupported.Add(graph.node(i), old);
  }
  return unsupported.empty() ? absl::OkStatus() : unsupported.ToStatus(graph);
}

absl::Status CheckSupported(const onnx::GraphProto& graph, int opset) {
  std::set<std::string> known(LateOperators().begin(), LateOperators().end());
  known.insert(CompositeOperators().begin(), CompositeOperators().end());
  const std::vector<bool> needed = NeededNodes(graph);
  UnsupportedList unsupported;
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto& node = graph.node(i);
    if (!needed[static_cast<size_t>(i)]) continue;
    const std::string old = OldMeaningOf(node, graph, opset);
    if (!old.empty()) {
      unsupported.Add(node, old);
      continue;
    }
    if (HasNewForm(node, graph, opset)) continue;
    const std::string name = QualifiedName(node);
    if (!HasRule(name) && !CanFold(name) && known.count(name) == 0) {
      unsupported.Add(node, "");
    }
  }
  return unsupported.empty() ? absl::OkStatus() : unsupported.ToStatus(graph);
}

}  // namespace onnx_internal
}  // namespace loadline::models
