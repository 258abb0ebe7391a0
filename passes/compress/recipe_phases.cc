// Tested by tests/passes/compress/recipe_phases_test.cc.
#include "passes/compress/recipe_phases.h"

#include <set>

namespace loadline::passes {

std::vector<RecipePhase> PhasesOf(const Recipe& recipe, int64_t steps) {
  std::set<int64_t> ends;
  for (const RecipeEntry& entry : recipe.entries) {
    const PruneSpec* spec = entry.prune();
    if (spec != nullptr && IsStructured(spec->granularity)) {
      ends.insert(spec->end_step);
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
  }
  return phases;
}

}  // namespace loadline::passes
