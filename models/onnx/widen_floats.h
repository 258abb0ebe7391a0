// Models in f16, bf16 or f64 are imported as f32 models, and their weights are
// written back in the file's type.
#ifndef LOADLINE_MODELS_ONNX_WIDEN_FLOATS_H_
#define LOADLINE_MODELS_ONNX_WIDEN_FLOATS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// The float types of a file that become f32, if it has inputs: those of its
// inputs, but for `unread` ones; f16 if an initializer has it or a node makes
// it; bf16 and f64 if an initializer of several elements has them, or nodes
// compute with what is cast to them. Others, such as casts to bf16 and back,
// stay as they are.
std::set<DType> TypesToWiden(const onnx::ModelProto& model,
                             const std::set<std::string>& unread = {});

// Makes every declared type, cast and constant of these types f32. Contents of
// the main graph's initializers are left to AsF32.
absl::Status WidenFloats(const std::set<DType>& types, onnx::ModelProto* model);

// A copy in f32 of a tensor of f16, bf16 or f64; also one without data.
Tensor AsF32(const Tensor& tensor);

// An f32 tensor rounded to f16, bf16 or f64, to nearest even. InvalidArgument:
// a finite number is beyond the type's range.
absl::StatusOr<Tensor> FromF32(const Tensor& tensor, DType dtype);

// What a user has to know; empty for no types.
std::string WidenedWarning(const std::set<DType>& types);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_WIDEN_FLOATS_H_
