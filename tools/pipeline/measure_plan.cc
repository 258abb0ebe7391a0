// Tested by tests/end_to_end/report_test.cc and sweep_test.cc.
#include "tools/pipeline/measure_plan.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "executor/train/train.h"
#include "planner/base/check.h"
#include "planner/base/median.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/load_data.h"

namespace loadline::tools {

absl::StatusOr<Measured> Measure(const PlannedStep& step,
                                 const StepFlags& flags, int64_t steps,
                                 const std::atomic<bool>* stop) {
  if (flags.loss.data.empty()) {
    return NeedsData("--steps");
  }
  LOADLINE_RETURN_IF_ERROR(
      executor::StepsOfRun(steps, /*epochs=*/0, /*steps_per_epoch=*/0)
          .status());
  LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data,
                            LoadDataFor(flags.loss, step.graph));
  LOADLINE_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags.plan.device));
  device->SetAlgorithms(step.machine.algorithms);
  LOADLINE_ASSIGN_OR_RETURN(const std::unique_ptr<executor::Program> program,
                            executor::Load(step.graph, step.problem, step.plan,
                                           *device, {.trace = true}));
  executor::TrainOptions options;
  options.steps = steps + 1;  // the first step has cold pages
  options.learning_rate = static_cast<float>(flags.optimizer.lr);
  options.stop = stop;
  LOADLINE_ASSIGN_OR_RETURN(const executor::TrainResult result,
                            executor::Train(*program, data, options));
  if (result.interrupted) return absl::CancelledError("interrupted");
  if (result.arena_bytes > step.plan.budget_bytes) {
    return absl::OutOfRangeError(absl::StrCat("measured ", result.arena_bytes,
                                              " bytes, above the budget of ",
                                              step.plan.budget_bytes));
  }
  // Uploads follow the plan's steps.
  const auto trace = device->trace().first(step.plan.steps.size());
  return Measured{
      steps, result.step_ns, result.arena_bytes, {trace.begin(), trace.end()}};
}

Measured Together(std::vector<Measured> rounds) {
  LOADLINE_CHECK(!rounds.empty());
  int64_t steps = 0;
  std::vector<int64_t> step_ns;
  for (const Measured& round : rounds) {
    steps += round.steps;
    step_ns.push_back(round.step_ns);
  }
  const auto middle =
      rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::nth_element(rounds.begin(), middle, rounds.end(),
                   [](const Measured& a, const Measured& b) {
                     return a.step_ns < b.step_ns;
                   });
  middle->steps = steps;
  middle->step_ns = planner::MiddleMeanNs(std::move(step_ns));
  return std::move(*middle);
}

}  // namespace loadline::tools
