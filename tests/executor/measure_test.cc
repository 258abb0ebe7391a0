// Measurements: every number is there and makes sense.
#include <gtest/gtest.h>

#include "executor/calibrate.h"
#include "executor/calibrate_step.h"
#include "executor/cpu/doctor.h"
#include "executor/step_times.h"
#include "models/ops/operator.h"
#include "tests/executor/toy.h"

namespace loadline::executor {
namespace {

TEST(MeasureMachine, FillsTheProfile) {
  const auto machine = MeasureMachine({.buffer_bytes = 1 << 22});
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_TRUE(machine->CanCopy());
  EXPECT_GT(machine->d2h_bytes_per_s, 1e7);
  EXPECT_GT(machine->h2d_bytes_per_s, 1e7);
  EXPECT_GT(machine->bidirectional, 0);
  EXPECT_LE(machine->bidirectional, 1);
  EXPECT_GT(machine->copy_latency_ns, 0);
  EXPECT_GT(machine->device_bytes, 1 << 20);
  ASSERT_TRUE(machine->rates.has_value());
  EXPECT_GT(machine->rates->matmul_flop_per_s.at("f32"), 1e7);
  EXPECT_GT(machine->rates->memory_bytes_per_s, 1e7);
  EXPECT_GT(machine->rates->launch_ns, 0);
  const auto json = planner::MachineToJson(*machine);
  EXPECT_TRUE(planner::MachineFromJson(json).ok());
}

TEST(HiddenShare, IsWhatBothTogetherSaveOfTheShorter) {
  EXPECT_EQ(HiddenShare(100, 40, 100), 1);  // all of the copies
  EXPECT_EQ(HiddenShare(100, 40, 140), 0);  // one after the other
  EXPECT_EQ(HiddenShare(40, 100, 120), 0.5);
  EXPECT_EQ(HiddenShare(100, 40, 90), 1);  // noise
  EXPECT_EQ(HiddenShare(100, 40, 150), 0);
  EXPECT_EQ(HiddenShare(100, 0, 100), 1);
}

TEST(Calibrate, MeasuresEachDistinctOperatorOnce) {
  const Toy toy = MakeToy();
  CpuDevice device(ToyDevice());
  int64_t told = 0;
  const auto ops = Calibrate(
      toy.graph, device,
      {.evict_bytes = 1 << 20, .progress = [&](int64_t, int64_t) { ++told; }});
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_EQ(ops->size(), 5u);  // ToyMul, Loss, Count, MulGrad, Sgd
  EXPECT_EQ(told, 5);
  for (const models::Node& node : toy.graph.nodes) {
    EXPECT_GT(ops->at(models::OperatorKey(toy.graph, node)), 0);
  }
}

TEST(CalibrateStep, MeasuresEveryOperatorOfThePlan) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  CpuDevice device(ToyDevice());
  std::vector<int64_t> told;
  const auto ops =
      CalibrateStep(toy.graph, toy.problem, plan, device,
                    {.runs = 3, .progress = [&](int64_t done, int64_t of) {
                       told.push_back(done);
                       EXPECT_EQ(of, 3);
                     }});
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_EQ(told, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(ops->size(), 5u);
  for (const models::Node& node : toy.graph.nodes) {
    EXPECT_GT(ops->at(models::OperatorKey(toy.graph, node)), 0);
  }
}

TEST(StepTimes, AreMediansByOperatorAndByLane) {
  const Toy toy = MakeToy();
  const planner::Plan plan = OffloadPlan(toy);
  StepTimes times(toy.graph, toy.problem, plan);
  EXPECT_TRUE(times.Operators().empty());
  EXPECT_EQ(times.CopyNs(Lane::kD2h), 0);
  int64_t d2h = 0;
  for (int64_t run : {3, 1, 2}) {
    d2h = 0;
    std::vector<TraceSpan> spans;
    for (const planner::Step& step : plan.steps) {
      const bool copy = step.kind == planner::StepKind::kCopy;
      const int64_t ns = copy ? 10 * run : 100 * run;
      spans.push_back({1000, 1000 + ns});
      if (step.lane == Lane::kD2h) ++d2h;
    }
    times.Add(spans);
  }
  EXPECT_EQ(times.CopyNs(Lane::kD2h), d2h * 20);
  const auto ops = times.Operators();
  EXPECT_EQ(ops.size(), 5u);
  for (const auto& [key, ns] : ops) EXPECT_EQ(ns, 200) << key;
}

TEST(CalibrateStep, StopsWhenAsked) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  CpuDevice device(ToyDevice());
  const std::atomic<bool> stop{true};
  EXPECT_EQ(CalibrateStep(toy.graph, toy.problem, plan, device, {.stop = &stop})
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

TEST(Calibrate, StopsWhenAsked) {
  const Toy toy = MakeToy();
  CpuDevice device(ToyDevice());
  const std::atomic<bool> stop{true};
  EXPECT_EQ(Calibrate(toy.graph, device, {.stop = &stop}).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace loadline::executor
