// What the name of an initializer says of whether it is trained, in files
// without the exporter's marks.
#ifndef LOADLINE_MODELS_ONNX_INITIALIZER_NAMES_H_
#define LOADLINE_MODELS_ONNX_INITIALIZER_NAMES_H_

#include "absl/strings/string_view.h"

namespace loadline::models::onnx_internal {

// Names such as val_72, _val_3, onnx::MatMul_12, Constant_5, Constant_5_output.
bool IsInventedName(absl::string_view name);

// As tf2onnx names the variables of a TensorFlow or Keras model.
bool IsVariable(absl::string_view name);

enum class NameSays { kNothing, kParameter, kBuffer };

// By the words of the name's last component: "encoder.layer_scale" has "layer"
// and "scale". A word for a buffer decides.
NameSays WhatNameSays(absl::string_view name);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_INITIALIZER_NAMES_H_
