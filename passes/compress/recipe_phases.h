// The phases of a run under a recipe: stretches of steps with constant shapes.
#ifndef LOADLINE_PASSES_COMPRESS_RECIPE_PHASES_H_
#define LOADLINE_PASSES_COMPRESS_RECIPE_PHASES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/compress/add_fake_quantize.h"
#include "passes/compress/recipe.h"

namespace loadline::passes {

// A quantize entry at work in a phase.
struct QuantizedEntry {
  size_t entry = 0;
  QuantizeStage stage = QuantizeStage::kTrain;
  bool starts = false;  // with this phase
};

struct RecipePhase {
  int64_t first_step = 0;  // steps done when it starts
  int64_t end_step = 0;    // and when it ends; kOpenEnd: not known
  // Prune entries, rising: those that have masks in this phase, and those whose
  // channels are removed at its end.
  std::vector<size_t> masked;
  std::vector<size_t> removed;
  std::vector<QuantizedEntry> quantized;  // rising
  bool freeze_bn = false;  // normalizations use their running statistics
};
inline constexpr int64_t kOpenEnd = INT64_MAX;

// In order; the last one removes nothing. A phase ends where the window of a
// structured entry ends, and where a quantize entry starts or freezes
// something. One of no steps, before the first step of the run, is a phase as
// well. `steps`: of the whole run, after every end_step; kOpenEnd if it is not
// known.
std::vector<RecipePhase> PhasesOf(const Recipe& recipe, int64_t steps);

// What the run exports after its last step: every quantize entry, frozen. It
// trains nothing; entries that start at the end of the run start with it.
RecipePhase ExportPhase(const Recipe& recipe, int64_t steps);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_RECIPE_PHASES_H_
