// Solve(problem, budget) -> plan: what is kept, recomputed and copied out, in
// which order, at which address.
#ifndef LOADLINE_PLANNER_SOLVE_SOLVE_H_
#define LOADLINE_PLANNER_SOLVE_SOLVE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "planner/problem/permissions.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/schedule/search_tuning.h"
#include "planner/solve/effort.h"

namespace loadline::planner {

struct Progress {
  double elapsed_s = 0;
  int64_t peak_bytes = 0;
  int64_t step_ns = 0;
  int64_t bound_step_ns = 0;
};

// The same problem and options give the same bytes of plan through C++, C, the
// command and Python; no caller adds decisions of its own.
struct SolveOptions {
  int64_t budget_bytes = 0;  // budget.h has shares and the smallest
  bool allow_recompute = true;
  // Copies are made only where they pay: each is priced with its time on the
  // lanes and Machine::copy_overhead_ns.
  bool allow_offload = true;
  // Codecs and variants of the problem; by default those that change no bit.
  Permissions permissions;
  // How much to search, and when to search again (effort.h).
  Effort effort = Effort::kNormal;
  bool allow_retries = true;  // false: only the effort's first search
  // Where the first search finds nothing within the budget, a plan is made from
  // the smallest one; it may copy nearly everything. False: the effort's
  // retries search harder instead, and an error's "smallest budget met" is that
  // of the search.
  bool allow_smallest_start = true;
  // Candidate edits that the first search may price, instead of the effort's.
  std::optional<int64_t> work_limit;
  // Simplex iterations for the proven bound on the step time, instead of the
  // effort's; 0: only what needs no linear programs. The plan's steps are the
  // same.
  std::optional<int64_t> bound_work_limit;
  // Opt-in: search at this budget alone until the clock says stop, and return
  // the best plan found. Neither deterministic nor monotone in the budget.
  std::optional<absl::Duration> time_limit;
  uint64_t seed = 0;
  // At most so many threads search at a time; 0: one per processor that the
  // process may run on. The plan is the same for any number, except with a time
  // limit. `progress` is called in the caller's thread.
  int threads = 0;
  // Constants and stage switches of the search, for tests and benchmarks.
  SearchTuning tuning;
  std::function<void(const Progress&)> progress;  // may be empty
  const std::atomic<bool>* cancel = nullptr;      // polled; may be null
};

// Why no plan was found, attached to Solve's ResourceExhausted status.
struct Infeasibility {
  int64_t budget_bytes = 0;
  // Smallest budget a verified plan was found for with the same options (in
  // the first search only, where the bound proves that none is within).
  int64_t smallest_met_bytes = 0;
  // No plan fits in fewer bytes, whatever the options permit.
  int64_t proven_bound_bytes = 0;
  NodeId tightest_node{-1};
  std::vector<ValueId> tightest_values;  // alive there, largest first
};

// A verified plan within the budget. Errors:
//   InvalidArgument    the problem or an option is malformed
//   ResourceExhausted  no plan found; InfeasibilityOf(status) has the facts
//   DeadlineExceeded   time limit or cancel before any plan was found, and no
//                      bound proves that there is none
//   Internal           a bug of the planner (check_bounds.h)
absl::StatusOr<Plan> Solve(const Problem& problem, const SolveOptions& options);
std::optional<Infeasibility> InfeasibilityOf(const absl::Status& status);

// The baseline: every node once in the given order, nothing copied, every
// value kept to its last use. Budgets given as a percentage are shares of
// `predicted.peak_bytes` (budget.h); `budget_bytes` is the arena that its
// layout needs.
absl::StatusOr<Plan> KeepEverything(const Problem& problem);

// The same steps under other prices: `priced` differs from the plan's problem
// in times and copy rates only. Prediction and bounds are those of `priced`; of
// the options only the work for the bound counts. The decisions' reasons are
// not updated. FailedPrecondition: the plan is not one of that problem.
absl::StatusOr<Plan> Reprice(const Problem& priced, Plan plan,
                             const SolveOptions& options);

// A proven lower bound on every plan's bytes, and where it is tightest. No
// search.
struct PeakFloor {
  int64_t bytes = 0;            // of live bytes, so of any arena too
  NodeId node{-1};              // -1: the start or the end of the step
  std::vector<ValueId> values;  // alive there, largest first
};

// Of the plans that the options permit (their budget and limits are ignored).
absl::StatusOr<PeakFloor> FindPeakFloor(const Problem& problem,
                                        const SolveOptions& options);

// "node conv1, which needs a (2.00 MiB), b (1.00 MiB), 3 more".
std::string DescribeTightest(const Problem& problem, const PeakFloor& floor);

// The smallest budget Solve meets with these options (budget_bytes ignored).
absl::StatusOr<Plan> SolveSmallest(const Problem& problem,
                                   const SolveOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_SOLVE_H_
