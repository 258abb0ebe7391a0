// Rules for normalizations, softmax and dropout, whose training and inference
// forms may differ. Tested in tests/models/onnx_rules_test.cc.
#include "absl/strings/str_cat.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

bool IsState(Importer& importer, const onnx::NodeProto& node, int i) {
  const ValueId id = importer.Input(node, i).id;
  return id != kNoValue && importer.graph().value(id).kind == ValueKind::kState;
}

absl::Status BatchNormInference(Importer& importer,
                                const onnx::NodeProto& node) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < 5; ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, importer.Use(node, i));
    inputs.push_back(id);
  }
  return importer.EmitOne(node, "BatchNormalization", std::move(inputs),
                          {{"epsilon", FloatAttribute(node, "epsilon", 1e-5)}});
}

absl::Status BatchNormTraining(Importer& importer,
                               const onnx::NodeProto& node) {
  const TensorType x_type = importer.Type(node, 0);
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
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scale, importer.Use(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId bias, importer.Use(node, 2));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> y,
      importer.Emit(node, "BatchNormTraining", {x, scale, bias},
                    {{"epsilon", epsilon}}));
  importer.Define(node, 0, y[0]);
  const ValueId mean = importer.Input(node, 3).id;
  const ValueId variance = importer.Input(node, 4).id;
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> running,
      importer.graph().AddNode(
          "RunningStatsUpdate", absl::StrCat(node.name(), "/running_stats"),
          {importer.Newest(mean), importer.Newest(variance), y[1], y[2]},
          {{"momentum", FloatAttribute(node, "momentum", 0.9)},
           {"epsilon", epsilon},
           {"count", count}},
          Phase::kForward));
  importer.Update(mean, running[0]);
  importer.Update(variance, running[1]);
  importer.Define(node, 1, running[0]);
  importer.Define(node, 2, running[1]);
  return absl::OkStatus();
}

absl::Status BatchNormalization(Importer& importer,
                                const onnx::NodeProto& node) {
  for (int i = 0; i < 5; ++i) {
    if (!importer.Has(node, i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  for (int i = 3; i < 5; ++i) {
    if (!IsState(importer, node, i) && !importer.IsConstant(node, i)) {
      importer.Unsupported(node, "with running statistics that are computed");
      return absl::OkStatus();
    }
  }
  if (!importer.options().training || !IsState(importer, node, 3) ||
      !IsState(importer, node, 4)) {
    ++importer.forms().batch_norms_fixed;
    return BatchNormInference(importer, node);
  }
  ++importer.forms().batch_norms;
  if (IntAttribute(node, "training_mode", 0) == 0) {
    ++importer.forms().batch_norms_restored;
  }
  return BatchNormTraining(importer, node);
}

// Normalizes each channel of each example separately: batch statistics of a
// batch of one with N C channels, [N, C, d...] -> [1, N C, d...].
absl::Status InstanceNormalization(Importer& importer,
                                   const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  if (dims.size() < 3 || importer.Type(node, 0).elements() == 0) {
    return absl::InvalidArgumentError("needs an input with spatial axes");
  }
  LOADLINE_ASSIGN_OR_RETURN(int64_t channels, ElementCount({dims[0], dims[1]}));
  if (importer.Type(node, 0).elements() / channels < 2) {
    return absl::InvalidArgumentError(
        "one element per channel has no variance to train with");
  }
  auto per_example = [&](int i) -> absl::StatusOr<ValueId> {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, importer.Use(node, i));
    LOADLINE_ASSIGN_OR_RETURN(
        id, importer.EmitValue(node, "Expand", {id},
                               {{"shape", Ints{dims[0], dims[1]}}}));
    return importer.EmitValue(node, "Reshape", {id},
                              {{"shape", Ints{channels}}});
  };
  Ints flat = dims;
  flat[0] = 1;
  flat[1] = channels;
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(
      x, importer.EmitValue(node, "Reshape", {x}, {{"shape", flat}}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scale, per_example(1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId bias, per_example(2));
  LOADLINE_ASSIGN_OR_RETURN(
      x,
      importer.EmitValue(node, "BatchNormTraining", {x, scale, bias},
                         {{"epsilon", FloatAttribute(node, "epsilon", 1e-5)}}));
  return importer.EmitOne(node, "Reshape", {x}, {{"shape", dims}});
}

absl::Status LayerNormalization(Importer& importer,
                                const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(int64_t axis,
                            NormalizeAxis(IntAttribute(node, "axis", -1),
                                          importer.Type(node, 0).rank()));
  std::vector<ValueId> inputs;
  for (int i = 0; i < (importer.Has(node, 2) ? 3 : 2); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, importer.Use(node, i));
    inputs.push_back(id);
  }
  for (int i = 1; i < 3; ++i) {
    if (!importer.Wants(node, i)) continue;
    // ONNX keeps the normalized axes with size 1; our operator drops them.
    importer.Unsupported(node, "whose statistics are read");
    return absl::OkStatus();
  }
  return importer.EmitOne(
      node, "LayerNormalization", std::move(inputs),
      {{"axis", axis}, {"epsilon", FloatAttribute(node, "epsilon", 1e-5)}});
}

absl::Status Softmax(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(int64_t axis,
                            NormalizeAxis(IntAttribute(node, "axis", -1),
                                          importer.Type(node, 0).rank()));
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(node, node.op_type(), {x}, {{"axis", axis}});
}

// An absent training_mode means inference. But since the node exists, the model
// was trained with it, so its training form is restored, as for
// BatchNormalization. An explicit "false" is kept.
absl::Status Dropout(Importer& importer, const onnx::NodeProto& node) {
  double ratio = 0.5;
  if (importer.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(ratio, importer.ConstantReal(node, 1));
  }
  double training = 1;
  if (importer.Has(node, 2)) {
    LOADLINE_ASSIGN_OR_RETURN(training, importer.ConstantReal(node, 2));
  }
  if (!(ratio >= 0 && ratio < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ratio ", ratio, " is not in [0, 1)"));
  }
  if (importer.Wants(node, 1)) {
    importer.Unsupported(node, "whose mask is read");
    return absl::OkStatus();
  }
  if (!importer.options().training || !importer.options().dropout ||
      training == 0 || ratio == 0) {
    ++importer.forms().dropouts_off;
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  ++importer.forms().dropouts;
  if (!importer.Has(node, 2)) ++importer.forms().dropouts_restored;
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(node, "Dropout", {x},
                          {{"ratio", ratio}, {"salt", importer.NextSalt()}});
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
