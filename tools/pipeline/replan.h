// Plans again with the times that the first steps of a run took.
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

// The first plan's figures before and after it was run.
struct Replanned {
  int64_t steps = 0;              // steps run with the first plan
  int64_t predicted_step_ns = 0;  // before it was run
  int64_t step_ns = 0;            // measured
  int64_t repriced_step_ns = 0;   // predicted with the measured times
  bool same_plan = false;         // no faster plan was found
};

// `machine` with the operators' times measured while `plan` ran, and each copy
// rate scaled by how much faster or slower the lane's copies were than
// predicted (by the plan's replay, by step). Operators and lanes that the plan
// does not use keep their figures. latency_in_spans: a copy's measured span
// includes its latency, as on the CPU; on a GPU the span begins when the copy
// does.
planner::Machine MachineAsRun(planner::Machine machine,
                              const planner::Plan& plan,
                              absl::Span<const executor::TraceSpan> predicted,
                              const executor::StepTimes& times,
                              bool latency_in_spans);

// Makes the problem of `step` with these times and plans it again with the same
// flags. The old plan stays if no faster one is found. `run` has the
// measurements of the run and receives the rest. Errors: those of PoseStep,
// Reprice and SolveFor.
absl::Status PlanAgain(const StepFlags& flags, const executor::StepTimes& times,
                       executor::Device& device,
                       const std::atomic<bool>* cancel, PlannedStep* step,
                       Replanned* run);

// Parameters and optimizer state of a program, to continue in another program
// of the same step.
using RunState = std::map<std::string, std::vector<std::byte>>;
absl::StatusOr<RunState> ReadState(executor::Program& program);
absl::Status WriteState(const RunState& state, executor::Program& program);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_REPLAN_H_
