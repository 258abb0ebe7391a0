// Many plans of one training step: what a byte buys, and how large a batch, or
// another dimension of the model, may be.
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

// `count` budgets (at least 2), evenly from the smallest that was met to what
// keeping everything takes, as plans by rising budget. No plan is slower than
// one before it, by TakeFaster. `flags.plan.budget` is not read.
absl::StatusOr<std::vector<planner::Plan>> SweepBudgets(
    const PlannedStep& step, const StepFlags& flags, int count,
    const std::atomic<bool>* cancel);

// What fits fewer bytes fits more: where `smaller` is the faster, what its
// copies cost computing counted (Machine::switch_ns), `plan` gets its steps,
// and keeps its own budget and what is proven there. Whether it did.
bool TakeFaster(const planner::Problem& problem, const planner::Plan& smaller,
                planner::Plan* plan);

// Evenly spread, both ends included; fewer where the range is too small.
std::vector<int64_t> BudgetsBetween(int64_t lowest, int64_t highest, int count);

// A dimension that a sweep varies: "batch", or the name of an open axis.
struct Axis {
  std::string name;
  std::vector<int64_t> sizes;
};
inline constexpr char kBatchAxis[] = "batch";

// "sequence=64,128"; InvalidArgument names the flag.
absl::StatusOr<Axis> ParseAxis(const std::string& flag,
                               const std::string& text);

// The flags with that size of the axis.
StepFlags WithSize(const StepFlags& flags, const std::string& axis,
                   int64_t size);

struct Largest {
  int64_t size = 0;          // the largest that was met; 0: not even 1
  int64_t smallest_not = 0;  // was tried and not met: see FindLargest
};

// Doubles from `first` and then bisects, to the unit below 512 and to one part
// in 256 beyond, where the last units would take the most time to decide and
// make no difference. `fits` is asked for each size once; it
// is assumed to hold below any size it holds for. Beyond `limit` nothing is
// asked: then smallest_not is 0. Errors: those of `fits`.
absl::StatusOr<Largest> FindLargest(
    int64_t first, int64_t limit,
    const std::function<absl::StatusOr<bool>(int64_t size)>& fits);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_SWEEP_H_
