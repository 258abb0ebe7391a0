// Only times change, not bytes or steps: so the first plan stays valid, and a
// new one must be faster. Tested by tests/tools/pipeline/replan_test.cc and
// tests/end_to_end/replan_test.cc.
#include "tools/pipeline/replan.h"

#include <algorithm>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "planner/solve/take_faster.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/sweep.h"
#include "tools/pipeline/timeline.h"

namespace loadline::tools {
namespace {

// The smallest rate that a machine file may have.
constexpr double kLeastRate = 1;
constexpr double kMostRate = 1e18;

// Copies of one lane, and their total time by the replay, which includes how
// copies slow each other down.
struct LaneWork {
  int64_t copies = 0;
  int64_t predicted_ns = 0;
};

LaneWork WorkOf(const planner::Plan& plan, planner::Lane lane,
                absl::Span<const executor::TraceSpan> predicted) {
  LaneWork work;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const planner::Step& step = plan.steps[s];
    if (step.kind != planner::StepKind::kCopy || step.lane != lane) continue;
    ++work.copies;
    work.predicted_ns += predicted[s].end_ns - predicted[s].start_ns;
  }
  return work;
}

// With other times a search may fail where the first one did not, or reach its
// time limit.
bool FoundNone(const absl::Status& status) {
  return status.code() == absl::StatusCode::kResourceExhausted ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

double RateAsRun(double rate, const LaneWork& work, int64_t latency_ns,
                 int64_t measured_ns, bool latency_in_spans) {
  const int64_t latencies_ns = work.copies * latency_ns;
  const auto predicted_ns =
      static_cast<double>(work.predicted_ns - latencies_ns);
  const auto moving_ns =
      static_cast<double>(measured_ns - (latency_in_spans ? latencies_ns : 0));
  if (predicted_ns <= 0 || moving_ns <= 0) return rate;
  // Latencies are partly within the span after all: too short for a rate.
  if (!latency_in_spans && predicted_ns < static_cast<double>(latencies_ns)) {
    return rate;
  }
  return std::clamp(rate * predicted_ns / moving_ns, kLeastRate, kMostRate);
}

}  // namespace

planner::Machine MachineAsRun(planner::Machine machine,
                              const planner::Plan& plan,
                              absl::Span<const executor::TraceSpan> predicted,
                              const executor::StepTimes& times,
                              bool latency_in_spans) {
  for (const auto& [key, ns] : times.Operators()) machine.ops[key] = ns;
  const auto rate = [&](planner::Lane lane, const planner::Link& link) {
    return RateAsRun(link.bytes_per_s, WorkOf(plan, lane, predicted),
                     link.latency_ns, times.CopyNs(lane), latency_in_spans);
  };
  machine.d2h.bytes_per_s = rate(planner::Lane::kD2h, machine.d2h);
  machine.h2d.bytes_per_s = rate(planner::Lane::kH2d, machine.h2d);
  return machine;
}

absl::Status PlanAgain(const StepFlags& flags, const executor::StepTimes& times,
                       executor::Device& device,
                       const std::atomic<bool>* cancel, PlannedStep* step,
                       Replanned* run) {
  run->predicted_step_ns = step->plan.predicted.step_ns;
  LOADLINE_ASSIGN_OR_RETURN(const Timeline timeline,
                            ReplayTimeline(step->problem, step->plan));
  LOADLINE_RETURN_IF_ERROR(
      PoseAgain(flags,
                MachineAsRun(std::move(step->machine), step->plan,
                             timeline.spans, times, device.is_host()),
                device, step));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Plan as_run,
      planner::Reprice(step->problem, std::move(step->plan),
                       PermittedBy(flags.plan)));
  run->repriced_step_ns = as_run.predicted.step_ns;
  auto found = SolveFor(step->problem, flags, step->keep_everything, cancel);
  if (FoundNone(found.status())) {
    step->plan = as_run;
    run->same_plan = true;
    return absl::OkStatus();
  }
  LOADLINE_RETURN_IF_ERROR(found.status());
  step->plan = *std::move(found);
  run->same_plan = as_run.arena_bytes <= step->plan.budget_bytes &&
                   planner::TakeFaster(as_run, &step->plan);
  return absl::OkStatus();
}

absl::StatusOr<RunState> ReadState(executor::Program& program) {
  RunState state;
  for (models::ValueId id : program.saved_values()) {
    const models::Value& value = program.graph().value(id);
    std::vector<std::byte>& bytes = state[value.name];
    bytes.resize(static_cast<size_t>(value.type.bytes()));
    LOADLINE_RETURN_IF_ERROR(
        program.ReadPersistent(value.name, absl::MakeSpan(bytes)));
  }
  return state;
}

absl::Status WriteState(const RunState& state, executor::Program& program) {
  for (const auto& [name, bytes] : state) {
    LOADLINE_RETURN_IF_ERROR(program.WritePersistent(name, bytes));
  }
  return absl::OkStatus();
}

}  // namespace loadline::tools
