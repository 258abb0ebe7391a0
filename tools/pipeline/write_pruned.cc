// Tested by tests/end_to_end/recipe_test.cc.
#include "tools/pipeline/write_pruned.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "models/onnx/export.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {

absl::StatusOr<FileBytes> WritePruned(const ModelFlags& flags,
                                      const std::string& path,
                                      PhasedResult* result) {
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
  LOADLINE_RETURN_IF_ERROR(
      models::ExportTrained(flags.model, std::move(trained), path));
  std::error_code error;
  FileBytes files;
  files.before =
      static_cast<int64_t>(std::filesystem::file_size(flags.model, error));
  files.after = static_cast<int64_t>(std::filesystem::file_size(path, error));
  return files;
}

}  // namespace loadline::tools
