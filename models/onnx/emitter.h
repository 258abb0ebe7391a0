// Emits the several nodes that an ONNX node becomes. After an error it emits
// nothing more and keeps the error, so that a rule checks once, at its end:
//
//   Emitter e(importer, node);
//   const ValueId x = e.Input(0);
//   const ValueId square = e.Emit("Mul", {x, x});
//   return e.Define(0, e.Emit("Neg", {square}));
#ifndef LOADLINE_MODELS_ONNX_EMITTER_H_
#define LOADLINE_MODELS_ONNX_EMITTER_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/importer.h"

namespace loadline::models::onnx_internal {

class Emitter {
 public:
  Emitter(Importer& importer, const onnx::NodeProto& node)
      : importer_(importer), node_(node) {}

  // The value of input i, which must be present.
  ValueId Input(int i);
  // The first output of a new node; kNoValue after an error.
  ValueId Emit(const std::string& op, std::vector<ValueId> inputs,
               Attributes attributes = {});
  // All outputs of a new node; `count` times kNoValue after an error.
  std::vector<ValueId> EmitAll(const std::string& op,
                               std::vector<ValueId> inputs,
                               Attributes attributes, size_t count);
  ValueId Constant(const Tensor& tensor);
  // One number of a type: f32, i64, i32 or bool.
  ValueId Number(double number, DType dtype = DType::kF32);
  // No node if x has the shape, or the type, already.
  ValueId Reshape(ValueId x, Ints shape);
  ValueId Expand(ValueId x, Ints shape);
  ValueId Cast(ValueId x, DType to);
  ValueId Transpose(ValueId x, Ints perm);

  // The type of a value; an f32 scalar's after an error.
  const TensorType& type(ValueId id) const;
  const Ints& dims(ValueId id) const { return type(id).dims; }

  const absl::Status& status() const { return status_; }
  // Binds an output of the ONNX node. Returns the first error.
  absl::Status Define(int output, ValueId id);

 private:
  Importer& importer_;
  const onnx::NodeProto& node_;
  absl::Status status_;
};

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_EMITTER_H_
