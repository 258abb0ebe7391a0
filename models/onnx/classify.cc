// One backward sweep over the nodes finds values that no gradient can reach.
// Tested in tests/models/onnx_classify_test.cc.
#include "models/onnx/classify.h"

#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/onnx/tables.h"

namespace loadline::models::onnx_internal {
namespace {

// Smaller tensors are often equal by chance (zeros, ones).
constexpr int64_t kMinTiedElements = 64;

// Names such as val_72, _val_3, onnx::MatMul_12, Constant_5.
bool IsInventedName(absl::string_view name) {
  const size_t underscore = name.rfind('_');
  if (underscore == absl::string_view::npos || underscore + 1 == name.size() ||
      !std::all_of(name.begin() + static_cast<long>(underscore) + 1, name.end(),
                   [](char c) { return std::isdigit(c) != 0; })) {
    return false;
  }
  const absl::string_view stem = name.substr(0, underscore);
  return stem == "val" || stem == "_val" || stem == "Constant" ||
         absl::StartsWith(stem, "onnx::");
}

// Whether the contents show that the tensor is not trained.
bool IsNeverTrained(const Tensor& tensor) {
  if (tensor.data == nullptr) return false;
  return IsMask(tensor) || IsSineTable(tensor) || IsFrequencies(tensor);
}

bool MatchesAny(const std::string& name,
                const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) {
                       return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
                     });
}

// Whether a gradient flows from the node's output to its input i.
bool GradientFlows(const onnx::NodeProto& node, int i) {
  const std::string& op = node.op_type();
  if (op == "Where") return i > 0;
  if (op == "BatchNormalization") return i < 3;
  for (const char* none :
       {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And",
        "Or", "Xor", "Not", "Shape", "Size", "ConstantOfShape", "Floor", "Ceil",
        "Round", "Sign", "Range"}) {
    if (op == none) return false;
  }
  for (const char* first :
       {"Reshape", "Expand", "Slice", "Gather", "Squeeze", "Unsqueeze", "Split",
        "Tile", "Trilu", "Dropout", "CastLike", "ReduceSum", "ReduceMean",
        "SplitToSequence", "SequenceAt"}) {
    if (op == first) return i == 0;
  }
  if (op == "Cast") {
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "to") {
        return attribute.i() == onnx::TensorProto::FLOAT ||
               attribute.i() == onnx::TensorProto::DOUBLE ||
               attribute.i() == onnx::TensorProto::FLOAT16 ||
               attribute.i() == onnx::TensorProto::BFLOAT16;
      }
    }
  }
  return true;
}

std::set<std::string> ReachedByGradient(const onnx::GraphProto& graph) {
  std::set<std::string> reached;
  for (const auto& output : graph.output()) reached.insert(output.name());
  for (int n = graph.node_size() - 1; n >= 0; --n) {
    const auto& node = graph.node(n);
    const bool flows =
        std::any_of(node.output().begin(), node.output().end(),
                    [&](const auto& name) { return reached.count(name) > 0; });
    for (int i = 0; flows && i < node.input_size(); ++i) {
      if (GradientFlows(node, i)) reached.insert(node.input(i));
    }
  }
  return reached;
}

std::set<std::string> RunningStatistics(const onnx::GraphProto& graph) {
  std::map<std::string, std::string> same;  // through Identity
  std::set<std::string> names;
  for (const auto& node : graph.node()) {
    if (node.op_type() == "Identity" && node.input_size() == 1 &&
        node.output_size() == 1) {
      auto it = same.find(node.input(0));
      same[node.output(0)] = it == same.end() ? node.input(0) : it->second;
    }
    if (node.op_type() != "BatchNormalization") continue;
    for (int i = 3; i < std::min(node.input_size(), 5); ++i) {
      auto it = same.find(node.input(i));
      names.insert(it == same.end() ? node.input(i) : it->second);
    }
  }
  return names;
}

bool IsTransposed(const Tensor& a, const Tensor& b) {
  if (a.type.rank() != 2 || b.type.rank() != 2 ||
      a.type.dims[0] != b.type.dims[1] || a.type.dims[1] != b.type.dims[0]) {
    return false;
  }
  const int64_t rows = a.type.dims[0], columns = a.type.dims[1];
  const auto x = a.as<float>(), y = b.as<float>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      // Compared as bits, so that a NaN equals itself.
      if (std::bit_cast<uint32_t>(x[static_cast<size_t>(r * columns + c)]) !=
          std::bit_cast<uint32_t>(y[static_cast<size_t>(c * rows + r)])) {
        return false;
      }
    }
  }
  return true;
}

bool IsConstantFill(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return std::all_of(values.begin(), values.end(),
                     [&](float v) { return v == values[0]; });
}

// Parameters that are the scale (input 1) of several normalizations.
std::vector<std::string> SharedScales(
    const PreparedModel& model, const std::map<std::string, ValueKind>& kinds) {
  std::map<std::string, int> uses;
  for (const auto& node : model.proto.graph().node()) {
    const std::string& op = node.op_type();
    if ((op == "LayerNormalization" || op == "BatchNormalization") &&
        node.input_size() > 1) {
      auto it = kinds.find(node.input(1));
      if (it != kinds.end() && it->second == ValueKind::kParameter) {
        ++uses[node.input(1)];
      }
    }
  }
  std::vector<std::string> shared;
  for (const auto& [name, count] : uses) {
    if (count > 1) shared.push_back(name);
  }
  return shared;
}

}  // namespace

std::map<std::string, ValueKind> ClassifyInitializers(
    const PreparedModel& model, const std::vector<std::string>& frozen) {
  const auto& graph = model.proto.graph();
  const std::set<std::string> reached = ReachedByGradient(graph);
  const std::set<std::string> statistics = RunningStatistics(graph);
  std::map<std::string, ValueKind> kinds;
  for (const auto& [name, tensor] : model.initializers) {
    ValueKind kind = ValueKind::kConstant;
    if (tensor.type.dtype == DType::kF32 && !MatchesAny(name, frozen)) {
      const bool invented = tensor.type.elements() == 1 && IsInventedName(name);
      if (statistics.count(name) > 0) {
        kind = ValueKind::kState;
      } else if (reached.count(name) > 0 && !invented &&
                 !IsNeverTrained(tensor)) {
        kind = ValueKind::kParameter;
      }
    }
    kinds.emplace(name, kind);
  }
  return kinds;
}

absl::Status CheckFrozen(const PreparedModel& model,
                         const std::vector<std::string>& frozen) {
  constexpr size_t kMostListed = 10;
  const std::vector<std::string>& names = model.initializer_order;
  for (const std::string& pattern : frozen) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return MatchesAny(name, {pattern});
        })) {
      continue;
    }
    std::string list;
    for (size_t i = 0; i < std::min(names.size(), kMostListed); ++i) {
      absl::StrAppend(&list, i == 0 ? "" : ", ", names[i]);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "frozen: no tensor of the model matches '", pattern, "'; it has ", list,
        names.size() > kMostListed
            ? absl::StrCat(" and ", names.size() - kMostListed, " more")
            : ""));
  }
  return absl::OkStatus();
}

std::vector<std::string> WarnAboutWeights(
    const PreparedModel& model, const std::map<std::string, ValueKind>& kinds) {
  std::vector<std::string> warnings;
  for (const std::string& name : SharedScales(model, kinds)) {
    warnings.push_back(absl::StrCat(
        "'", name,
        "' is the scale of several normalizations: torch's default "
        "exporter merges initializers that are equal, which would train them "
        "as one; export with dynamo=False, or with optimize=False"));
  }
  std::vector<const std::string*> candidates;
  for (const std::string& name : model.initializer_order) {
    const Tensor& tensor = model.initializers.at(name);
    if (kinds.at(name) != ValueKind::kParameter || tensor.data == nullptr ||
        tensor.type.rank() < 2 || tensor.type.elements() < kMinTiedElements ||
        IsConstantFill(tensor)) {
      continue;
    }
    for (const std::string* other : candidates) {
      const Tensor& earlier = model.initializers.at(*other);
      const bool equal =
          tensor.type == earlier.type && *tensor.data == *earlier.data;
      if (!equal && !IsTransposed(tensor, earlier)) continue;
      warnings.push_back(absl::StrCat(
          "'", name, "' is a copy of '", *other,
          "': the exporter has duplicated a tied weight, and training would "
          "move the two apart; export with dynamo=False, or with "
          "optimize=False"));
      break;
    }
    candidates.push_back(&name);
  }
  return warnings;
}

}  // namespace loadline::models::onnx_internal
