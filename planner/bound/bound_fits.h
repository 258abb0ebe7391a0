// Bytes between two cuts: a rerun must fit next to what stays on the device
// through its epoch.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_FITS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_FITS_H_

#include "planner/bound/bound_chains.h"
#include "planner/bound/bound_context.h"
#include "planner/bound/bound_values.h"

namespace loadline::planner {

// For each epoch i but the last, and each node n that may run again in it:
//   RunBytes(n) * rerun + sum over other values of Staying(v, i) <= budget
// RunBytes: inputs, outputs that cannot be in place, and workspace. Staying is
// bytes(v) * (keep(i+1) - Arrivals(v, i) - recode(v, i)), at most the bytes of
// a value that stays on the device all through the epoch: what is there at the
// next cut, was made before this one and did not arrive in between has stayed.
// Values that may be copied are left out: they may have gone to the host and
// come back within the epoch, which has no column.
//
// Without these rows a second cut adds little to the first: all reruns could
// take place where memory is full.
void AddRerunFitRows(const BoundContext& context, const ValueColumns& values,
                     const ChainColumns& chains);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_FITS_H_
