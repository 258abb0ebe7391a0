// The Pareto front is monotone by construction, since a plan for a smaller
// budget also fits a larger one. Tested by tests/tools/pipeline/sweep_test.cc
// and tests/end_to_end/sweep_test.cc.
#include "tools/pipeline/sweep.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"
#include "planner/solve/take_faster.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/structures.h"

namespace loadline::tools {
namespace {

constexpr int64_t kParts = 256;  // sizes are bisected to one part in this many

}  // namespace

std::vector<int64_t> BudgetsBetween(int64_t lowest, int64_t highest,
                                    int count) {
  std::vector<int64_t> budgets;
  const double span = static_cast<double>(highest - lowest);
  for (int i = 0; i < count; ++i) {
    const int64_t budget =
        i + 1 == count ? highest
                       : lowest + static_cast<int64_t>(span * i / (count - 1));
    if (budgets.empty() || budget > budgets.back()) budgets.push_back(budget);
  }
  return budgets;
}

absl::StatusOr<std::vector<planner::Plan>> SweepBudgets(
    const PlannedStep& step, const StepFlags& flags, int count,
    const std::atomic<bool>* cancel) {
  LOADLINE_ASSIGN_OR_RETURN(PlanRequest request,
                            ReadPlanRequest(flags.plan, flags.purpose));
  request.budget = planner::Budget::Smallest();
  LOADLINE_ASSIGN_OR_RETURN(
      planner::Plan smallest,
      SolveFor(step.problem, request, step.keep_everything, cancel));
  smallest.budget_bytes = smallest.arena_bytes;
  const std::vector<int64_t> budgets = BudgetsBetween(
      smallest.arena_bytes,
      std::max(smallest.arena_bytes, step.keep_everything.budget_bytes), count);
  std::vector<planner::Plan> plans = {std::move(smallest)};
  for (size_t i = 1; i < budgets.size(); ++i) {
    request.budget = planner::Budget::Bytes(budgets[i]);
    LOADLINE_ASSIGN_OR_RETURN(
        planner::Plan plan,
        SolveFor(step.problem, request, step.keep_everything, cancel));
    plan.budget_bytes = budgets[i];
    planner::TakeFaster(plans.back(), &plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

absl::StatusOr<Axis> ParseAxis(const std::string& flag,
                               const std::string& text) {
  const std::pair<std::string, std::string> pair =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  Axis axis;
  axis.name = pair.first;
  for (absl::string_view part : absl::StrSplit(pair.second, ',')) {
    int64_t size = 0;
    if (pair.first.empty() || !absl::SimpleAtoi(part, &size) || size <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " '", text,
                       "': expected NAME=SIZE,SIZE,... with sizes above zero"));
    }
    axis.sizes.push_back(size);
  }
  return axis;
}

StepFlags WithSize(const StepFlags& flags, const std::string& axis,
                   int64_t size) {
  StepFlags changed = flags;
  if (axis == kBatchAxis) {
    changed.model.batch = size;
  } else if (axis == kMicroBatchesAxis) {
    changed = WithMicroBatches(flags, size);
  } else {
    changed.model.dims.push_back(absl::StrCat(axis, "=", size));
  }
  return changed;
}

absl::StatusOr<Largest> FindLargest(
    int64_t first, int64_t limit,
    const std::function<absl::StatusOr<bool>(int64_t size)>& fits) {
  Largest result;
  int64_t size = std::clamp<int64_t>(first, 1, limit);
  const auto next = [&result] {
    return result.size + std::max<int64_t>(1, result.size / kParts);
  };
  while (result.smallest_not == 0 || next() < result.smallest_not) {
    LOADLINE_ASSIGN_OR_RETURN(const bool met, fits(size));
    (met ? result.size : result.smallest_not) = size;
    if (result.size == limit) break;
    size = result.smallest_not == 0
               ? std::min(limit, 2 * result.size)
               : result.size + (result.smallest_not - result.size) / 2;
  }
  return result;
}

}  // namespace loadline::tools
