// The parts of a bound's program, for tests of one family of rows at a time.
//
// Example: rows of a problem with a cut at node 2, and what it costs at least
// if value 1 is not on the device there.
//   ProgramParts parts(model, {.cuts = {2}, .budget_bytes = 100});
//   AddNeedRows(parts.context, parts.tracked, parts.values);
//   parts.LeastCost({{parts.values.Find(1, 1)->keep, 0}});
#ifndef LOADLINE_TESTS_PLANNER_BOUND_PROGRAM_PARTS_H_
#define LOADLINE_TESTS_PLANNER_BOUND_PROGRAM_PARTS_H_

#include <optional>
#include <utility>
#include <vector>

#include "planner/bound/bound_chains.h"
#include "planner/bound/bound_context.h"
#include "planner/bound/bound_lanes.h"
#include "planner/bound/bound_program.h"
#include "planner/bound/bound_tracking.h"
#include "planner/bound/bound_values.h"

namespace loadline::planner {

// Everything that other rows need, in the order of MakeBoundProgram. A cost of
// 1 is 1 ns.
struct ProgramParts {
  ProgramParts(const SearchModel& model, const BoundQuery& query);
  ProgramParts(const ProgramParts&) = delete;

  // The least cost with these columns fixed to these values; empty: no point
  // obeys all rows.
  std::optional<double> LeastCost(
      const std::vector<std::pair<int, double>>& fixed = {});

  const LeastCosts least;
  const Precedence precedence;
  const CutEpochs epochs;
  BoundRows rows;
  const FreeNodes free;
  const BoundContext context;
  const TrackedValues tracked;
  std::optional<LaneTimes> times;  // where something may be copied
  const ValueColumns values;
  const ChainColumns chains;
};

// A valid problem without addresses or machine:
//   A: in -> a (5 ns)   B: a -> b (7 ns)   C: b -> c (11 ns)
//   D: a, c -> d (13 ns), d is the output
// Values 0 in (0 bytes), 1 a, 2 b, 3 c, 4 d (10 bytes each); nodes 0 to 3.
Problem LineProblem();

// The same and a machine: 1 byte per ns out, 2 back, 4 ns of latency. Only `a`
// may be copied.
Problem LineProblemWithCopies();

// A weight w (value 0, 10 bytes, persistent), x (value 1, 0 bytes):
//   F: x, w -> y (2, 10 bytes, 5 ns)   G: y -> g (3, 10 bytes, 7 ns)
//   U: g, w -> w' (4), in place, runs once, 11 ns
// Output y, the machine of LineProblemWithCopies, only w and w' may be copied.
Problem WeightProblem();

}  // namespace loadline::planner

#endif  // LOADLINE_TESTS_PLANNER_BOUND_PROGRAM_PARTS_H_
