// Reads .onnx files: bytes to protobuf, TensorProto to Tensor, external data
// from inside the model's folder only.
#ifndef LOADLINE_MODELS_ONNX_MODEL_FILE_H_
#define LOADLINE_MODELS_ONNX_MODEL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/types.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Reads and parses; `max_bytes` limits the file. NotFound, InvalidArgument.
absl::StatusOr<onnx::ModelProto> ReadModelFile(const std::string& path,
                                               int64_t max_bytes);
absl::StatusOr<onnx::ModelProto> ParseModel(absl::string_view bytes);

// The folder of a model file, for its external data.
std::string FolderOf(const std::string& path);

// The real paths of the external data of the model's initializers, of
// subgraphs and functions too, without repeats. What does not exist or lies
// outside `folder` is left out.
std::vector<std::string> ExternalDataPaths(const onnx::ModelProto& model,
                                           const std::string& folder);

// The element type, or InvalidArgument naming `what`.
absl::StatusOr<DType> DTypeFromOnnx(int32_t onnx_type, absl::string_view what);
int32_t DTypeToOnnx(DType dtype);

// The declared type; InvalidArgument names the tensor.
absl::StatusOr<TensorType> TypeOfTensor(const onnx::TensorProto& proto);

// The tensor's contents, from the protobuf or external data. The declared shape
// must agree with the bytes that exist, so a small file cannot demand much
// memory. `folder` empty: external data is refused. Subtracts the tensor's
// bytes from `budget_bytes`; ResourceExhausted if it would become negative.
// NotFound if, and only if, the file of external data is missing.
absl::StatusOr<Tensor> ReadTensor(const onnx::TensorProto& proto,
                                  const std::string& folder,
                                  int64_t* budget_bytes);

// Replaces the contents and keeps type and dims. External data becomes
// embedded.
void WriteTensor(const Tensor& tensor, onnx::TensorProto* proto);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_MODEL_FILE_H_
