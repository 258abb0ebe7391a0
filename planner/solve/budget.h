// A budget as a caller states it, and what it means in bytes of one problem.
#ifndef LOADLINE_PLANNER_SOLVE_BUDGET_H_
#define LOADLINE_PLANNER_SOLVE_BUDGET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/solve/solve.h"

namespace loadline::planner {

// One in share_ppb.
inline constexpr int64_t kWholePpb = 1'000'000'000;

struct Budget {
  enum class Kind {
    kBytes,
    kShare,     // of the peak when everything is kept; a whole one fits
    kSmallest,  // the smallest that can be met
  };
  Kind kind = Kind::kBytes;
  int64_t bytes = 0;      // kBytes
  int64_t share_ppb = 0;  // kShare: parts of kWholePpb
  // kBytes: the bytes are a whole GPU's, so Machine::reserved_bytes, which its
  // context and libraries take, come off before planning.
  bool counts_reserved = false;

  static Budget Bytes(int64_t bytes) { return {Kind::kBytes, bytes}; }
  static Budget Share(int64_t ppb) { return {Kind::kShare, 0, ppb}; }
  static Budget Smallest() { return {Kind::kSmallest}; }
};

// The bytes that the budget leaves to a plan. A share is one of
// predicted.peak_bytes of KeepEverything, rounded up to a whole byte, without
// floating point. From 100 % on, a plan that keeps everything fits: if no order
// of the nodes can be laid out in that peak, because of gaps and alignment, the
// budget is at least what the layout of `keep_everything` takes. Errors:
//   InvalidArgument    a budget that takes a search (kSmallest), or negative
//   ResourceExhausted  nothing is left beside what is reserved
absl::StatusOr<int64_t> BytesOf(const Budget& budget, const Problem& problem,
                                const Plan& keep_everything);

// Solve or SolveSmallest, as the budget says (options.budget_bytes ignored).
// Errors: theirs and those of BytesOf.
absl::StatusOr<Plan> SolveWithin(const Problem& problem, const Budget& budget,
                                 const SolveOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_BUDGET_H_
