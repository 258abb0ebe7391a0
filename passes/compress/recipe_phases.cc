// Tested by tests/passes/compress/recipe_phases_test.cc.
#include "passes/compress/recipe_phases.h"

#include <optional>
#include <set>

namespace loadline::passes {
namespace {

bool IsDue(const std::optional<int64_t>& step, int64_t done) {
  return step.has_value() && *step <= done;
}

// The quantize entries that work in the phase.
void AddQuantized(const Recipe& recipe, RecipePhase* phase) {
  for (size_t e = 0; e < recipe.entries.size(); ++e) {
    const QuantizeSpec* spec = recipe.entries[e].quantize();
    if (spec == nullptr || spec->start_step > phase->first_step) continue;
    const bool frozen = IsDue(spec->freeze_observer_step, phase->first_step);
    phase->quantized.push_back(
        {.entry = e,
         .stage = frozen ? QuantizeStage::kFrozen : QuantizeStage::kTrain,
         .starts = spec->start_step == phase->first_step});
    phase->freeze_bn =
        phase->freeze_bn || IsDue(spec->freeze_bn_step, phase->first_step);
  }
}

}  // namespace

std::vector<RecipePhase> PhasesOf(const Recipe& recipe, int64_t steps) {
  std::set<int64_t> ends;
  for (const RecipeEntry& entry : recipe.entries) {
    const PruneSpec* spec = entry.prune();
    if (spec != nullptr && IsStructured(spec->granularity)) {
      ends.insert(spec->end_step);
    }
    if (const QuantizeSpec* quantize = entry.quantize()) {
      for (const std::optional<int64_t>& step :
           {std::optional<int64_t>(quantize->start_step),
            quantize->freeze_observer_step, quantize->freeze_bn_step}) {
        if (step.has_value() && *step > 0 && *step < steps) ends.insert(*step);
      }
    }
  }
  std::vector<RecipePhase> phases;
  int64_t first = 0;
  for (int64_t end : ends) {
    phases.push_back({.first_step = first, .end_step = end});
    first = end;
  }
  phases.push_back({.first_step = first, .end_step = steps});
  for (RecipePhase& phase : phases) {
    const bool last = &phase == &phases.back();
    for (size_t e = 0; e < recipe.entries.size(); ++e) {
      const PruneSpec* spec = recipe.entries[e].prune();
      if (spec == nullptr || spec->start_step > phase.end_step) continue;
      const bool structured = IsStructured(spec->granularity);
      const bool ends_here =
          structured && !last && spec->end_step == phase.end_step;
      if (ends_here) phase.removed.push_back(e);
      if (!structured || spec->end_step > phase.first_step || ends_here) {
        phase.masked.push_back(e);
      }
    }
    AddQuantized(recipe, &phase);
  }
  return phases;
}

RecipePhase ExportPhase(const Recipe& recipe, int64_t steps) {
  RecipePhase phase = {.first_step = steps, .end_step = steps};
  for (size_t e = 0; e < recipe.entries.size(); ++e) {
    const QuantizeSpec* spec = recipe.entries[e].quantize();
    if (spec == nullptr) continue;
    phase.quantized.push_back({.entry = e,
                               .stage = QuantizeStage::kFrozen,
                               .starts = spec->start_step >= steps});
  }
  phase.freeze_bn = !phase.quantized.empty();
  return phase;
}

}  // namespace loadline::passes
