// Measured times: figures change only where the run was slower or faster than
// predicted.
#include "tools/pipeline/replan.h"

#include <gtest/gtest.h>

#include "executor/cpu/device.h"
#include "models/ops/operator.h"
#include "planner/solve/solve.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/timeline.h"

namespace loadline::tools {
namespace {

class Replan : public testing::Test {
 protected:
  void SetUp() override {
    flags_ = MlpFlags();
    flags_.plan.budget = "90%";
    flags_.plan.no_recompute = true;
    flags_.purpose.work_limit = 2000;  // any plan will do
    auto device = MakeDevice(kCpu);
    ASSERT_TRUE(device.ok());
    device_ = std::move(*device);
    auto step = PlanTrainingStep(flags_, *device_, nullptr);
    ASSERT_TRUE(step.ok()) << step.status();
    step_ = std::move(*step);
    auto timeline = ReplayTimeline(step_.problem, step_.plan);
    ASSERT_TRUE(timeline.ok());
    spans_ = timeline->spans;
    ASSERT_GT(step_.plan.predicted.d2h_bytes, 0);
  }

  // The predicted spans, each multiplied by its lane's factor.
  executor::StepTimes Times(double compute, double d2h, double h2d) const {
    executor::StepTimes times(step_.graph, step_.problem, step_.plan);
    std::vector<executor::TraceSpan> spans = spans_;
    for (size_t s = 0; s < spans.size(); ++s) {
      const double factor[] = {compute, d2h, h2d};
      const auto lane = static_cast<size_t>(step_.plan.steps[s].lane);
      const auto ns = static_cast<double>(spans[s].end_ns - spans[s].start_ns);
      spans[s].end_ns =
          spans[s].start_ns + static_cast<int64_t>(ns * factor[lane]);
    }
    times.Add(spans);
    return times;
  }

  StepFlags flags_;
  std::unique_ptr<executor::Device> device_;
  PlannedStep step_;
  std::vector<executor::TraceSpan> spans_;
};

// A device that records the algorithms set for it.
struct Chooser : executor::CpuDevice {
  void SetAlgorithms(executor::Algorithms algorithms) override {
    chosen = algorithms;
  }
  executor::Algorithms chosen;
};

TEST_F(Replan, TheNewDeviceTakesTheProfilesAlgorithms) {
  step_.machine.algorithms = {{"MatMul", "fast"}};
  Chooser device;
  Replanned run;
  ASSERT_TRUE(
      PlanAgain(flags_, Times(1, 1, 1), device, nullptr, &step_, &run).ok());
  EXPECT_EQ(device.chosen, step_.machine.algorithms);
}

TEST_F(Replan, AsPredictedChangesNoPrice) {
  step_.machine.d2h.latency_ns = step_.problem.machine->d2h.latency_ns;
  step_.machine.h2d.latency_ns = step_.problem.machine->h2d.latency_ns;
  const planner::Machine machine =
      MachineAsRun(step_.machine, step_.plan, spans_, Times(1, 1, 1), true);
  EXPECT_NEAR(machine.d2h.bytes_per_s / step_.machine.d2h.bytes_per_s, 1, 1e-3);
  EXPECT_NEAR(machine.h2d.bytes_per_s / step_.machine.h2d.bytes_per_s, 1, 1e-3);
}

TEST_F(Replan, ALaneThatTookLongerHasALowerRate) {
  step_.machine.d2h.latency_ns = step_.machine.h2d.latency_ns = 0;
  const planner::Machine machine =
      MachineAsRun(step_.machine, step_.plan, spans_, Times(3, 4, 1), true);
  EXPECT_NEAR(machine.d2h.bytes_per_s / step_.machine.d2h.bytes_per_s, 0.25,
              1e-2);
  EXPECT_NEAR(machine.h2d.bytes_per_s / step_.machine.h2d.bytes_per_s, 1, 1e-2);
  // Every operator of the plan has its measured time, whatever the profile has.
  for (const planner::Step& step : step_.plan.steps) {
    if (step.kind != planner::StepKind::kNode) continue;
    const planner::Node& node = step_.problem.node(step.node);
    const auto& of =
        step_.graph.node(static_cast<models::NodeId>(node.file_id));
    EXPECT_NEAR(machine.ops.at(models::OperatorKey(step_.graph, of)),
                3 * node.time_ns, 3 + node.time_ns);
  }
}

TEST_F(Replan, TheNewPlanIsNoSlowerThanTheOldOneAtTheNewPrices) {
  // Copies are now so slow that another plan is better.
  const executor::StepTimes times = Times(1, 50, 50);
  flags_.plan.no_recompute = false;
  const planner::Plan before = step_.plan;
  Replanned run;
  const absl::Status status =
      PlanAgain(flags_, times, *device_, nullptr, &step_, &run);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(run.predicted_step_ns, before.predicted.step_ns);
  EXPECT_GT(run.repriced_step_ns, run.predicted_step_ns);
  EXPECT_LT(step_.plan.predicted.step_ns, run.repriced_step_ns);
  EXPECT_FALSE(run.same_plan);
  EXPECT_LE(step_.plan.arena_bytes, before.budget_bytes);
}

TEST_F(Replan, KeepsThePlanWhereNoOtherIsFaster) {
  const planner::Plan before = step_.plan;
  Replanned run;
  ASSERT_TRUE(
      PlanAgain(flags_, Times(2, 2, 2), *device_, nullptr, &step_, &run).ok());
  EXPECT_LE(step_.plan.predicted.step_ns, run.repriced_step_ns);
  if (run.same_plan) {
    EXPECT_EQ(step_.plan.arena_bytes, before.arena_bytes);
  }
}

TEST_F(Replan, KeepsThePlanWhereTheSearchFindsNone) {
  const planner::Plan before = step_.plan;
  flags_.plan.budget = "1KiB";
  Replanned run;
  const absl::Status status =
      PlanAgain(flags_, Times(2, 2, 2), *device_, nullptr, &step_, &run);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(run.same_plan);
  EXPECT_EQ(step_.plan.arena_bytes, before.arena_bytes);
  EXPECT_EQ(step_.plan.predicted.step_ns, run.repriced_step_ns);
}

}  // namespace
}  // namespace loadline::tools
