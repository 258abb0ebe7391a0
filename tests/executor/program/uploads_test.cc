// Inputs that the lane h2d uploads during the step: the same bits as inputs
// that are there before it, at any speed of the lanes, and beside compute that
// does not need them.
#include "executor/program/uploads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "executor/fake/fake_device.h"
#include "planner/solve/solve.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

std::vector<planner::Plan> PlansToUpload(const Toy& toy) {
  std::vector<planner::Plan> plans = {KeepPlan(toy), OffloadPlan(toy)};
  const auto smallest =
      planner::SolveSmallest(toy.problem, {.work_limit = 100'000});
  EXPECT_TRUE(smallest.ok()) << smallest.status();
  if (smallest.ok()) plans.push_back(*smallest);
  return plans;
}

struct UploadedRun {
  std::vector<float> losses;
  std::vector<std::vector<std::byte>> weights;
};

UploadedRun TrainUploaded(const Toy& toy, const planner::Plan& plan,
                          LoadOptions load,
                          CpuDeviceOptions options = ToyDevice()) {
  CpuDevice device(std::move(options));
  auto program = Load(toy.graph, toy.problem, plan, device, load);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  EXPECT_EQ((*program)->UploadNames().size(),
            load.least_upload_bytes == 0 ? toy.graph.inputs.size() : 0);
  const DataSet data = ToyData(toy, 40);
  auto batcher = Batcher::Create(data, toy.options.batch, 5, true);
  EXPECT_TRUE(batcher.ok());
  UploadedRun run;
  for (int64_t step = 0; step < 10; ++step) {
    const auto loss =
        (*program)->Step({.learning_rate = 0.05f, .step = step + 1, .seed = 1},
                         (*batcher)->Batch(step).value());
    EXPECT_TRUE(loss.ok()) << loss.status();
    if (!loss.ok()) return run;
    run.losses.push_back(*loss);
  }
  run.weights = AllWeights(**program);
  return run;
}

TEST(Uploads, ChangeNoBit) {
  const Toy toy = MakeToy({.depth = 9});
  const UploadedRun before = TrainUploaded(toy, KeepPlan(toy), {});
  for (const planner::Plan& plan : PlansToUpload(toy)) {
    for (bool poison : {false, true}) {
      const UploadedRun beside =
          TrainUploaded(toy, plan, {.poison = poison, .least_upload_bytes = 0});
      EXPECT_EQ(beside.losses, before.losses);
      EXPECT_EQ(beside.weights, before.weights);
    }
  }
}

TEST(Uploads, ThatAreSlowChangeNoBit) {
  const Toy toy = MakeToy({.depth = 7});
  const UploadedRun before = TrainUploaded(toy, KeepPlan(toy), {});
  for (Lane slow : {Lane::kD2h, Lane::kH2d}) {
    CpuDeviceOptions options = ToyDevice();
    options.lane_capacity = 3;
    options.before_lane_command = [slow](Lane lane) {
      if (lane == slow) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    };
    for (const planner::Plan& plan : PlansToUpload(toy)) {
      EXPECT_EQ(
          TrainUploaded(toy, plan, {.least_upload_bytes = 0}, options).weights,
          before.weights);
    }
  }
}

FakeDeviceOptions UploadMachine(const Toy& toy) {
  FakeDeviceOptions options;
  options.machine = *toy.problem.machine;
  return options;
}

absl::Status RunUploaded(const Toy& toy, const planner::Plan& plan,
                         FakeDevice& device, const LoadOptions& load) {
  auto program = Load(toy.graph, toy.problem, plan, device, load);
  if (!program.ok()) return program.status();
  const DataSet data = ToyData(toy, toy.options.batch);
  const std::vector<const std::byte*> inputs = {data.columns[0].data.data(),
                                                data.columns[1].data.data()};
  return (*program)->Run({}, inputs);
}

TEST(Uploads, RaceWithNothingAtAnySpeed) {
  const Toy toy = MakeToy({.depth = 9});
  std::mt19937 random(1);
  for (const planner::Plan& plan : PlansToUpload(toy)) {
    for (int trial = 0; trial < 100; ++trial) {
      FakeDeviceOptions options = UploadMachine(toy);
      for (double& factor : options.slowdown) {
        factor = 0.05 + static_cast<double>(random() % 1000) / 20;
      }
      FakeDevice device(options);
      const absl::Status status = RunUploaded(
          toy, plan, device, {.poison = true, .least_upload_bytes = 0});
      ASSERT_TRUE(status.ok()) << status;
    }
  }
}

// The first operator reads x; y is first read by the loss.
TEST(Uploads, TakeTimeFromReadersOnly) {
  const Toy toy = MakeToy({.depth = 20});
  const planner::Plan plan = KeepPlan(toy);
  const auto bytes =
      static_cast<double>(toy.graph.value(toy.graph.inputs[0]).type.bytes());
  FakeDeviceOptions options = UploadMachine(toy);
  // As long as five operators of 1,000 ns.
  options.machine.h2d = {.bytes_per_s = bytes / 5000e-9, .latency_ns = 0};
  FakeDevice without(options);
  ASSERT_TRUE(RunUploaded(toy, plan, without, {}).ok());
  FakeDevice with(options);
  ASSERT_TRUE(
      RunUploaded(toy, plan, with, {.trace = true, .least_upload_bytes = 0})
          .ok());
  EXPECT_NEAR(with.step_ns(), without.step_ns() + 5000, 2);
  ASSERT_EQ(with.trace().size(), plan.steps.size() + 2);
  EXPECT_NEAR(with.trace()[plan.steps.size()].end_ns, 5000, 2);
  EXPECT_NEAR(with.trace()[plan.steps.size() + 1].end_ns, 10000, 2);
}

TEST(Uploads, AreRefusedOutsideTheirBytes) {
  FakeDevice device({});
  ASSERT_TRUE(
      device.CreateArena({.arena_bytes = 1024, .upload_bytes = 512}).ok());
  ASSERT_TRUE(device.BeginStep().ok());
  const std::byte byte{};
  const std::byte* from = &byte;
  CopyArgs copy = {.lane = Lane::kH2d, .bytes = 512, .upload = &from};
  EXPECT_TRUE(device.Copy(copy).ok());
  copy.host_offset = 1;
  EXPECT_EQ(device.Copy(copy).code(), absl::StatusCode::kOutOfRange);
  copy.host_offset = 0;
  copy.lane = Lane::kD2h;
  EXPECT_EQ(device.Copy(copy).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::executor
