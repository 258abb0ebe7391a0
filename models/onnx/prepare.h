// The model made uniform by the onnx library: checked, one opset, no
// functions, known input shapes, inferred types.
#ifndef LOADLINE_MODELS_ONNX_PREPARE_H_
#define LOADLINE_MODELS_ONNX_PREPARE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/onnx/import.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// The one opset of the default domain that the importer reads. 22 is the
// newest that onnx 1.22 converts to from every older one that matters.
inline constexpr int kOpset = 22;

struct PreparedModel {
  // Opset kOpset, inlined, shapes inferred. Initializers of any size are
  // listed below; the large ones are graph inputs here, without contents.
  onnx::ModelProto proto;
  std::map<std::string, Tensor> initializers;
  std::vector<std::string> initializer_order;  // as in the file
  // The real inputs, in the file's order, with whole shapes.
  std::vector<std::pair<std::string, TensorType>> inputs;
  std::vector<std::string> warnings;
};

// `folder` is the model's, for external data; empty: none is allowed. The
// onnx library's exceptions end here.
absl::StatusOr<PreparedModel> PrepareModel(onnx::ModelProto proto,
                                           const std::string& folder,
                                           const ImportOptions& options);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_PREPARE_H_
