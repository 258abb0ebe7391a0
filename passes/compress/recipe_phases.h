// The phases of a run under a recipe: stretches of steps with constant shapes.
#ifndef LOADLINE_PASSES_COMPRESS_RECIPE_PHASES_H_
#define LOADLINE_PASSES_COMPRESS_RECIPE_PHASES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/compress/recipe.h"

namespace loadline::passes {

struct RecipePhase {
  int64_t first_step = 0;  // steps done when it starts
  int64_t end_step = 0;    // and when it ends; kOpenEnd: not known
  // Prune entries, rising: those that have masks in this phase, and those whose
  // channels are removed at its end.
  std::vector<size_t> masked;
  std::vector<size_t> removed;
};
inline constexpr int64_t kOpenEnd = INT64_MAX;

// In order; the last one removes nothing. A phase ends where the window of a
// structured entry ends. One of no steps, before the first step of the run, is
// a phase as well. `steps`: of the whole run, after every end_step; kOpenEnd if
// it is not known.
std::vector<RecipePhase> PhasesOf(const Recipe& recipe, int64_t steps);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_RECIPE_PHASES_H_
