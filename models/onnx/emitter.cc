// Tested through the rules that use it, in
// tests/conformance/imported_operators_test.cc and onnx_node_test.cc.
#include "models/onnx/emitter.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace loadline::models::onnx_internal {

ValueId Emitter::Input(int i) {
  if (!status_.ok()) return kNoValue;
  absl::StatusOr<ValueId> id = importer_.Use(node_, i);
  status_ = id.status();
  return id.ok() ? *id : kNoValue;
}

ValueId Emitter::Emit(const std::string& op, std::vector<ValueId> inputs,
                      Attributes attributes) {
  if (!status_.ok()) return kNoValue;
  absl::StatusOr<ValueId> id =
      importer_.EmitValue(node_, op, std::move(inputs), std::move(attributes));
  status_ = id.status();
  return id.ok() ? *id : kNoValue;
}

std::vector<ValueId> Emitter::EmitAll(const std::string& op,
                                      std::vector<ValueId> inputs,
                                      Attributes attributes, size_t count) {
  if (status_.ok()) {
    absl::StatusOr<std::vector<ValueId>> ids =
        importer_.Emit(node_, op, std::move(inputs), std::move(attributes));
    if (ids.ok() && ids->size() == count) return *std::move(ids);
    status_ = ids.ok() ? absl::InternalError("a wrong number of outputs")
                       : ids.status();
  }
  return std::vector<ValueId>(count, kNoValue);
}

ValueId Emitter::Constant(const Tensor& tensor) {
  if (!status_.ok()) return kNoValue;
  return importer_.UseTensor(absl::StrCat(node_.name(), "/constant"), tensor);
}

ValueId Emitter::Number(double number, DType dtype) {
  const TensorType type{dtype, {}};
  // A number that the type does not have must not be converted to it.
  const auto constant = [&](auto value) {
    return Constant(MakeTensor(type, &value));
  };
  switch (dtype) {
    case DType::kI64:
      return constant(static_cast<int64_t>(number));
    case DType::kI32:
      return constant(static_cast<int32_t>(number));
    case DType::kBool:
      return constant(static_cast<uint8_t>(number));
    case DType::kF32:
      return constant(static_cast<float>(number));
    default:
      if (status_.ok()) {
        status_ = absl::InvalidArgumentError(
            absl::StrCat("is not defined on ", DTypeName(dtype)));
      }
      return kNoValue;
  }
}

ValueId Emitter::Reshape(ValueId x, Ints shape) {
  if (dims(x) == shape) return x;
  return Emit("Reshape", {x}, {{"shape", std::move(shape)}});
}

ValueId Emitter::Expand(ValueId x, Ints shape) {
  if (dims(x) == shape) return x;
  return Emit("Expand", {x}, {{"shape", std::move(shape)}});
}

ValueId Emitter::Cast(ValueId x, DType to) {
  if (type(x).dtype == to) return x;
  return Emit("Cast", {x}, {{"to", std::string(DTypeName(to))}});
}

ValueId Emitter::Transpose(ValueId x, Ints perm) {
  return Emit("Transpose", {x}, {{"perm", std::move(perm)}});
}

const TensorType& Emitter::type(ValueId id) const {
  static const TensorType& none = *new TensorType;
  return id == kNoValue ? none : importer_.graph().value(id).type;
}

absl::Status Emitter::Define(int output, ValueId id) {
  if (status_.ok()) importer_.Define(node_, output, id);
  return status_;
}

}  // namespace loadline::models::onnx_internal
