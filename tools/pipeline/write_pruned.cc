// Tested by tests/end_to_end/recipe_test.cc.
#include "tools/pipeline/write_pruned.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "models/onnx/export.h"
#include "models/onnx/export_pruned.h"
#include "models/onnx/export_quantized.h"
#include "models/onnx/import.h"
#include "passes/compress/quantized_model.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/saturation_hint.h"
#include "tools/pipeline/start_quantizers.h"

namespace loadline::tools {
namespace {

// A model's file and its external data. 0 if the system does not say.
int64_t SizeOf(const std::string& path) {
  std::vector<std::string> files = {path};
  if (const auto external = models::ExternalDataFiles(path); external.ok()) {
    files.insert(files.end(), external->begin(), external->end());
  }
  int64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

// Grids and codebooks as training left them.
absl::StatusOr<models::QuantizedModel> Quantized(const PhasedResult& result) {
  return passes::MakeQuantizedModel(
      result.quantizers, ReaderOf(result.state, result.quantized_graph),
      result.file_names);
}

}  // namespace

absl::StatusOr<FileBytes> WritePruned(const ModelFlags& flags,
                                      const std::string& path,
                                      PhasedResult* result) {
  FileBytes files = {.before = SizeOf(flags.model)};
  models::QuantizedModel quantized;
  if (!result->quantizers.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(quantized, Quantized(*result));
    const std::string hint =
        SaturationHint(result->quantized_graph, result->quantizers);
    if (!hint.empty()) spdlog::info("{}", hint);
  }
  std::map<std::string, models::Tensor> trained;
  for (const std::string& name : result->step.model_tensors) {
    const auto found = result->state.find(name);
    const std::optional<models::ValueId> id = result->model.Find(name);
    if (found == result->state.end() || !id.has_value()) continue;
    trained.emplace(
        name, models::Tensor{result->model.value(*id).type,
                             std::make_shared<const std::vector<std::byte>>(
                                 std::move(found->second))});
  }
  result->state.clear();
  const bool shrunk =
      std::any_of(result->removed.begin(), result->removed.end(),
                  [](const auto& removed) { return !removed.empty(); });
  const bool integers = !result->quantizers.empty();
  if (!shrunk && integers) {
    quantized.trained = std::move(trained);
    LOADLINE_RETURN_IF_ERROR(
        models::ExportQuantized(flags.model, std::move(quantized), path));
  } else if (!shrunk) {
    LOADLINE_RETURN_IF_ERROR(
        models::ExportTrained(flags.model, std::move(trained), path));
  } else {
    LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                              ImportOptionsFor(flags, /*training=*/true));
    // The pruned model in float, on its way to integers.
    const std::string pruned = integers ? path + ".pruned" : path;
    LOADLINE_RETURN_IF_ERROR(models::ExportPruned(
        flags.model, options, result->model, std::move(trained), pruned));
    if (integers) {
      const absl::Status written =
          models::ExportQuantized(pruned, std::move(quantized), path);
      std::error_code ignored;
      std::filesystem::remove(pruned, ignored);
      LOADLINE_RETURN_IF_ERROR(written);
    }
  }
  files.after = SizeOf(path);
  return files;
}

}  // namespace loadline::tools
