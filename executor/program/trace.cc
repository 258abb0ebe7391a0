// Complete events ("ph": "X") in two processes, measured and predicted, with
// one thread per lane. Tested in tests/executor/program/trace_test.cc.
#include "executor/program/trace.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace loadline::executor {

const std::string& TraceLabel(const planner::Problem& problem,
                              const planner::Plan& plan,
                              const planner::Step& step) {
  if (step.kind == planner::StepKind::kNode) {
    return problem.node(step.node).name;
  }
  return problem.value(plan.buffer(step.from).value).name;
}

namespace {

using Events = nlohmann::ordered_json;

void AddName(const char* what, int pid, int tid, std::string name,
             Events* events) {
  events->push_back({{"name", what},
                     {"ph", "M"},
                     {"pid", pid},
                     {"tid", tid},
                     {"args", {{"name", std::move(name)}}}});
}

void AddSpan(const std::string& name, int pid, Lane lane, const TraceSpan& span,
             Events args, Events* events) {
  events->push_back(
      {{"name", name},
       {"ph", "X"},
       {"pid", pid},
       {"tid", static_cast<int>(lane)},
       {"ts", static_cast<double>(span.start_ns) / 1e3},
       {"dur", static_cast<double>(span.end_ns - span.start_ns) / 1e3},
       {"args", std::move(args)}});
}

// One process, unless `spans` is empty: a row for each lane with its steps.
void AddProcess(const char* name, int pid, const planner::Problem& problem,
                const planner::Plan& plan, absl::Span<const TraceSpan> spans,
                absl::Span<const std::string> uploads, Events* events) {
  if (spans.empty()) return;
  AddName("process_name", pid, 0, name, events);
  events->push_back({{"name", "process_sort_index"},
                     {"ph", "M"},
                     {"pid", pid},
                     {"tid", 0},
                     {"args", {{"sort_index", pid}}}});
  for (int lane = 0; lane < planner::kLaneCount; ++lane) {
    AddName("thread_name", pid, lane,
            std::string(planner::LaneName(static_cast<Lane>(lane))), events);
  }
  for (size_t s = 0; s < plan.steps.size() && s < spans.size(); ++s) {
    const planner::Step& step = plan.steps[s];
    nlohmann::ordered_json args = {{"step", s}};
    if (step.kind == planner::StepKind::kCopy) {
      args["bytes"] = plan.buffer(step.from).bytes;
    } else if (step.kind != planner::StepKind::kNode) {
      args[step.kind == planner::StepKind::kEncode ? "encode" : "decode"] =
          step.codec;
    }
    AddSpan(TraceLabel(problem, plan, step), pid, step.lane, spans[s],
            std::move(args), events);
  }
  for (size_t u = 0; u < uploads.size(); ++u) {
    const size_t slot = plan.steps.size() + u;
    if (slot == spans.size()) break;
    AddSpan(uploads[u], pid, Lane::kH2d, spans[slot], {{"upload", true}},
            events);
  }
}

}  // namespace

std::string ChromeTrace(const planner::Problem& problem,
                        const planner::Plan& plan,
                        absl::Span<const TraceSpan> measured,
                        absl::Span<const TraceSpan> predicted,
                        absl::Span<const std::string> uploads) {
  Events events = Events::array();
  AddProcess("measured", 1, problem, plan, measured, uploads, &events);
  AddProcess("predicted", 2, problem, plan, predicted, {}, &events);
  const nlohmann::ordered_json document = {{"displayTimeUnit", "ms"},
                                           {"traceEvents", std::move(events)}};
  return document.dump(-1, ' ', false,
                       nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace loadline::executor
