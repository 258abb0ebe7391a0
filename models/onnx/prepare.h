// Normalizes a model with the onnx library: checked, one opset, no functions,
// known input shapes, inferred types.
#ifndef LOADLINE_MODELS_ONNX_PREPARE_H_
#define LOADLINE_MODELS_ONNX_PREPARE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/onnx/declared_shapes.h"
#include "models/onnx/export_marks.h"
#include "models/onnx/import.h"
#include "models/onnx/layer_operands.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// The opset of the default domain that the importer reads. onnx 1.22 converts
// from every relevant older opset to 22, but not to newer ones.
inline constexpr int kOpset = 22;

struct PreparedModel {
  // Opset kOpset, inlined, shapes inferred. All initializers are in
  // `initializers`; large ones are graph inputs here, without contents.
  onnx::ModelProto proto;
  std::map<std::string, Tensor> initializers;
  std::vector<std::string> initializer_order;  // as in the file
  // The inputs that are not initializers, in the file's order.
  std::vector<std::pair<std::string, TensorType>> inputs;
  DeclaredShapes declared;
  ExportMarks marks;
  std::map<std::string, LayerOperand> layer_operands;
  std::vector<std::string> warnings;
};

// `folder`: the model's folder for external data; empty: none is allowed. Does
// not throw.
absl::StatusOr<PreparedModel> PrepareModel(onnx::ModelProto proto,
                                           const std::string& folder,
                                           const ImportOptions& options);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_PREPARE_H_
