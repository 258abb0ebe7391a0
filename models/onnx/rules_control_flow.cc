// Rules for If and Loop, whose conditions and numbers of steps must be known
// when the model is imported: the nodes of a body are imported in place, once
// for each step. Sequences, which loops build, are lists of values. Scan is in
// rules_scan.cc. Tested in tests/models/onnx_control_flow_test.cc.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "models/onnx/unrolled_body.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// One bool, if it is known.
std::optional<bool> KnownBool(const Binding& binding) {
  if (!binding.constant || binding.constant->type.dtype != DType::kBool ||
      binding.constant->type.elements() != 1) {
    return std::nullopt;
  }
  return binding.constant->as<uint8_t>()[0] != 0;
}

Binding ConstantBinding(Tensor tensor) {
  Binding binding;
  binding.constant = std::move(tensor);
  return binding;
}

absl::Status If(Importer& importer, const onnx::NodeProto& node) {
  if (!importer.Has(node, 0)) {
    return absl::InvalidArgumentError("needs a condition");
  }
  const std::optional<bool> condition = KnownBool(importer.Input(node, 0));
  if (!condition.has_value()) {
    importer.Unsupported(node, "whose condition depends on data");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const onnx::GraphProto* branch,
      BodyOf(node, *condition ? "then_branch" : "else_branch"));
  LOADLINE_ASSIGN_OR_RETURN(std::vector<Binding> outputs,
                            importer.VisitBody(*branch, {}));
  if (static_cast<int>(outputs.size()) != node.output_size()) {
    return absl::InvalidArgumentError("its branch has other outputs");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    importer.Bind(node.output(static_cast<int>(i)), std::move(outputs[i]));
  }
  return absl::OkStatus();
}

// The steps of a Loop one after the other.
class LoopUnroller {
 public:
  LoopUnroller(Importer& importer, const onnx::NodeProto& node,
               const onnx::GraphProto& body)
      : importer_(importer), node_(node), body_(body) {}

  absl::Status Run() {
    if (!ReadLimits()) return absl::OkStatus();
    for (int i = 2; i < node_.input_size(); ++i) {
      carried_.push_back(importer_.Input(node_, i));
    }
    const int scans = node_.output_size() - static_cast<int>(carried_.size());
    if (scans < 0 || body_.output_size() != node_.output_size() + 1) {
      return absl::InvalidArgumentError("its body has other outputs");
    }
    scans_.resize(static_cast<size_t>(scans));
    while (goes_on_ && (!most_.has_value() || steps_ < *most_)) {
      if (steps_ >= kMostBodySteps) return Unsupported("of too many steps");
      LOADLINE_ASSIGN_OR_RETURN(const bool stepped, Step());
      if (!stepped) return absl::OkStatus();
    }
    return Finish();
  }

 private:
  absl::Status Unsupported(const char* why) {
    importer_.Unsupported(node_, why);
    return absl::OkStatus();
  }

  // False if the node was declared unsupported.
  bool ReadLimits() {
    if (importer_.Has(node_, 0)) {
      const auto most = importer_.ConstantInts(node_, 0);
      if (!most.ok() || most->size() != 1) {
        importer_.Unsupported(node_, "whose number of steps depends on data");
        return false;
      }
      most_ = (*most)[0];
    }
    if (importer_.Has(node_, 1)) {
      const std::optional<bool> goes_on = KnownBool(importer_.Input(node_, 1));
      if (!goes_on.has_value()) {
        importer_.Unsupported(node_, "whose condition depends on data");
        return false;
      }
      goes_on_ = *goes_on;
    }
    return true;
  }

  // False if the loop cannot go on.
  absl::StatusOr<bool> Step() {
    const uint8_t condition = 1;
    std::vector<Binding> inputs = {
        ConstantBinding(MakeTensor({DType::kI64, {}}, &steps_)),
        ConstantBinding(MakeTensor({DType::kBool, {}}, &condition))};
    inputs.insert(inputs.end(), carried_.begin(), carried_.end());
    LOADLINE_ASSIGN_OR_RETURN(std::vector<Binding> outputs,
                              importer_.VisitBody(body_, std::move(inputs)));
    if (outputs[0].blocked) {
      importer_.Block(node_);
      return false;
    }
    const std::optional<bool> goes_on = KnownBool(outputs[0]);
    if (!goes_on.has_value()) {
      importer_.Unsupported(node_, "whose end depends on data");
      return false;
    }
    goes_on_ = *goes_on;
    for (size_t i = 0; i < carried_.size(); ++i) {
      carried_[i] = std::move(outputs[i + 1]);
    }
    for (size_t i = 0; i < scans_.size(); ++i) {
      scans_[i].push_back(std::move(outputs[i + 1 + carried_.size()]));
    }
    ++steps_;
    return true;
  }

  absl::Status Finish() {
    for (size_t i = 0; i < carried_.size(); ++i) {
      importer_.Bind(node_.output(static_cast<int>(i)), std::move(carried_[i]));
    }
    for (size_t i = 0; i < scans_.size(); ++i) {
      const auto output = static_cast<int>(i + carried_.size());
      if (node_.output(output).empty()) continue;
      if (steps_ == 0) return Unsupported("of no steps, with what they gather");
      LOADLINE_ASSIGN_OR_RETURN(
          Binding all,
          StackBindings(importer_, node_, std::move(scans_[i]), /*axis=*/0));
      importer_.Bind(node_.output(output), std::move(all));
    }
    return absl::OkStatus();
  }

  Importer& importer_;
  const onnx::NodeProto& node_;
  const onnx::GraphProto& body_;
  std::optional<int64_t> most_;
  bool goes_on_ = true;
  int64_t steps_ = 0;
  std::vector<Binding> carried_;
  std::vector<std::vector<Binding>> scans_;
};

absl::Status Loop(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const onnx::GraphProto* body, BodyOf(node, "body"));
  return LoopUnroller(importer, node, *body).Run();
}

absl::Status SequenceEmpty(Importer& importer, const onnx::NodeProto& node) {
  importer.DefineSequence(node, {});
  return absl::OkStatus();
}

absl::Status SequenceConstruct(Importer& importer,
                               const onnx::NodeProto& node) {
  std::vector<ValueId> parts;
  for (int i = 0; i < node.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(parts.emplace_back(), importer.Use(node, i));
  }
  importer.DefineSequence(node, std::move(parts));
  return absl::OkStatus();
}

absl::Status SequenceInsert(Importer& importer, const onnx::NodeProto& node) {
  if (!importer.Input(node, 0).is_sequence) {
    return absl::InvalidArgumentError("needs a sequence");
  }
  std::vector<ValueId> parts = importer.Input(node, 0).sequence;
  const auto size = static_cast<int64_t>(parts.size());
  int64_t at = size;
  if (importer.Has(node, 2)) {
    LOADLINE_ASSIGN_OR_RETURN(const Ints position,
                              importer.ConstantInts(node, 2));
    if (position.size() != 1 || position[0] < -size || position[0] > size) {
      return absl::InvalidArgumentError("its position is not in the sequence");
    }
    at = position[0] < 0 ? position[0] + size : position[0];
  }
  LOADLINE_ASSIGN_OR_RETURN(const ValueId part, importer.Use(node, 1));
  parts.insert(parts.begin() + at, part);
  importer.DefineSequence(node, std::move(parts));
  return absl::OkStatus();
}

absl::Status ConcatFromSequence(Importer& importer,
                                const onnx::NodeProto& node) {
  std::vector<ValueId> parts = importer.Input(node, 0).sequence;
  if (parts.empty()) {
    return absl::InvalidArgumentError("needs a sequence of tensors");
  }
  const bool new_axis = IntAttribute(node, "new_axis", 0) != 0;
  Emitter e(importer, node);
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t axis,
      NormalizeAxis(IntAttribute(node, "axis", 0),
                    e.type(parts[0]).rank() + (new_axis ? 1 : 0)));
  for (ValueId& part : parts) {
    Ints shape = e.dims(part);
    if (new_axis && axis <= static_cast<int64_t>(shape.size())) {
      shape.insert(shape.begin() + axis, 1);
    }
    part = e.Reshape(part, shape);
  }
  if (parts.size() == 1) return e.Define(0, parts[0]);
  return e.Define(0, e.Emit("Concat", std::move(parts), {{"axis", axis}}));
}

}  // namespace

const std::map<std::string, Rule>& ControlFlowRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"If", If},
      {"Loop", Loop},
      {"SequenceEmpty", SequenceEmpty},
      {"SequenceConstruct", SequenceConstruct},
      {"SequenceInsert", SequenceInsert},
      {"ConcatFromSequence", ConcatFromSequence},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
