// Rules for random numbers, which are drawn anew in every step. Tested in
// tests/conformance/imported_operators_test.cc.
#include <numbers>

#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// Numbers in [0, range).
ValueId Uniform(Importer& importer, Emitter& e, const Ints& shape,
                double range) {
  return e.Emit("RandomUniform", {e.Number(range)},
                {{"shape", shape}, {"salt", importer.NextSalt()}});
}

// The attribute `dtype`; `fallback` without one.
absl::StatusOr<DType> ResultType(const onnx::NodeProto& node, DType fallback) {
  if (FindAttribute(node, "dtype") == nullptr) return fallback;
  return DTypeFromOnnx(static_cast<int32_t>(IntAttribute(node, "dtype", 0)),
                       "its result");
}

// The shape of an operator that takes it from its input or its attribute.
absl::StatusOr<Ints> ResultShape(Importer& importer,
                                 const onnx::NodeProto& node) {
  if (node.input_size() > 0) return importer.Type(node, 0).dims;
  const Ints shape = IntsAttribute(node, "shape");
  return MakeTensorType(DType::kF32, shape).status().ok()
             ? absl::StatusOr<Ints>(shape)
             : absl::InvalidArgumentError("its shape is no shape");
}

absl::Status RandomUniform(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const Ints shape, ResultShape(importer, node));
  LOADLINE_ASSIGN_OR_RETURN(const DType dtype, ResultType(node, DType::kF32));
  const double low = FloatAttribute(node, "low", 0);
  const double high = FloatAttribute(node, "high", 1);
  Emitter e(importer, node);
  ValueId y = Uniform(importer, e, shape, high - low);
  if (low != 0) y = e.Emit("Add", {y, e.Number(low)});
  return e.Define(0, e.Cast(y, dtype));
}

// G. Box, M. Muller, "A Note on the Generation of Random Normal Deviates", The
// Annals of Mathematical Statistics 29 (1958): sqrt(-2 log(1 - u)) cos(2 pi v).
absl::Status RandomNormal(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const Ints shape, ResultShape(importer, node));
  LOADLINE_ASSIGN_OR_RETURN(const DType dtype, ResultType(node, DType::kF32));
  Emitter e(importer, node);
  const ValueId u = Uniform(importer, e, shape, 1);
  const ValueId angle = Uniform(importer, e, shape, 2 * std::numbers::pi);
  const ValueId above = e.Emit("Sub", {e.Number(1), u});
  const ValueId square = e.Emit("Mul", {e.Emit("Log", {above}), e.Number(-2)});
  ValueId y = e.Emit("Mul", {e.Emit("Sqrt", {square}), e.Emit("Cos", {angle})});
  y = e.Emit("Mul", {y, e.Number(FloatAttribute(node, "scale", 1))});
  y = e.Emit("Add", {y, e.Number(FloatAttribute(node, "mean", 0))});
  return e.Define(0, e.Cast(y, dtype));
}

// 1 with the probability that the input says.
absl::Status Bernoulli(Importer& importer, const onnx::NodeProto& node) {
  const TensorType type = importer.Type(node, 0);
  LOADLINE_ASSIGN_OR_RETURN(const DType dtype, ResultType(node, type.dtype));
  Emitter e(importer, node);
  const ValueId u = Uniform(importer, e, type.dims, 1);
  const ValueId hit = e.Emit("Less", {u, e.Cast(e.Input(0), DType::kF32)});
  return e.Define(0, e.Cast(hit, dtype));
}

}  // namespace

const std::map<std::string, Rule>& RandomRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"RandomUniform", RandomUniform}, {"RandomUniformLike", RandomUniform},
      {"RandomNormal", RandomNormal},   {"RandomNormalLike", RandomNormal},
      {"Bernoulli", Bernoulli},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
