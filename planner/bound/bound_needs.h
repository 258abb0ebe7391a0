// Rows that tie the epochs together and that make readers find their inputs.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_NEEDS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_NEEDS_H_

#include "planner/bound/bound_context.h"
#include "planner/bound/bound_tracking.h"
#include "planner/bound/bound_values.h"

namespace loadline::planner {

// Carries, for a value tracked in epochs i and i + 1:
//   keep(i+1)       <= Available(i)
//   encoded(i+1)[c] <= encoded(i)[c] + Available(i), unless it may be copied
//   host(i)         <= host(i+1)
// What is on the device when epoch i + 1 begins was there when epoch i began or
// came in between; an encoded value was there or was encoded from a plain one;
// a value that has been copied out stays so.
void AddCarryRows(const BoundContext& context, const ValueColumns& values);

// Needs. A node whose first run lies in epochs [from, until) reads v:
//   Available(v, from) + Arrivals(v, from + 1) + ... + Arrivals(v, until-1) >=
//   1
// The same for outputs at the end of the step, and for what cut i reads in the
// epoch before it. Holds because v is on the device at that run: going back
// from it, the value arrived in some epoch or was there at the begin of `from`.
//
// With free nodes, for a value that was made before the cut and a reader that
// has not run by then: Available(v, 1) >= ran[maker] - ran[reader].
void AddNeedRows(const BoundContext& context, const TrackedValues& tracked,
                 const ValueColumns& values);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_NEEDS_H_
