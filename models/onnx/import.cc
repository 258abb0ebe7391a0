// Three steps: read the file, normalize it with the onnx library (prepare.h),
// build the Graph (importer.h). Tested in tests/models/onnx_import_test.cc.
#include "models/onnx/import.h"

#include <utility>

#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/prepare.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

absl::StatusOr<Imported> Import(onnx::ModelProto proto,
                                const std::string& folder,
                                const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(
      onnx_internal::PreparedModel model,
      onnx_internal::PrepareModel(std::move(proto), folder, options));
  return onnx_internal::Importer(model, options).Run();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExternalDataFiles(
    const std::string& path) {
  LOADLINE_ASSIGN_OR_RETURN(
      const onnx::ModelProto model,
      onnx_internal::ReadModelFile(path, ImportOptions().max_bytes));
  return onnx_internal::ExternalDataPaths(model, onnx_internal::FolderOf(path));
}

absl::StatusOr<Imported> ImportOnnx(const std::string& path,
                                    const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(
      onnx::ModelProto proto,
      onnx_internal::ReadModelFile(path, options.max_bytes));
  return Import(std::move(proto), onnx_internal::FolderOf(path), options);
}

absl::StatusOr<Imported> ImportOnnxBytes(absl::string_view bytes,
                                         const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(onnx::ModelProto proto,
                            onnx_internal::ParseModel(bytes));
  return Import(std::move(proto), "", options);
}

}  // namespace loadline::models
