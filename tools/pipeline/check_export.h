// Whether what a run with a recipe leaves can be written as ONNX.
#ifndef LOADLINE_TOOLS_PIPELINE_CHECK_EXPORT_H_
#define LOADLINE_TOOLS_PIPELINE_CHECK_EXPORT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/graph.h"
#include "passes/compress/recipe.h"
#include "tools/cli/flags.h"

namespace loadline::tools {

// For a check before the first step. `model`: as imported from the flags' file;
// `last`: without the channels that the recipe removes. `file_names`: that of
// passes::FileNames. Errors: those of models::ExportPruned and ExportQuantized.
absl::Status CheckExport(
    const ModelFlags& flags, const models::Graph& model,
    const models::Graph& last, const passes::Recipe& recipe,
    const std::map<std::string, std::vector<std::string>>& file_names);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_CHECK_EXPORT_H_
