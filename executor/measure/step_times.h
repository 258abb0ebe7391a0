// What the steps of a plan took, gathered over runs of it.
#ifndef LOADLINE_EXECUTOR_MEASURE_STEP_TIMES_H_
#define LOADLINE_EXECUTOR_MEASURE_STEP_TIMES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"

namespace loadline::executor {

// Of a captured step on a GPU, an empty launch with its place in the queue.
inline constexpr int64_t kShortestLaunchNs = 500;

class StepTimes {
 public:
  // `plan` belongs to `problem`, and that to `graph`; none is read later.
  StepTimes(const models::Graph& graph, const planner::Problem& problem,
            const planner::Plan& plan);

  // One run: Device::trace() of a program loaded with LoadOptions::trace.
  void Add(absl::Span<const TraceSpan> spans);

  // Median nanoseconds of each operator, by models::OperatorKey: what
  // machine.ops holds. Empty before the first run.
  std::map<std::string, int64_t> Operators() const;
  // The same, such that the plan's launches take `launches_ns` together: each
  // lasts as much less, or more, as any other, and none less than
  // kShortestLaunchNs where it was measured longer. For where tracing adds to
  // each (Device::is_host).
  std::map<std::string, int64_t> OperatorsWithin(int64_t launches_ns) const;
  // Median over the runs of what all copies of a lane took together; 0 without
  // any.
  int64_t CopyNs(Lane lane) const;

 private:
  std::vector<Lane> lanes_;        // by step of the plan
  std::vector<std::string> keys_;  // the same; empty: a copy
  std::map<std::string, std::vector<int64_t>> operator_ns_;
  std::array<std::vector<int64_t>, planner::kLaneCount> copy_ns_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_STEP_TIMES_H_
