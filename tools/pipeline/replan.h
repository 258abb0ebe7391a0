// Planning again with what the first steps of a run took.
#ifndef LOADLINE_TOOLS_PIPELINE_REPLAN_H_
#define LOADLINE_TOOLS_PIPELINE_REPLAN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "executor/device/device.h"
#include "executor/measure/step_times.h"
#include "executor/program/program.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// A plan that was run, at two prices.
struct Replanned {
  int64_t steps = 0;              // of the first plan
  int64_t predicted_step_ns = 0;  // of it, before it was run
  int64_t step_ns = 0;            // of it, as measured
  int64_t repriced_step_ns = 0;   // of it, at the prices that were measured
  bool same_plan = false;         // no faster one was found
};

// `machine` with the operators' times as they were when `plan` was run, and
// with each copy rate changed as the lane's copies together were faster or
// slower than predicted (the plan's replay, by step). What the plan does not
// copy or run keeps its price. latency_in_spans: what was measured of a copy
// holds its latency, as on the CPU; a GPU times it once it has begun.
planner::Machine MachineAsRun(planner::Machine machine,
                              const planner::Plan& plan,
                              absl::Span<const executor::TraceSpan> predicted,
                              const executor::StepTimes& times,
                              bool latency_in_spans);

// Poses and plans `step` again at those prices, with the same flags; the plan
// that was run stays where no faster one, or none, is found. `run` says how it
// was run and gets the rest. Errors: those of PoseStep, Reprice and SolveFor.
absl::Status PlanAgain(const StepFlags& flags, const executor::StepTimes& times,
                       executor::Device& device,
                       const std::atomic<bool>* cancel, PlannedStep* step,
                       Replanned* run);

// Parameters and optimizer state of a program, to go on with in another of the
// same step.
using RunState = std::map<std::string, std::vector<std::byte>>;
absl::StatusOr<RunState> ReadState(executor::Program& program);
absl::Status WriteState(const RunState& state, executor::Program& program);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_REPLAN_H_
