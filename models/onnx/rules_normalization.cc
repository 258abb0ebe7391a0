// Rules for normalizations, softmax and dropout, whose training and inference
// forms may differ. Tested in tests/models/onnx_rules_test.cc.
#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
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

// Emits the node with the statistics of the batch; defines y and returns it,
// mean and rstd.
absl::StatusOr<std::vector<ValueId>> NormalizeBatch(
    Importer& importer, const onnx::NodeProto& node) {
  const TensorType x_type = importer.Type(node, 0);
  if (x_type.rank() < 2 || x_type.elements() == 0) {
    return absl::InvalidArgumentError("needs an input with channels");
  }
  if (x_type.elements() / x_type.dims[1] < 2) {
    return absl::InvalidArgumentError(
        "one element per channel has no variance to train with; choose a "
        "larger batch");
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId scale, importer.Use(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId bias, importer.Use(node, 2));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> y,
      importer.Emit(node, "BatchNormTraining", {x, scale, bias},
                    {{"epsilon", FloatAttribute(node, "epsilon", 1e-5)}}));
  importer.Define(node, 0, y[0]);
  return y;
}

absl::Status BatchNormTraining(Importer& importer,
                               const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<ValueId> y,
                            NormalizeBatch(importer, node));
  const TensorType x_type = importer.Type(node, 0);
  const int64_t count = x_type.elements() / x_type.dims[1];
  const double epsilon = FloatAttribute(node, "epsilon", 1e-5);
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

// Shares of the given statistics and those of the batch, whose variance is
// biased, as ONNX says.
absl::Status DefineRunningStatistics(Importer& importer,
                                     const onnx::NodeProto& node) {
  const int64_t rank = importer.Type(node, 0).rank();
  Ints axes = {0};
  for (int64_t i = 2; i < rank; ++i) axes.push_back(i);
  const double momentum = FloatAttribute(node, "momentum", 0.9);
  Emitter e(importer, node);
  const auto mean_of = [&](ValueId x, int64_t keepdims) {
    return e.Emit("ReduceMean", {x}, {{"axes", axes}, {"keepdims", keepdims}});
  };
  const ValueId x = e.Input(0);
  const ValueId apart = e.Emit("Sub", {x, mean_of(x, 1)});
  const ValueId batch[] = {mean_of(x, 0),
                           mean_of(e.Emit("Mul", {apart, apart}), 0)};
  for (int i : {1, 2}) {
    if (!importer.Wants(node, i)) continue;
    const ValueId old = e.Emit("Mul", {e.Input(i + 2), e.Number(momentum)});
    const ValueId added = e.Emit("Mul", {batch[i - 1], e.Number(1 - momentum)});
    LOADLINE_RETURN_IF_ERROR(e.Define(i, e.Emit("Add", {old, added})));
  }
  return e.status();
}

// With the statistics of the batch and none to keep, in training and in
// evaluation (track_running_stats=False).
absl::Status BatchNormOfBatch(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_RETURN_IF_ERROR(NormalizeBatch(importer, node).status());
  ++importer.forms().batch_norms;
  return importer.Wants(node, 1) || importer.Wants(node, 2)
             ? DefineRunningStatistics(importer, node)
             : absl::OkStatus();
}

// By statistics that are computed, through which gradients flow.
absl::Status BatchNormByComputed(Importer& importer,
                                 const onnx::NodeProto& node) {
  Ints column(static_cast<size_t>(importer.Type(node, 0).rank()) - 1, 1);
  column[0] = importer.Type(node, 0).dims[1];
  Emitter e(importer, node);
  const auto input = [&](int i) { return e.Reshape(e.Input(i), column); };
  const ValueId variance = e.Emit(
      "Add", {input(4), e.Number(FloatAttribute(node, "epsilon", 1e-5))});
  const ValueId normal = e.Emit("Div", {e.Emit("Sub", {e.Input(0), input(3)}),
                                        e.Emit("Sqrt", {variance})});
  const ValueId scaled = e.Emit("Mul", {normal, input(1)});
  return e.Define(0, e.Emit("Add", {scaled, input(2)}));
}

absl::Status BatchNormalization(Importer& importer,
                                const onnx::NodeProto& node) {
  for (int i = 0; i < 5; ++i) {
    if (!importer.Has(node, i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  const auto computed = [&](int i) {
    return !IsState(importer, node, i) && !importer.IsInitializer(node, i);
  };
  if (computed(3) || computed(4)) {
    if (IntAttribute(node, "training_mode", 0) != 0) {
      return BatchNormOfBatch(importer, node);
    }
    if (importer.Type(node, 0).rank() < 2) {
      return absl::InvalidArgumentError("needs an input with channels");
    }
    return BatchNormByComputed(importer, node);
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

// Mean and 1 / sqrt(variance + epsilon) of each row, as values of their own:
// the statistics that LayerNormalization saves have no gradient.
absl::Status EmitRowStatistics(Importer& importer, const onnx::NodeProto& node,
                               int64_t axis) {
  Emitter e(importer, node);
  const ValueId x = e.Input(0);
  Ints axes;
  for (int64_t i = axis; i < importer.Type(node, 0).rank(); ++i) {
    axes.push_back(i);
  }
  const Attributes rows = {{"axes", axes}, {"keepdims", int64_t{1}}};
  const ValueId mean = e.Emit("ReduceMean", {x}, rows);
  const ValueId apart = e.Emit("Sub", {x, mean});
  const ValueId variance =
      e.Emit("ReduceMean", {e.Emit("Mul", {apart, apart})}, rows);
  const ValueId shifted = e.Emit(
      "Add", {variance, e.Number(FloatAttribute(node, "epsilon", 1e-5))});
  const ValueId rstd = e.Emit("Reciprocal", {e.Emit("Sqrt", {shifted})});
  LOADLINE_RETURN_IF_ERROR(e.Define(1, mean));
  return e.Define(2, rstd);
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
  if (importer.Wants(node, 1) || importer.Wants(node, 2)) {
    LOADLINE_RETURN_IF_ERROR(EmitRowStatistics(importer, node, axis));
  }
  return importer.EmitOne(
      node, "LayerNormalization", std::move(inputs),
      {{"axis", axis}, {"epsilon", FloatAttribute(node, "epsilon", 1e-5)}});
}

// Batch statistics of a batch of one, whose channels are the groups of every
// example; then scale and bias of each channel.
absl::Status GroupNormalization(Importer& importer,
                                const onnx::NodeProto& node) {
  const TensorType type = importer.Type(node, 0);
  const int64_t groups = IntAttribute(node, "num_groups", 1);
  if (type.rank() < 2 || type.elements() == 0 || groups < 1 ||
      type.dims[1] % groups != 0) {
    return absl::InvalidArgumentError("its groups do not divide the channels");
  }
  const int64_t all_groups = type.dims[0] * groups;
  Ints column(type.dims.size() - 1, 1);
  column[0] = type.dims[1];
  for (int i : {1, 2}) {
    if (importer.Type(node, i).dims == Ints{type.dims[1]}) continue;
    importer.Unsupported(node, "with a scale for each group");
    return absl::OkStatus();
  }
  Emitter e(importer, node);
  const ValueId flat =
      e.Reshape(e.Input(0), {1, all_groups, type.elements() / all_groups});
  const ValueId normal =
      e.Emit("BatchNormTraining",
             {flat, e.Expand(e.Number(1), {all_groups}),
              e.Expand(e.Number(0), {all_groups})},
             {{"epsilon", FloatAttribute(node, "epsilon", 1e-5)}});
  const ValueId scaled = e.Emit(
      "Mul", {e.Reshape(normal, type.dims), e.Reshape(e.Input(1), column)});
  return e.Define(0, e.Emit("Add", {scaled, e.Reshape(e.Input(2), column)}));
}

// x / |x| along an axis; 0 where the norm is 0.
absl::Status LpNormalization(Importer& importer, const onnx::NodeProto& node) {
  const int64_t p = IntAttribute(node, "p", 2);
  if (p != 1 && p != 2) {
    return absl::InvalidArgumentError(absl::StrCat("p is ", p, ", not 1 or 2"));
  }
  LOADLINE_ASSIGN_OR_RETURN(const int64_t axis,
                            NormalizeAxis(IntAttribute(node, "axis", -1),
                                          importer.Type(node, 0).rank()));
  Emitter e(importer, node);
  const ValueId x = e.Input(0);
  const ValueId power = p == 1 ? e.Emit("Abs", {x}) : e.Emit("Mul", {x, x});
  const ValueId sum = e.Emit("ReduceSum", {power},
                             {{"axes", Ints{axis}}, {"keepdims", int64_t{1}}});
  const ValueId none = e.Emit("Equal", {sum, e.Number(0)});
  const ValueId safe = e.Emit("Where", {none, e.Number(1), sum});
  const ValueId norm = p == 1 ? safe : e.Emit("Sqrt", {safe});
  return e.Define(0, e.Emit("Div", {x, norm}));
}

// x / (bias + alpha * mean of the squares of `size` neighbouring channels) ^
// beta, where channels beyond the ends count as 0.
absl::Status Lrn(Importer& importer, const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  const int64_t size = IntAttribute(node, "size", 1);
  if (dims.size() < 2 || size < 1) {
    return absl::InvalidArgumentError("needs channels and a size");
  }
  LOADLINE_ASSIGN_OR_RETURN(const int64_t plane,
                            ElementCount(Ints(dims.begin() + 2, dims.end())));
  Emitter e(importer, node);
  const ValueId x = e.Input(0);
  const ValueId squares =
      e.Reshape(e.Emit("Mul", {x, x}), {dims[0], 1, dims[1], plane});
  const ValueId means = e.Emit("AveragePool", {squares},
                               {{"kernel_shape", Ints{size, 1}},
                                {"strides", Ints{1, 1}},
                                {"pads", Ints{(size - 1) / 2, 0, size / 2, 0}},
                                {"dilations", Ints{1, 1}},
                                {"ceil_mode", int64_t{0}},
                                {"count_include_pad", int64_t{1}}});
  const ValueId scaled =
      e.Emit("Mul", {means, e.Number(FloatAttribute(node, "alpha", 1e-4))});
  const ValueId base =
      e.Emit("Add", {scaled, e.Number(FloatAttribute(node, "bias", 1))});
  const ValueId factor =
      e.Emit("Pow", {base, e.Number(-FloatAttribute(node, "beta", 0.75))});
  return e.Define(0, e.Emit("Mul", {x, e.Reshape(factor, dims)}));
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
  Emitter e(importer, node);
  // Which elements are kept: those of ones that are not zero afterwards.
  const auto define_mask = [&](const Attributes* attributes) -> absl::Status {
    if (!importer.Wants(node, 1)) return absl::OkStatus();
    ValueId kept = e.Expand(e.Number(1), importer.Type(node, 0).dims);
    if (attributes != nullptr) kept = e.Emit("Dropout", {kept}, *attributes);
    return e.Define(1, e.Cast(kept, DType::kBool));
  };
  if (!importer.options().training || !importer.options().dropout ||
      training == 0 || ratio == 0) {
    ++importer.forms().dropouts_off;
    importer.Alias(node, 0, 0);
    return define_mask(nullptr);
  }
  ++importer.forms().dropouts;
  if (!importer.Has(node, 2)) ++importer.forms().dropouts_restored;
  const Attributes attributes = {{"ratio", ratio},
                                 {"salt", importer.NextSalt()}};
  LOADLINE_RETURN_IF_ERROR(
      e.Define(0, e.Emit("Dropout", {e.Input(0)}, attributes)));
  return define_mask(&attributes);
}

}  // namespace

const std::map<std::string, Rule>& NormalizationRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"BatchNormalization", BatchNormalization},
      {"InstanceNormalization", InstanceNormalization},
      {"LayerNormalization", LayerNormalization},
      {"GroupNormalization", GroupNormalization},
      {"LpNormalization", LpNormalization},
      {"LRN", Lrn},
      {"Softmax", Softmax},
      {"LogSoftmax", Softmax},
      {"Dropout", Dropout},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
