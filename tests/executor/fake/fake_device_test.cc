// The run loop on a simulated clock: as fast as the planner predicts, without
// races for any speed of the lanes, and with faults reported.
#include "executor/fake/fake_device.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/solve/solve.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

FakeDeviceOptions OptionsFor(const Toy& toy) {
  FakeDeviceOptions options;
  options.machine = *toy.problem.machine;
  options.node_ns = [&toy](const models::Node& node) {
    for (const planner::Node& planned : toy.problem.nodes) {
      if (planned.name == node.name) return planned.time_ns;
    }
    return int64_t{0};
  };
  return options;
}

absl::Status RunOnce(const Toy& toy, const planner::Plan& plan,
                     FakeDevice& device, LoadOptions load = {}) {
  auto program = Load(toy.graph, toy.problem, plan, device, load);
  if (!program.ok()) return program.status();
  const DataSet data = ToyData(toy, toy.options.batch);
  const std::vector<const std::byte*> inputs = {data.columns[0].data.data(),
                                                data.columns[1].data.data()};
  return (*program)->Run({}, inputs);
}

TEST(FakeDevice, TakesAsLongAsTheReplayPredicts) {
  for (int depth : {4, 7, 20}) {
    const Toy toy = MakeToy({.depth = depth});
    for (const planner::Plan& plan : {KeepPlan(toy), OffloadPlan(toy)}) {
      FakeDevice device(OptionsFor(toy));
      const absl::Status status = RunOnce(toy, plan, device, {.poison = true});
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_NEAR(device.step_ns(), plan.predicted.step_ns, 2);
    }
  }
}

TEST(FakeDevice, TakesAsLongAsSolvedPlansPredict) {
  const Toy toy = MakeToy({.depth = 12});
  const auto plan = planner::SolveSmallest(toy.problem, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  FakeDevice device(OptionsFor(toy));
  ASSERT_TRUE(RunOnce(toy, *plan, device).ok());
  EXPECT_NEAR(device.step_ns(), plan->predicted.step_ns, 2);
}

TEST(FakeDevice, NoLaneSpeedMakesARace) {
  const Toy toy = MakeToy({.depth = 9});
  const planner::Plan plan = OffloadPlan(toy);
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    FakeDeviceOptions options = OptionsFor(toy);
    for (double& factor : options.slowdown) {
      factor = 0.05 + static_cast<double>(random() % 1000) / 20;
    }
    FakeDevice device(options);
    const absl::Status status = RunOnce(toy, plan, device, {.poison = true});
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(FakeDevice, ASlowLaneHoldsTheStepUp) {
  const Toy toy = MakeToy({.depth = 9});
  const planner::Plan plan = OffloadPlan(toy);
  FakeDeviceOptions options = OptionsFor(toy);
  options.slowdown[static_cast<int>(Lane::kD2h)] = 50;
  FakeDevice device(options);
  ASSERT_TRUE(RunOnce(toy, plan, device).ok());
  EXPECT_GT(device.step_ns(), 2 * plan.predicted.step_ns);
}

TEST(FakeDevice, FindsAMissingWait) {
  FakeDevice device({.machine = {.d2h = {1e9}, .h2d = {1e9}}});
  ASSERT_TRUE(device
                  .CreateArena({.arena_bytes = 4096,
                                .host_bytes = 4096,
                                .event_count = 1,
                                .max_operands = 1})
                  .ok());
  const models::Graph graph;
  auto kernel = device.Prepare(graph, {});
  ASSERT_TRUE(kernel.ok());
  const Region r = {0, 1024};
  for (bool waits : {true, false}) {
    ASSERT_TRUE(device.BeginStep().ok());
    ASSERT_TRUE(
        device.Launch({.kernel = kernel->get(), .outputs = {&r, 1}}).ok());
    ASSERT_TRUE(device.Record(Lane::kCompute, EventId{0}).ok());
    if (waits) {
      ASSERT_TRUE(device.Wait(Lane::kD2h, EventId{0}).ok());
    }
    ASSERT_TRUE(device.Copy({.lane = Lane::kD2h, .bytes = 1024}).ok());
    EXPECT_EQ(device.Synchronize().code(),
              waits ? absl::StatusCode::kOk : absl::StatusCode::kInternal);
  }
}

TEST(FakeDevice, FindsLanesThatWaitForEachOther) {
  FakeDevice device({});
  ASSERT_TRUE(device.CreateArena({.event_count = 2}).ok());
  ASSERT_TRUE(device.BeginStep().ok());
  ASSERT_TRUE(device.Wait(Lane::kD2h, EventId{0}).ok());
  ASSERT_TRUE(device.Record(Lane::kD2h, EventId{1}).ok());
  ASSERT_TRUE(device.Wait(Lane::kH2d, EventId{1}).ok());
  ASSERT_TRUE(device.Record(Lane::kH2d, EventId{0}).ok());
  EXPECT_EQ(device.Synchronize().code(), absl::StatusCode::kInternal);
}

TEST(FakeDevice, EveryInjectedFaultIsAStatus) {
  const Toy toy = MakeToy({.depth = 5});
  const planner::Plan plan = OffloadPlan(toy);
  int64_t launches = 0;
  int64_t copies = 0;
  for (const planner::Step& step : plan.steps) {
    ++(step.kind == planner::StepKind::kNode ? launches : copies);
  }
  for (int64_t k = 0; k < launches; ++k) {
    FakeDeviceOptions options = OptionsFor(toy);
    options.fail_launch = k;
    FakeDevice device(options);
    const absl::Status status = RunOnce(toy, plan, device);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << k;
    EXPECT_NE(status.message().find("injected"), absl::string_view::npos);
  }
  for (int64_t k = 0; k < copies; ++k) {
    FakeDeviceOptions options = OptionsFor(toy);
    options.fail_copy = k;
    FakeDevice device(options);
    EXPECT_EQ(RunOnce(toy, plan, device).code(), absl::StatusCode::kDataLoss)
        << k;
  }
  FakeDeviceOptions options = OptionsFor(toy);
  options.fail_copy = copies;  // the first copy of the next step
  FakeDevice device(options);
  EXPECT_TRUE(RunOnce(toy, plan, device).ok());
}

}  // namespace
}  // namespace loadline::executor
