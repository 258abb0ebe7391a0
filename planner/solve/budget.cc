// Integers only: the same share is the same bytes for every caller. Tested in
// budget_test.cc.
#include "planner/solve/budget.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/base/units.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/search/search.h"

namespace loadline::planner {

namespace {

// Does some order of the nodes fit in so many bytes, with everything kept?
absl::StatusOr<bool> AnyOrderFits(const Problem& problem, int64_t bytes) {
  const SearchModel model =
      MakeSearchModel(problem, false, false, Permissions::None());
  for (const Schedule& order : SeedOrders(model)) {
    LOADLINE_ASSIGN_OR_RETURN(
        const LaidOutSchedule laid_out,
        LayOutTightest(model, order, static_cast<double>(model.compute_ns),
                       model.tuning.layout.pack_work));
    if (laid_out.arena_bytes <= bytes) return true;
  }
  return false;
}

absl::StatusOr<int64_t> BytesOfShare(int64_t share_ppb, const Problem& problem,
                                     const Plan& keep_everything) {
  const __int128 parts =
      static_cast<__int128>(share_ppb) * keep_everything.predicted.peak_bytes;
  const __int128 whole = (parts + kWholePpb - 1) / kWholePpb;
  if (whole > INT64_MAX) {
    return absl::InvalidArgumentError("the budget is too large");
  }
  const auto bytes = static_cast<int64_t>(whole);
  if (share_ppb < kWholePpb || bytes >= keep_everything.arena_bytes) {
    return bytes;
  }
  LOADLINE_ASSIGN_OR_RETURN(const bool fits, AnyOrderFits(problem, bytes));
  return fits ? bytes : keep_everything.arena_bytes;
}

}  // namespace

absl::StatusOr<int64_t> BytesOf(const Budget& budget, const Problem& problem,
                                const Plan& keep_everything) {
  if (budget.bytes < 0 || budget.share_ppb < 0) {
    return absl::InvalidArgumentError("the budget may not be negative");
  }
  if (budget.kind == Budget::Kind::kSmallest) {
    return absl::InvalidArgumentError(
        "the smallest budget is known only after a search");
  }
  if (budget.kind == Budget::Kind::kShare) {
    return BytesOfShare(budget.share_ppb, problem, keep_everything);
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
  Plan keep;
  if (budget.kind == Budget::Kind::kShare) {
    LOADLINE_ASSIGN_OR_RETURN(keep, KeepEverything(problem));
  } else {
    LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  }
  SolveOptions within = options;
  LOADLINE_ASSIGN_OR_RETURN(within.budget_bytes,
                            BytesOf(budget, problem, keep));
  return Solve(problem, within);
}

}  // namespace loadline::planner
