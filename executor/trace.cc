// Complete events ("ph": "X") on one process with one thread per lane. Tested
// in tests/executor/train_test.cc.
#include "executor/trace.h"

#include <nlohmann/json.hpp>

namespace loadline::executor {
namespace {

std::string StepName(const planner::Problem& problem, const planner::Plan& plan,
                     const planner::Step& step) {
  if (step.kind == planner::StepKind::kNode) {
    return problem.node(step.node).name;
  }
  return problem.value(plan.buffer(step.from).value).name;
}

}  // namespace

std::string ChromeTrace(const planner::Problem& problem,
                        const planner::Plan& plan,
                        absl::Span<const TraceSpan> spans) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (int lane = 0; lane < planner::kLaneCount; ++lane) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", lane},
                      {"args",
                       {{"name", std::string(planner::LaneName(
                                     static_cast<Lane>(lane)))}}}});
  }
  for (size_t s = 0; s < plan.steps.size() && s < spans.size(); ++s) {
    const planner::Step& step = plan.steps[s];
    nlohmann::ordered_json args = {{"step", s}};
    if (step.kind == planner::StepKind::kCopy) {
      args["bytes"] = plan.buffer(step.from).bytes;
    }
    events.push_back(
        {{"name", StepName(problem, plan, step)},
         {"ph", "X"},
         {"pid", 1},
         {"tid", static_cast<int>(step.lane)},
         {"ts", static_cast<double>(spans[s].start_ns) / 1e3},
         {"dur",
          static_cast<double>(spans[s].end_ns - spans[s].start_ns) / 1e3},
         {"args", std::move(args)}});
  }
  const nlohmann::ordered_json document = {{"displayTimeUnit", "ms"},
                                           {"traceEvents", std::move(events)}};
  return document.dump(-1, ' ', false,
                       nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace loadline::executor
