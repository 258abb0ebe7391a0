// Decides per initializer, and warns about what is uncertain. Tested in
// tests/models/onnx_classify_test.cc.
#include "models/onnx/classify.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/name_pattern.h"
#include "models/onnx/computed_parameters.h"
#include "models/onnx/gradient_flow.h"
#include "models/onnx/initializer_names.h"
#include "models/onnx/name_list.h"
#include "models/onnx/producers.h"
#include "models/onnx/tables.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Smaller tensors are often equal by chance (zeros, ones).
constexpr int64_t kMinTiedElements = 64;

// Whether the contents show that the tensor is not trained.
bool IsNeverTrained(const Tensor& tensor) {
  if (tensor.data == nullptr) return false;
  return IsMask(tensor) || IsSineTable(tensor) || IsFrequencies(tensor);
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

// Warns if the exporter changed the weights so that training would differ from
// the author's model: equal parameters of several normalizations merged into
// one, or a tied weight duplicated.
std::vector<std::string> WarnAboutWeights(
    const PreparedModel& model, const std::map<std::string, ValueKind>& kinds) {
  std::vector<std::string> warnings;
  const bool marked = !model.marks.marks.empty();  // Classifier knows better
  for (const std::string& name :
       marked ? std::vector<std::string>() : SharedScales(model, kinds)) {
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

// Warns of parameters that the file has several times, moved by the newer
// exporter, where tied_copies.h did not tie them.
std::vector<std::string> WarnAboutRepeated(
    const PreparedModel& model, const std::map<std::string, ValueKind>& kinds) {
  std::map<std::string, std::vector<std::string>> names;
  std::set<std::string> whole;
  for (const std::string& name : model.initializer_order) {
    if (kinds.at(name) != ValueKind::kParameter) continue;
    const auto moved = FindMovedParameter(model.marks, name);
    const std::string parameter = moved ? moved->parameter : name;
    names[parameter].push_back(name);
    if (!moved || !moved->part) whole.insert(parameter);
  }
  std::vector<std::string> warnings;
  for (const auto& [parameter, all] : names) {
    // Parts of one parameter are different elements.
    if (all.size() < 2 || whole.count(parameter) == 0) continue;
    warnings.push_back(absl::StrCat(
        "the exporter has '", parameter, "' several times: ", NameList(all),
        ", and training would move them apart; export with optimize=False"));
  }
  return warnings;
}

// One decision per initializer, and what is uncertain about them.
class Classifier {
 public:
  Classifier(const PreparedModel& model, const ImportOptions& options)
      : model_(model),
        options_(options),
        reached_(ReachedByGradient(model.proto.graph(), model.marks.detached)),
        statistics_(RunningStatistics(model.proto.graph())),
        of_state_dict_(model.marks.marks.empty() &&
                       model.proto.producer_name() == kPyTorch) {}

  Classification Run() {
    for (const std::string& name : model_.initializer_order) {
      const Tensor& tensor = model_.initializers.at(name);
      ValueKind& kind = result_.kinds[name];
      kind = ValueKind::kConstant;
      if (tensor.type.dtype != DType::kF32) continue;
      if (statistics_.count(name) > 0) {
        if (!MatchesAny(options_.freeze, name)) kind = ValueKind::kState;
        continue;
      }
      InitializerRole role = Decide(name, tensor);
      role.name = name;
      if (role.trained) kind = ValueKind::kParameter;
      result_.roles.push_back(std::move(role));
    }
    Warn();
    return std::move(result_);
  }

 private:
  static InitializerRole Trained(const std::string& why) {
    return {"", true, why};
  }
  static InitializerRole NotTrained(const std::string& why) {
    return {"", false, why};
  }

  InitializerRole Decide(const std::string& name, const Tensor& tensor) {
    if (reached_.count(name) == 0) return NotTrained("no gradient reaches it");
    if (MatchesAny(options_.train, name)) return Trained("--train");
    if (MatchesAny(options_.freeze, name)) return NotTrained(kFrozenByFlag);
    return model_.marks.marks.empty() ? ByUse(name, tensor)
                                      : ByMark(name, tensor);
  }

  InitializerRole ByMark(const std::string& name, const Tensor& tensor) {
    const auto& marks = model_.marks.marks;
    auto mark = marks.find(name);
    if (mark != marks.end()) {
      if (mark->second == Mark::kBuffer) {
        return NotTrained("a buffer, as the exporter says");
      }
      // Such tables are often parameters that do not require gradients, which
      // the exporter does not say.
      if (!IsNeverTrained(tensor)) {
        return Trained("a parameter, as the exporter says");
      }
      left_out_.push_back(name);
      return NotTrained("a mask, or a table of sines or frequencies");
    }
    auto computed = model_.marks.computed_from.find(name);
    if (computed == model_.marks.computed_from.end()) {
      return NotTrained("the exporter made it");
    }
    std::vector<std::string> parameters;
    for (const std::string& source : computed->second) {
      auto original = marks.find(source);
      if (original != marks.end() && original->second == Mark::kParameter) {
        parameters.push_back(source);
      }
    }
    if (!parameters.empty()) {
      // What it invents in a layer is the weight, moved.
      if (!FindMovedParameter(model_.marks, name) ||
          (IsInventedName(name) && model_.layer_operands.count(name) == 0)) {
        result_.warnings.push_back(absl::StrCat(
            "the exporter computed '", name, "' from ", NameList(parameters),
            ", and the result is trained instead; export with "
            "optimize=False"));
      }
      return Trained("computed by the exporter from parameters");
    }
    return NotTrained("the exporter made it");
  }

  InitializerRole ByUse(const std::string& name, const Tensor& tensor) {
    const bool one = tensor.type.elements() == 1;
    const NameSays says = WhatNameSays(name);
    if (IsNeverTrained(tensor)) {
      return NotTrained("a mask, or a table of sines or frequencies");
    }
    if (of_state_dict_ && IsOfFixedNorm(name)) {
      left_out_.push_back(name);
      return NotTrained("of a batch normalization with fixed statistics");
    }
    auto operand = model_.layer_operands.find(name);
    // PyTorch has no gradient of them.
    if (operand != model_.layer_operands.end() &&
        absl::EndsWith(operand->second.op, "Loss")) {
      return NotTrained("weights of the classes in a loss");
    }
    if (operand != model_.layer_operands.end() &&
        !(one && IsInventedName(name)) &&
        !(of_state_dict_ && ScalesProduct(operand->second.op))) {
      const auto& [form, op] = operand->second;
      if (of_state_dict_ && !IsInventedName(name)) {
        if (IsBufferByContents(name, says, tensor)) {
          left_out_.push_back(name);
          return NotTrained("a table, by its contents");
        }
        // No layer's weight has one axis.
        if (IsProduct(op) && tensor.type.rank() < 2 &&
            says == NameSays::kBuffer) {
          left_out_.push_back(name);
          return NotTrained("a buffer, by its name");
        }
        if ((IsProduct(op) || IsLookUp(op)) && says != NameSays::kParameter) {
          either_.push_back(name);
        }
      }
      const bool doubtful =
          (form == OperandForm::kComputed && says != NameSays::kParameter) ||
          (form == OperandForm::kFollows && op == kProductBias &&
           tensor.type.rank() > 1) ||
          ScalesProduct(op);
      if (form == OperandForm::kInput || says != NameSays::kBuffer) {
        if (doubtful) trained_anyway_.push_back(name);
        return Trained(form == OperandForm::kFollows
                           ? op
                           : absl::StrCat("operand of ", op));
      }
      left_out_.push_back(name);
      return NotTrained("a buffer, by its name");
    }
    if (one && IsInventedName(name)) {
      return NotTrained("the exporter made it");
    }
    if (says == NameSays::kBuffer) {
      // A learned scale may be called so too.
      if (of_state_dict_ && one) left_out_.push_back(name);
      return NotTrained("a buffer, by its name");
    }
    // An exporter's constant, such as the factor of an attention. PyTorch's
    // files have a model's own names.
    if (model_.proto.producer_name() != kPyTorch && tensor.type.rank() == 0 &&
        !IsVariable(name)) {
      if (model_.proto.producer_name() != kTensorFlow)
        left_out_.push_back(name);
      return NotTrained("a number without an axis");
    }
    // The older exporter's names of tensors that it computed from others, most
    // of which are parameters.
    const bool computed = absl::StartsWith(name, "onnx::");
    const bool table = computed && tensor.data != nullptr && IsRegular(tensor);
    if (says == NameSays::kParameter || (computed && !table)) {
      (computed ? computed_ : trained_anyway_).push_back(name);
      return Trained(computed ? "computed by the exporter from other tensors"
                              : "a parameter, by its name");
    }
    // torch.zeros(1) and torch.ones(1) are how parameters of one number are
    // written; buffers, as torch.tensor(2.0), have no axes.
    if (of_state_dict_ && one && tensor.type.rank() > 0) {
      trained_anyway_.push_back(name);
      return Trained("a parameter, by its shape");
    }
    if (of_state_dict_ && !one && !IsInventedName(name)) {
      if (tensor.data == nullptr || !IsRegular(tensor)) {
        trained_anyway_.push_back(name);
        return Trained("a parameter, by its contents");
      }
      left_out_.push_back(name);
      return NotTrained("a table, by its contents");
    }
    left_out_.push_back(name);
    return NotTrained(table ? "a table, by its contents"
                            : "no operand of a layer");
  }

  // Of a batch normalization that is written out with its running statistics,
  // as detectors have it: its weight and bias are buffers too
  // (FrozenBatchNorm2d of torchvision and DETR).
  bool IsOfFixedNorm(absl::string_view name) const {
    const bool affine = absl::ConsumeSuffix(&name, ".weight") ||
                        absl::ConsumeSuffix(&name, ".bias");
    if (!affine) return false;
    for (const char* statistic : {".running_mean", ".running_var"}) {
      const std::string sibling = absl::StrCat(name, statistic);
      if (model_.initializers.count(sibling) == 0 ||
          statistics_.count(sibling) > 0) {
        return false;
      }
    }
    return true;
  }

  static bool IsProduct(absl::string_view op) {
    return op == "MatMul" || op == "Gemm" || op == "Einsum";
  }

  static bool IsLookUp(absl::string_view op) {
    return op == "Gather" || op == "GatherND";
  }

  // What is left of a normalization, or a buffer. Where names and contents tell
  // them apart, these decide.
  static bool ScalesProduct(absl::string_view op) {
    return op == kProductScale || op == kScaledProductBias;
  }

  // A kernel may be a filter that the author computed.
  static bool IsBufferByContents(absl::string_view name, NameSays says,
                                 const Tensor& tensor) {
    return tensor.data != nullptr &&
           (says != NameSays::kParameter || absl::EndsWith(name, "kernel")) &&
           IsRegular(tensor);
  }

  void Warn() {
    if (!trained_anyway_.empty()) {
      result_.warnings.push_back(absl::StrCat(
          "trained, although no direct operand of a linear, convolution, "
          "embedding or normalization: ",
          NameList(trained_anyway_), "; --freeze NAME keeps one as it is"));
    }
    if (!computed_.empty()) {
      result_.warnings.push_back(absl::StrCat(
          "trained as the exporter computed them from other tensors, which the "
          "original model would train: ",
          NameList(computed_), "; export with do_constant_folding=False"));
    }
    if (!either_.empty()) {
      result_.warnings.push_back(absl::StrCat(
          "trained, although the file does not say whether they are parameters "
          "or buffers: ",
          NameList(either_), "; --freeze NAME keeps one as it is"));
    }
    if (!left_out_.empty()) {
      result_.warnings.push_back(absl::StrCat(
          "not trained, because nothing shows that it is a parameter: ",
          NameList(left_out_), "; --train NAME trains one"));
    }
    if (!model_.marks.merged.empty()) {
      result_.warnings.push_back(absl::StrCat(
          "the exporter merged tensors with parameters of the same contents, "
          "which trains them as one: ",
          NameList(model_.marks.merged), "; export with optimize=False"));
    }
    if (!model_.marks.rewritten.empty()) {
      result_.warnings.push_back(absl::StrCat(
          "the exporter rewrote operators without their tensors: ",
          NameList(model_.marks.rewritten), "; export with optimize=False"));
    }
  }

  const PreparedModel& model_;
  const ImportOptions& options_;
  const std::set<std::string> reached_, statistics_;
  // A file of torch's older exporter. Its initializers are the model's
  // parameters and buffers; constants are nodes.
  const bool of_state_dict_;
  Classification result_;
  // Decisions that may be wrong.
  std::vector<std::string> trained_anyway_, computed_, either_, left_out_;
};

// InvalidArgument for a pattern that no initializer matches.
absl::Status CheckPatterns(const PreparedModel& model, const char* flag,
                           const std::vector<std::string>& patterns) {
  const std::vector<std::string>& names = model.initializer_order;
  for (const std::string& pattern : patterns) {
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) {
          return MatchesPattern(pattern, name);
        })) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": no tensor of the model matches '", pattern,
                       "'; it has ", NameList(names)));
    }
  }
  return absl::OkStatus();
}

// InvalidArgument for a pattern that matches only what cannot be trained.
absl::Status CheckTrained(const Classification& result,
                          const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    if (std::none_of(result.kinds.begin(), result.kinds.end(),
                     [&](const auto& kind) {
                       return kind.second == ValueKind::kParameter &&
                              MatchesPattern(pattern, kind.first);
                     })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--train: nothing that matches '", pattern,
          "' can be trained: only f32 tensors that a gradient reaches, and no "
          "running statistics"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Classification> ClassifyInitializers(
    const PreparedModel& model, const ImportOptions& options) {
  LOADLINE_RETURN_IF_ERROR(CheckPatterns(model, "--train", options.train));
  LOADLINE_RETURN_IF_ERROR(CheckPatterns(model, "--freeze", options.freeze));
  Classification result = Classifier(model, options).Run();
  LOADLINE_RETURN_IF_ERROR(CheckTrained(result, options.train));
  for (auto* warn : {WarnAboutWeights, WarnAboutRepeated}) {
    for (std::string& warning : warn(model, result.kinds)) {
      result.warnings.push_back(std::move(warning));
    }
  }
  return result;
}

}  // namespace loadline::models::onnx_internal
