// Medians over runs, by operator and by lane. Tested in
// tests/executor/measure/measure_test.cc.
#include "executor/measure/step_times.h"

#include <algorithm>

#include "models/ops/operator.h"
#include "planner/base/median.h"

namespace loadline::executor {

StepTimes::StepTimes(const models::Graph& graph,
                     const planner::Problem& problem,
                     const planner::Plan& plan) {
  for (const planner::Step& step : plan.steps) {
    lanes_.push_back(step.lane);
    keys_.emplace_back();
    if (step.kind != planner::StepKind::kNode) continue;
    const auto node =
        static_cast<models::NodeId>(problem.node(step.node).file_id);
    keys_.back() = models::OperatorKey(graph, graph.node(node));
  }
}

void StepTimes::Add(absl::Span<const TraceSpan> spans) {
  std::array<int64_t, planner::kLaneCount> copies{};
  for (size_t s = 0; s < keys_.size() && s < spans.size(); ++s) {
    const int64_t ns = spans[s].end_ns - spans[s].start_ns;
    if (keys_[s].empty()) {
      copies[static_cast<size_t>(lanes_[s])] += ns;
    } else {
      operator_ns_[keys_[s]].push_back(ns);
    }
  }
  for (size_t lane = 0; lane < copies.size(); ++lane) {
    copy_ns_[lane].push_back(copies[lane]);
  }
}

std::map<std::string, int64_t> StepTimes::Operators() const {
  std::map<std::string, int64_t> ops;
  for (const auto& [key, ns] : operator_ns_) ops[key] = planner::MedianNs(ns);
  return ops;
}

std::map<std::string, int64_t> StepTimes::OperatorsWithin(
    int64_t launches_ns) const {
  std::map<std::string, int64_t> ops = Operators();
  const auto less = [](int64_t ns, int64_t excess_ns) {
    return std::max(ns - excess_ns, std::min(ns, kShortestLaunchNs));
  };
  const auto together = [&](int64_t excess_ns) {
    int64_t sum_ns = 0;
    for (const std::string& key : keys_) {
      const auto found = ops.find(key);
      if (found != ops.end()) sum_ns += less(found->second, excess_ns);
    }
    return sum_ns;
  };
  // Search for the smallest excess per launch with which the total fits. An
  // excess above the longest launch changes nothing more; if every launch must
  // become longer, none needs more than `launches_ns`.
  int64_t low = -launches_ns;
  int64_t high = 0;
  for (const auto& [key, ns] : ops) high = std::max(high, ns);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (together(middle) <= launches_ns) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  for (auto& [key, ns] : ops) ns = less(ns, low);
  return ops;
}

int64_t StepTimes::CopyNs(Lane lane) const {
  const std::vector<int64_t>& runs = copy_ns_[static_cast<size_t>(lane)];
  if (runs.empty()) return 0;
  const int64_t ns = planner::MedianNs(runs);
  return ns > 1 ? ns : 0;
}

}  // namespace loadline::executor
