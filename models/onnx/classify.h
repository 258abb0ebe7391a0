// Decides which initializers are trained. ONNX does not say. In this order:
//
// 1. What is not f32 is constant. Running statistics (inputs 3 and 4 of
//    BatchNormalization, also through Identity) are states.
//    What no gradient can reach is constant, because it only feeds comparisons,
//    conditions, shapes or indices.
// 2. ImportOptions::train and ImportOptions::freeze decide, in this order.
// 3. If torch's exporter marks parameters and buffers (export_marks.h), it
//    decides. What it has computed from a parameter is one.
// 4. Masks, tables of sines and their frequencies are constants, recognized by
//    their contents (tables.h); so are single elements with a name that
//    exporters generate ("val_72", "onnx::Mul_9").
// 5. Operands of layers (layer_operands.h) are parameters.
// 6. Others, such as a position embedding that is added, are parameters if the
//    last part of the name says so ("pos_embed", "gamma", "ReadVariableOp"), or
//    if the older exporter has computed them ("onnx::Add_9"). Numbers without
//    axes are constants in files of other programs than PyTorch, unless they
//    are variables of TensorFlow.
// 7. Torch's older exporter writes parameters and buffers as initializers, and
//    nothing else. So in its files those that no name decides are parameters,
//    unless their contents are regular (tables.h), also as operands of layers.
//
// Warnings name what 5 to 7 decide on weak evidence.
//
// Constant nodes of files of other programs than PyTorch are initializers by
// then (constant_weights.h).
#ifndef LOADLINE_MODELS_ONNX_CLASSIFY_H_
#define LOADLINE_MODELS_ONNX_CLASSIFY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph.h"
#include "models/onnx/import.h"
#include "models/onnx/prepare.h"

namespace loadline::models::onnx_internal {

// The reason of what ImportOptions::freeze decides.
inline constexpr char kFrozenByFlag[] = "--freeze";

struct Classification {
  // kParameter, kState or kConstant for every initializer.
  std::map<std::string, ValueKind> kinds;
  // Of f32 initializers, in the file's order, without running statistics.
  std::vector<InitializerRole> roles;
  // What is uncertain, and where the exporter changed the weights so that
  // training would differ from the author's model.
  std::vector<std::string> warnings;
};

// InvalidArgument for a pattern of the options that no initializer matches: a
// typo, which would train what should stay as it is.
absl::StatusOr<Classification> ClassifyInitializers(
    const PreparedModel& model, const ImportOptions& options);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CLASSIFY_H_
