// Three steps: read the file, normalize it with the onnx library (prepare.h),
// build the Graph (importer.h). Tested in tests/models/onnx_import_test.cc.
#include "models/onnx/import.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/prepare.h"
#include "models/onnx/producers.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// The newer one describes every node in metadata.
bool IsOfOlderTorchExporter(const onnx::ModelProto& proto) {
  return proto.producer_name() == onnx_internal::kPyTorch &&
         std::none_of(
             proto.graph().node().begin(), proto.graph().node().end(),
             [](const auto& node) { return node.metadata_props_size() > 0; });
}

absl::StatusOr<Imported> ImportPrepared(onnx::ModelProto proto,
                                        const std::string& folder,
                                        const ImportOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(
      onnx_internal::PreparedModel model,
      onnx_internal::PrepareModel(std::move(proto), folder, options));
  return onnx_internal::Importer(model, options).Run();
}

absl::StatusOr<Imported> Import(onnx::ModelProto proto,
                                const std::string& folder,
                                const ImportOptions& options) {
  const bool of_older = IsOfOlderTorchExporter(proto);
  absl::StatusOr<Imported> imported =
      ImportPrepared(std::move(proto), folder, options);
  // That exporter makes a 2 of the -1 of a shape in some models, or a complex
  // number of a bool, and the newer one does not.
  if (of_older && absl::IsInvalidArgument(imported.status()) &&
      absl::StrContains(imported.status().message(), "node ")) {
    return absl::InvalidArgumentError(absl::StrCat(
        imported.status().message(),
        "; PyTorch's older exporter (dynamo=False), which made this file, "
        "writes wrong shapes or types for some models: try torch.onnx.export "
        "with dynamo=True"));
  }
  return imported;
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
