// Bytes at the cuts: what is on the device when a cut first starts fits the
// budget.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_BUDGET_H_
#define LOADLINE_PLANNER_BOUND_BOUND_BUDGET_H_

#include "planner/bound/bound_chains.h"
#include "planner/bound/bound_context.h"
#include "planner/bound/bound_values.h"

namespace loadline::planner {

// One row for each cut:
//   workspace + inputs + outputs + tracked values kept or encoded
//     + persistent values on the device - inputs taken over <= budget
// Whatever is not tracked counts nothing; a persistent value counts the bytes
// of one version; variants and codecs count their least bytes.
//
// In place: an output may take over the bytes of an input that dies there.
// Column taken[input, output] is 1 if it does; each output takes at most one
// input, each input is taken at most once, and a tracked input is taken or kept
// past the cut: taken + keep = 1.
void AddBudgetRows(const BoundContext& context, const ValueColumns& values,
                   const ChainColumns& chains);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_BUDGET_H_
