// The export itself, without trained contents and without a file. Tested by
// tests/tools/pipeline/check_export_test.cc.
#include "tools/pipeline/check_export.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "models/onnx/export_pruned.h"
#include "models/onnx/export_quantized.h"
#include "passes/compress/phase_model.h"
#include "passes/compress/quantized_model.h"
#include "passes/compress/recipe_phases.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/import_model.h"

namespace loadline::tools {
namespace {

// Stands in for what training will leave: any range, and zeros elsewhere.
passes::ValueReader Placeholders(const models::Graph& graph) {
  return [&graph](absl::string_view name) -> std::optional<models::Tensor> {
    const std::optional<models::ValueId> id = graph.Find(name);
    if (!id.has_value()) return std::nullopt;
    const bool low = absl::EndsWith(name, ".low");
    if (low || absl::EndsWith(name, ".high")) {
      return models::ScalarTensor(low ? -1.0f : 1.0f);
    }
    return models::ZeroTensor(graph.value(*id).type);
  };
}

}  // namespace

absl::Status CheckExport(
    const ModelFlags& flags, const models::Graph& model,
    const models::Graph& last, const passes::Recipe& recipe,
    const std::map<std::string, std::vector<std::string>>& file_names) {
  const bool shrinks =
      std::any_of(recipe.entries.begin(), recipe.entries.end(),
                  [](const passes::RecipeEntry& entry) {
                    return entry.prune() != nullptr &&
                           passes::IsStructured(entry.prune()->granularity);
                  });
  if (shrinks) {
    LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                              ImportOptionsFor(flags, /*training=*/true));
    LOADLINE_RETURN_IF_ERROR(
        models::CheckPrunedExport(flags.model, options, last));
  }
  const passes::RecipePhase phase =
      passes::ExportPhase(recipe, passes::kOpenEnd);
  if (phase.quantized.empty()) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const passes::PhaseModel at_end,
                            passes::MakePhaseModel(model, recipe, phase));
  LOADLINE_ASSIGN_OR_RETURN(
      models::QuantizedModel quantized,
      passes::MakeQuantizedModel(at_end.quantizers,
                                 Placeholders(at_end.step_model), file_names));
  return models::CheckQuantizedExport(flags.model, std::move(quantized));
}

}  // namespace loadline::tools
