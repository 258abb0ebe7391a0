// Many plans of one training step: step time by budget, and the largest batch,
// or other dimension of the model, that fits a budget.
#ifndef LOADLINE_TOOLS_PIPELINE_SWEEP_H_
#define LOADLINE_TOOLS_PIPELINE_SWEEP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/problem/plan.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// Plans for `count` budgets (at least 2), evenly spaced from the smallest
// feasible one to that of keeping everything, in rising order. No plan is
// slower than an earlier one, by planner::TakeFaster. Ignores
// `flags.plan.budget`.
absl::StatusOr<std::vector<planner::Plan>> SweepBudgets(
    const PlannedStep& step, const StepFlags& flags, int count,
    const std::atomic<bool>* cancel);

// Evenly spaced, including both ends; fewer if the range is too small.
std::vector<int64_t> BudgetsBetween(int64_t lowest, int64_t highest, int count);

// A dimension that a sweep varies: "batch", or the name of an open axis.
struct Axis {
  std::string name;
  std::vector<int64_t> sizes;
};
inline constexpr char kBatchAxis[] = "batch";
// Parts of the batch instead of a dimension: --micro-batches.
inline constexpr char kMicroBatchesAxis[] = "micro-batches";

// "sequence=64,128"; InvalidArgument names the flag.
absl::StatusOr<Axis> ParseAxis(const std::string& flag,
                               const std::string& text);

// A copy of the flags with this size of the axis.
StepFlags WithSize(const StepFlags& flags, const std::string& axis,
                   int64_t size);

struct Largest {
  int64_t size = 0;          // the largest that fits; 0: not even 1
  int64_t smallest_not = 0;  // tried and does not fit: see FindLargest
};

// Doubles from `first` and then bisects, exactly below 512 and to one part in
// 256 above, where the last units would take the most time and matter least.
// Calls `fits` at most once per size, and assumes that smaller sizes fit if a
// size does. Tries nothing beyond `limit`; smallest_not is then 0. Errors:
// those of `fits`.
absl::StatusOr<Largest> FindLargest(
    int64_t first, int64_t limit,
    const std::function<absl::StatusOr<bool>(int64_t size)>& fits);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_SWEEP_H_
