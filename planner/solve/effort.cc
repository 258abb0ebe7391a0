// The table of effort.h as code. Tested in effort_test.cc.
#include "planner/solve/effort.h"

#include <algorithm>

#include "planner/bound/bound.h"

namespace loadline::planner {
namespace {

constexpr int64_t kNormalWork = 25'000'000;
constexpr int64_t kModerateWork = 2'000'000;
constexpr int64_t kQuickWork = 300'000;
constexpr double kLongStallShare = 0.05;

// Small problems need less, and `--budget smallest` pays for every budget that
// has no plan. At 100,000 too few of the smallest problems in bound_test.cc
// have the fastest plan: 1,056 of 1,059, where the test asks for 998 in 1,000.
constexpr int64_t kMostWorkPerNode = 300'000;
// A search of so much work or more has the whole of the bound's work.
constexpr int64_t kWholeBoundWork = 10'000'000;

int64_t WorkOf(Effort effort) {
  if (effort == Effort::kQuick) return kQuickWork;
  if (effort == Effort::kModerate) return kModerateWork;
  return kNormalWork;
}

}  // namespace

EffortPolicy PolicyOf(Effort effort, int64_t node_count,
                      std::optional<int64_t> work_limit,
                      std::optional<int64_t> bound_work_limit) {
  EffortPolicy policy;
  const int64_t work = work_limit.value_or(WorkOf(effort));
  policy.work_limit =
      work_limit ? work : std::min(work, kMostWorkPerNode * node_count);
  const double share =
      static_cast<double>(work) / static_cast<double>(kWholeBoundWork);
  policy.bound_work_limit = bound_work_limit.value_or(
      static_cast<int64_t>(static_cast<double>(StepBoundOptions().work_limit) *
                           std::clamp(share, 0.0, 1.0)));
  if (effort == Effort::kNormal) policy.retries = 1;
  if (effort == Effort::kThorough || effort == Effort::kModerate) {
    policy.retries = 2;
    policy.long_stall_share = kLongStallShare;
  }
  if (effort == Effort::kModerate) {
    policy.retry_factor = 4;
    policy.stall_factor = 8;
  }
  return policy;
}

}  // namespace loadline::planner
