// Time where values may be copied: the compute lane in every epoch, and both
// copy lanes over the spans in which copies surely lie.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_LANES_H_
#define LOADLINE_PLANNER_BOUND_BOUND_LANES_H_

#include <cstdint>
#include <vector>

#include "planner/bound/bound_chains.h"
#include "planner/bound/bound_context.h"
#include "planner/bound/bound_rows.h"
#include "planner/bound/bound_values.h"

namespace loadline::planner {

// Columns for the moments of a plan, in units: when each cut first starts, and
// by how much the last lane ends later than compute alone (in the objective).
class LaneTimes {
 public:
  // Adds the columns. `horizon_ns`: no moment is later.
  LaneTimes(int epochs, double compute_ns, double horizon_ns, BoundRows& rows);

  // From the begin of epoch `from` to that of epoch `until` (epochs + 1: the
  // end of the step): adds its columns to `terms`, returns its constant part.
  double AddSpan(int from, int until, Terms& terms) const;
  int extra() const { return extra_; }

 private:
  const double compute_;  // in units
  int extra_ = -1;
  std::vector<int> starts_;  // by cut from 1
};

// A lane runs one step at a time, so what surely lies in a span takes no longer
// than the span:
//   compute: first runs, reruns, decodes of an epoch; all encodes over the step
//   to host: what has been copied out when cut i starts, before cut i; the last
//       version of what lives on the host, after its last update
//   to device: what comes in epoch i or later, after cut i; what lives on the
//       host and is read before cut i, before it
//   both: while both lanes move bytes they do at most 2 * bidirectional (at
//       least 1) of the work of one lane alone; latencies move no bytes
// A copy counts the bytes of the value's least representation.
// Besides, the objective has SearchModel::copy_overhead_ns for every copy that
// some column says is made.
void AddLaneRows(const BoundContext& context, const LaneTimes& times,
                 const ValueColumns& values, const ChainColumns& chains);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_LANES_H_
