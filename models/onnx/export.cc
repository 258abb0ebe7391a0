// Reads the original file again and replaces only the contents of initializers,
// so every name, attribute and opset stays. Tested in
// tests/models/onnx_export_test.cc.
#include "models/onnx/export.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/model_file.h"
#include "models/onnx/tied_copies.h"
#include "models/onnx/widen_floats.h"
#include "models/onnx/write_model.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::Status Replace(const Tensor& tensor, onnx::TensorProto* proto) {
  LOADLINE_ASSIGN_OR_RETURN(
      DType dtype, onnx_internal::DTypeFromOnnx(
                       proto->data_type(),
                       absl::StrCat("initializer '", proto->name(), "'")));
  const TensorType own{dtype, {proto->dims().begin(), proto->dims().end()}};
  const bool narrowed =
      dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF64;
  if (narrowed && tensor.type == TensorType{DType::kF32, own.dims}) {
    absl::StatusOr<Tensor> narrow = onnx_internal::FromF32(tensor, dtype);
    if (!narrow.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "initializer '", proto->name(), "': ", narrow.status().message()));
    }
    onnx_internal::WriteTensor(*narrow, proto);
    return absl::OkStatus();
  }
  if (own != tensor.type) {
    return absl::InvalidArgumentError(
        absl::StrCat("initializer '", proto->name(), "' is ", own.ToString(),
                     ", not ", tensor.type.ToString()));
  }
  onnx_internal::WriteTensor(tensor, proto);
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportTrained(const std::string& original_path,
                           std::map<std::string, Tensor> trained,
                           const std::string& out_path) {
  LOADLINE_ASSIGN_OR_RETURN(onnx::ModelProto model,
                            onnx_internal::ReadModelFile(
                                original_path, onnx_internal::kMaxFileBytes));
  const std::string folder = onnx_internal::FolderOf(original_path);
  for (const auto& tied : onnx_internal::FindTiedCopies(model, folder)) {
    const auto original = trained.find(tied.original);
    if (original == trained.end()) continue;
    trained[tied.copy] = onnx_internal::CopyOf(original->second, tied);
  }
  int64_t budget_bytes = onnx_internal::kMaxFileBytes;
  for (onnx::TensorProto& proto :
       *model.mutable_graph()->mutable_initializer()) {
    auto it = trained.find(proto.name());
    if (it != trained.end()) {
      LOADLINE_RETURN_IF_ERROR(Replace(it->second, &proto));
      trained.erase(it);
    } else if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
      LOADLINE_ASSIGN_OR_RETURN(
          Tensor tensor,
          onnx_internal::ReadTensor(proto, folder, &budget_bytes));
      onnx_internal::WriteTensor(tensor, &proto);
    }
  }
  if (!trained.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(original_path, " has no initializer named '",
                     trained.begin()->first, "'"));
  }
  return onnx_internal::WriteModel(model, out_path);
}

}  // namespace loadline::models
