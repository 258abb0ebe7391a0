// Durations of a plan's steps, collected over several runs.
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

// An empty launch of a captured step on a GPU, including its queueing.
inline constexpr int64_t kShortestLaunchNs = 500;

class StepTimes {
 public:
  // `plan` must belong to `problem`, and `problem` to `graph`. None is kept.
  StepTimes(const models::Graph& graph, const planner::Problem& problem,
            const planner::Plan& plan);

  // Adds one run: Device::trace() of a program loaded with LoadOptions::trace.
  void Add(absl::Span<const TraceSpan> spans);

  // Median nanoseconds of each operator, by models::OperatorKey: the contents
  // of machine.ops. Empty before the first run.
  std::map<std::string, int64_t> Operators() const;
  // Operators(), with every launch shifted by one constant so that the plan's
  // launches take `launches_ns` together. No launch becomes shorter than
  // kShortestLaunchNs unless it was measured so. For devices where tracing
  // lengthens each launch (not Device::is_host).
  std::map<std::string, int64_t> OperatorsWithin(int64_t launches_ns) const;
  // Median over the runs of the total copy time of a lane; 0 without copies.
  int64_t CopyNs(Lane lane) const;

 private:
  std::vector<Lane> lanes_;        // by step of the plan
  std::vector<std::string> keys_;  // the same; empty: a copy
  std::map<std::string, std::vector<int64_t>> operator_ns_;
  std::array<std::vector<int64_t>, planner::kLaneCount> copy_ns_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_STEP_TIMES_H_
