// Integers only: the same share is the same bytes for every caller. Tested in
// budget_test.cc.
#include "planner/solve/budget.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/base/units.h"

namespace loadline::planner {

absl::StatusOr<int64_t> BytesOf(const Budget& budget, const Problem& problem,
                                int64_t peak_bytes) {
  if (budget.bytes < 0 || budget.share_ppb < 0) {
    return absl::InvalidArgumentError("the budget may not be negative");
  }
  if (budget.kind == Budget::Kind::kSmallest) {
    return absl::InvalidArgumentError(
        "the smallest budget is known only after a search");
  }
  if (budget.kind == Budget::Kind::kShare) {
    const __int128 parts = static_cast<__int128>(budget.share_ppb) * peak_bytes;
    const __int128 bytes = (parts + kWholePpb - 1) / kWholePpb;
    if (bytes > INT64_MAX) {
      return absl::InvalidArgumentError("the budget is too large");
    }
    return static_cast<int64_t>(bytes);
  }
  const int64_t reserved_bytes =
      budget.counts_reserved && problem.machine.has_value()
          ? problem.machine->reserved_bytes
          : 0;
  if (reserved_bytes == 0 || budget.bytes > reserved_bytes) {
    return budget.bytes - reserved_bytes;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "no plan within ", FormatBytes(budget.bytes), ": on this device ",
      FormatBytes(reserved_bytes),
      " are taken before any plan, by CUDA's context and libraries"));
}

absl::StatusOr<Plan> SolveWithin(const Problem& problem, const Budget& budget,
                                 const SolveOptions& options) {
  if (budget.kind == Budget::Kind::kSmallest) {
    return SolveSmallest(problem, options);
  }
  int64_t peak_bytes = 0;
  if (budget.kind == Budget::Kind::kShare) {
    LOADLINE_ASSIGN_OR_RETURN(const Plan keep, KeepEverything(problem));
    peak_bytes = keep.predicted.peak_bytes;
  } else {
    LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  }
  SolveOptions within = options;
  LOADLINE_ASSIGN_OR_RETURN(within.budget_bytes,
                            BytesOf(budget, problem, peak_bytes));
  return Solve(problem, within);
}

}  // namespace loadline::planner
