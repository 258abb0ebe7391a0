// How far an entry of a recipe has pruned at each step.
#ifndef LOADLINE_PASSES_COMPRESS_SPARSITY_SCHEDULE_H_
#define LOADLINE_PASSES_COMPRESS_SPARSITY_SCHEDULE_H_

#include <cstdint>

#include "passes/compress/recipe.h"

namespace loadline::passes {

// The share of the original width that is masked when `step` steps are done.
// `target`: the share at the end, which is spec.target.share for a target in
// sparsity. Before the start it is 0, from the end on exactly `target`. Between
// them it only changes at the start and each `update_frequency` steps after it.
// With t the share of the window that is over and s0 the initial sparsity:
//   linear  s0 + (target - s0) t
//   cubic   target + (s0 - target) (1 - t)³, after Zhu and Gupta, "To prune, or
//           not to prune" (2017)
//   one shot  target, from the start on
double SparsityAt(const PruneSpec& spec, double target, int64_t step);

// Whether the masks are to be computed anew when `step` steps are done.
bool IsMaskUpdate(const PruneSpec& spec, int64_t step);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_SPARSITY_SCHEDULE_H_
