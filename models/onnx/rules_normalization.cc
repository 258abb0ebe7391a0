// Rules for normalizations, softmax and dropout: where training and inference
// differ. Tested in tests/models/onnx_rules_test.cc.
#include "absl/strings/str_cat.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "models/onnx/walk.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

bool IsState(Walk& walk, const onnx::NodeProto& node, int i) {
  const ValueId id = walk.Input(node, i).id;
  return id != kNoValue && walk.graph().value(id).kind == ValueKind::kState;
}

absl::Status BatchNormInference(Walk& walk, const onnx::NodeProto& node) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < 5; ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, walk.Use(node, i));
    inputs.push_back(id);
  }
  return walk.EmitOne(node, "BatchNormalization", std::move(inputs),
                      {{"epsilon", FloatAttribute(node, "epsilon", 1e-5)}});
}

absl::Status BatchNormTraining(Walk& walk, const onnx::NodeProto& node) {
  const TensorType x_type = walk.Type(node, 0);
  if (x_type.rank() < 2 || x_type.elements() == 0) {
    return absl::InvalidArgumentError("needs an input with channels");
  }
  const int64_t count = x_type.elements() / x_type.dims[1];
  if (count < 2) {
    return absl::InvalidArgumentError(
        "one element per channel has no variance to train with; choose a "
        "larger batch");
  }
  const double epsilon = FloatAttribute(node, "epsilon", 1e-5);
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, walk.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scale, walk.Use(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId bias, walk.Use(node, 2));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> y,
      walk.Emit(node, "BatchNormTraining", {x, scale, bias},
                {{"epsilon", epsilon}}));
  walk.Define(node, 0, y[0]);
  const ValueId mean = walk.Input(node, 3).id;
  const ValueId variance = walk.Input(node, 4).id;
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> running,
      walk.graph().AddNode(
          "RunningStatsUpdate", absl::StrCat(node.name(), "/running_stats"),
          {walk.Newest(mean), walk.Newest(variance), y[1], y[2]},
          {{"momentum", FloatAttribute(node, "momentum", 0.9)},
           {"epsilon", epsilon},
           {"count", count}},
          Phase::kForward));
  walk.Update(mean, running[0]);
  walk.Update(variance, running[1]);
  walk.Define(node, 1, running[0]);
  walk.Define(node, 2, running[1]);
  return absl::OkStatus();
}

absl::Status BatchNormalization(Walk& walk, const onnx::NodeProto& node) {
  for (int i = 0; i < 5; ++i) {
    if (!walk.Has(node, i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  for (int i = 3; i < 5; ++i) {
    if (!IsState(walk, node, i) && !walk.IsConstant(node, i)) {
      walk.Unsupported(node, "with running statistics that are computed");
      return absl::OkStatus();
    }
  }
  if (!walk.options().training || !IsState(walk, node, 3) ||
      !IsState(walk, node, 4)) {
    ++walk.forms().batch_norms_fixed;
    return BatchNormInference(walk, node);
  }
  ++walk.forms().batch_norms;
  if (IntAttribute(node, "training_mode", 0) == 0) {
    ++walk.forms().batch_norms_restored;
  }
  return BatchNormTraining(walk, node);
}

// Every channel of every example by itself: batch statistics of a batch of one
// with N C channels, [N, C, d...] -> [1, N C, d...].
absl::Status InstanceNormalization(Walk& walk, const onnx::NodeProto& node) {
  const Ints dims = walk.Type(node, 0).dims;
  if (dims.size() < 3 || walk.Type(node, 0).elements() == 0) {
    return absl::InvalidArgumentError("needs an input with spatial axes");
  }
  LOADLINE_ASSIGN_OR_RETURN(int64_t channels, ElementCount({dims[0], dims[1]}));
  if (walk.Type(node, 0).elements() / channels < 2) {
    return absl::InvalidArgumentError(
        "one element per channel has no variance to train with");
  }
  auto per_example = [&](int i) -> absl::StatusOr<ValueId> {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, walk.Use(node, i));
    LOADLINE_ASSIGN_OR_RETURN(
        id, walk.EmitValue(node, "Expand", {id},
                           {{"shape", Ints{dims[0], dims[1]}}}));
    return walk.EmitValue(node, "Reshape", {id}, {{"shape", Ints{channels}}});
  };
  Ints flat = dims;
  flat[0] = 1;
  flat[1] = channels;
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, walk.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(
      x, walk.EmitValue(node, "Reshape", {x}, {{"shape", flat}}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scale, per_example(1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId bias, per_example(2));
  LOADLINE_ASSIGN_OR_RETURN(
      x, walk.EmitValue(node, "BatchNormTraining", {x, scale, bias},
                        {{"epsilon", FloatAttribute(node, "epsilon", 1e-5)}}));
  return walk.EmitOne(node, "Reshape", {x}, {{"shape", dims}});
}

absl::Status LayerNormalization(Walk& walk, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis,
      NormalizeAxis(IntAttribute(node, "axis", -1), walk.Type(node, 0).rank()));
  std::vector<ValueId> inputs;
  for (int i = 0; i < (walk.Has(node, 2) ? 3 : 2); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, walk.Use(node, i));
    inputs.push_back(id);
  }
  for (int i = 1; i < 3; ++i) {
    if (!walk.Wants(node, i)) continue;
    // ONNX keeps the normalized axes as ones; ours drops them.
    walk.Unsupported(node, "whose statistics are read");
    return absl::OkStatus();
  }
  return walk.EmitOne(
      node, "LayerNormalization", std::move(inputs),
      {{"axis", axis}, {"epsilon", FloatAttribute(node, "epsilon", 1e-5)}});
}

absl::Status Softmax(Walk& walk, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis,
      NormalizeAxis(IntAttribute(node, "axis", -1), walk.Type(node, 0).rank()));
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, walk.Use(node, 0));
  return walk.EmitOne(node, node.op_type(), {x}, {{"axis", axis}});
}

// An absent training_mode means inference, but the node is there, so somebody
// trained with it: like BatchNormalization's, its training form is restored.
// An explicit "false" is obeyed.
absl::Status Dropout(Walk& walk, const onnx::NodeProto& node) {
  double ratio = 0.5;
  if (walk.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(ratio, walk.ConstantReal(node, 1));
  }
  double training = 1;
  if (walk.Has(node, 2)) {
    LOADLINE_ASSIGN_OR_RETURN(training, walk.ConstantReal(node, 2));
  }
  if (!(ratio >= 0 && ratio < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ratio ", ratio, " is not in [0, 1)"));
  }
  if (walk.Wants(node, 1)) {
    walk.Unsupported(node, "whose mask is read");
    return absl::OkStatus();
  }
  if (!walk.options().training || !walk.options().dropout || training == 0 ||
      ratio == 0) {
    ++walk.forms().dropouts_off;
    walk.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  ++walk.forms().dropouts;
  if (!walk.Has(node, 2)) ++walk.forms().dropouts_restored;
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, walk.Use(node, 0));
  return walk.EmitOne(node, "Dropout", {x},
                      {{"ratio", ratio}, {"salt", walk.NextSalt()}});
}

}  // namespace

const std::map<std::string, Rule>& NormalizationRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"BatchNormalization", BatchNormalization},
      {"InstanceNormalization", InstanceNormalization},
      {"LayerNormalization", LayerNormalization},
      {"Softmax", Softmax},
      {"LogSoftmax", Softmax},
      {"Dropout", Dropout},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
