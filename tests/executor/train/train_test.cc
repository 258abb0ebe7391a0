// A run that is stopped and resumed ends with the weights of one that was not;
// a loss that is no number stops a run before it is saved.
#include "executor/train/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>

#include "executor/train/checkpoint.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

absl::StatusOr<TrainResult> TrainOnce(const Toy& toy, const planner::Plan& plan,
                                      const DataSet& data,
                                      const TrainOptions& options) {
  CpuDevice device(ToyDevice());
  auto program = Load(toy.graph, toy.problem, plan, device);
  if (!program.ok()) return program.status();
  return Train(**program, data, options);
}

TEST(Train, ReportsWhatItDid) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  int64_t reported = 0;
  const auto result = TrainOnce(toy, plan, ToyData(toy, 4),
                                {.steps = 30,
                                 .learning_rate = 0.05f,
                                 .progress = [&](const TrainProgress& p) {
                                   EXPECT_EQ(p.step, ++reported);
                                   EXPECT_EQ(p.steps, 30);
                                   EXPECT_GT(p.examples_per_s, 0);
                                 }});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reported, 30);
  EXPECT_EQ(result->losses.size(), 30u);
  EXPECT_LT(result->losses.back(), result->losses.front());
  EXPECT_FALSE(result->interrupted);
  EXPECT_GT(result->step_ns, 0);
  EXPECT_EQ(result->arena_bytes, plan.arena_bytes);
  EXPECT_EQ(result->weights_sha256.size(), 64u);
}

TEST(Train, ResumedHasTheBitsOfARunThatNeverStopped) {
  const Toy toy = MakeToy();
  const DataSet data = ToyData(toy, 21);
  for (const planner::Plan& plan : {KeepPlan(toy), OffloadPlan(toy)}) {
    TrainOptions options = {.steps = 23, .learning_rate = 0.05f, .seed = 3};
    const auto whole = TrainOnce(toy, plan, data, options);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int64_t stop : {1, 7, 22}) {
      options.checkpoint_path = TemporaryPath("resume.safetensors");
      options.resume = false;
      options.steps = stop;
      const auto first = TrainOnce(toy, plan, data, options);
      ASSERT_TRUE(first.ok()) << first.status();
      options.resume = true;
      options.steps = 23;
      const auto second = TrainOnce(toy, plan, data, options);
      ASSERT_TRUE(second.ok()) << second.status();
      EXPECT_EQ(second->first_step, stop);
      EXPECT_EQ(second->weights_sha256, whole->weights_sha256);
      std::vector<float> losses = first->losses;
      losses.insert(losses.end(), second->losses.begin(), second->losses.end());
      EXPECT_EQ(losses, whole->losses);
    }
  }
}

TEST(Train, GoesOnInAnotherProgramWithTheSameBits) {
  const Toy toy = MakeToy();
  const planner::Plan keep = KeepPlan(toy);
  const planner::Plan offload = OffloadPlan(toy);
  const DataSet data = ToyData(toy, 40);
  const TrainOptions base = {.steps = 9, .learning_rate = 0.05f, .seed = 3};
  CpuDevice whole_device(ToyDevice());
  auto whole = Load(toy.graph, toy.problem, keep, whole_device);
  ASSERT_TRUE(whole.ok());
  const auto expected = Train(**whole, data, base);
  ASSERT_TRUE(expected.ok()) << expected.status();

  const std::string path = TemporaryPath("paused");
  TrainOptions options = base;
  options.most_steps = 4;
  options.checkpoint_path = path;
  CpuDevice first_device(ToyDevice());
  auto first = Load(toy.graph, toy.problem, keep, first_device);
  ASSERT_TRUE(first.ok());
  const auto paused = Train(**first, data, options);
  ASSERT_TRUE(paused.ok()) << paused.status();
  EXPECT_EQ(paused->losses.size(), 4u);
  EXPECT_FALSE(paused->interrupted);
  EXPECT_FALSE(std::filesystem::exists(path));

  CpuDevice second_device(ToyDevice());
  auto second = Load(toy.graph, toy.problem, offload, second_device);
  ASSERT_TRUE(second.ok());
  for (models::ValueId id : (*first)->saved_values()) {
    const models::Value& value = toy.graph.value(id);
    std::vector<std::byte> bytes(value.type.bytes());
    ASSERT_TRUE(
        (*first)->ReadPersistent(value.name, absl::MakeSpan(bytes)).ok());
    ASSERT_TRUE((*second)->WritePersistent(value.name, bytes).ok());
  }
  options.most_steps = 0;
  options.first_step = 4;
  const auto rest = Train(**second, data, options);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->first_step, 4);
  EXPECT_EQ(rest->losses.size(), 5u);
  EXPECT_EQ(rest->losses.back(), expected->losses.back());
  EXPECT_EQ(rest->weights_sha256, expected->weights_sha256);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(StepsOfRun, CountsWithoutOverflow) {
  EXPECT_EQ(*StepsOfRun(7, 0, 100), 7);
  EXPECT_EQ(*StepsOfRun(0, 3, 100), 300);
  EXPECT_EQ(*StepsOfRun(0, 0, 100), 100);
  EXPECT_EQ(*StepsOfRun(kMostSteps, 0, 100), kMostSteps);
  for (const int64_t epochs : {INT64_MAX, int64_t{1} << 62, kMostSteps}) {
    EXPECT_EQ(StepsOfRun(0, epochs, 4).status().message(),
              "a run has at most 9007199254740992 steps");
  }
  EXPECT_FALSE(StepsOfRun(kMostSteps + 1, 0, 1).ok());
}

// Nothing is reserved for steps that may never come.
TEST(Train, BeginsARunOfAnyLength) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  const DataSet data = ToyData(toy, 21);
  std::atomic<bool> stop{false};
  TrainOptions options = {.steps = kMostSteps, .learning_rate = 0.05f};
  options.stop = &stop;
  options.progress = [&](const TrainProgress& p) { stop = p.step == 2; };
  const auto result = TrainOnce(toy, plan, data, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->losses.size(), 2u);
  options.steps = kMostSteps + 1;
  EXPECT_THAT(TrainOnce(toy, plan, data, options).status().message(),
              ::testing::HasSubstr("at most 9007199254740992 steps"));
}

TEST(Train, AStopFinishesTheStepSavesAndCanGoOn) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  const DataSet data = ToyData(toy, 21);
  TrainOptions options = {.steps = 20, .learning_rate = 0.05f};
  const auto whole = TrainOnce(toy, plan, data, options);
  std::atomic<bool> stop{false};
  options.checkpoint_path = TemporaryPath("stopped.safetensors");
  options.stop = &stop;
  options.progress = [&](const TrainProgress& p) { stop = p.step == 9; };
  const auto stopped = TrainOnce(toy, plan, data, options);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_TRUE(stopped->interrupted);
  EXPECT_EQ(stopped->losses.size(), 9u);
  options.stop = nullptr;
  options.resume = true;
  const auto rest = TrainOnce(toy, plan, data, options);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->weights_sha256, whole->weights_sha256);
}

TEST(Train, ALossThatIsNoNumberStopsItAndKeepsTheLastCheckpoint) {
  const Toy toy = MakeToy();
  DataSet data = ToyData(toy, 40);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Step 6 of the unshuffled data contains example 21.
  std::memcpy(data.columns[0].data.data() + 21 * data.columns[0].row_bytes,
              &nan, sizeof(nan));
  const std::string path = TemporaryPath("nan.safetensors");
  const absl::Status status = TrainOnce(toy, KeepPlan(toy), data,
                                        {.steps = 10,
                                         .learning_rate = 0.05f,
                                         .shuffle = false,
                                         .checkpoint_path = path,
                                         .checkpoint_interval = 2})
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("the loss is nan at step 6 of 10; 'x' has an "
                                 "infinity or NaN in example 21 of the data"));
  CpuDevice device(ToyDevice());
  const planner::Plan plan = KeepPlan(toy);
  auto program = Load(toy.graph, toy.problem, plan, device);
  const auto position = LoadCheckpoint(path, **program);
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->step, 4);
}

// The loss of a step is computed before its update.
TEST(Train, WeightsThatOverflowInTheLastStepAreNotSaved) {
  const Toy toy = MakeToy();
  DataSet data = ToyData(toy, 40);
  // Gradients far above 1, so that the update overflows and the loss does not.
  for (size_t i = 0; i < data.columns[1].data.size(); i += sizeof(float)) {
    const float target = 1e9f;
    std::memcpy(data.columns[1].data.data() + i, &target, sizeof(target));
  }
  const planner::Plan plan = KeepPlan(toy);
  const std::string path = TemporaryPath("overflow.safetensors");
  TrainOptions options = {
      .steps = 1, .learning_rate = 0, .checkpoint_path = path};
  ASSERT_TRUE(TrainOnce(toy, plan, data, options).ok());
  options.steps = 2;
  options.resume = true;
  options.learning_rate = std::numeric_limits<float>::max();
  const absl::Status status = TrainOnce(toy, plan, data, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'w1' holds an infinity or NaN at step 2"),
            absl::string_view::npos)
      << status;
  options.checkpoint_path.clear();
  options.resume = false;
  options.steps = 1;
  EXPECT_EQ(TrainOnce(toy, plan, data, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  CpuDevice device(ToyDevice());
  auto program = Load(toy.graph, toy.problem, plan, device);
  const auto position = LoadCheckpoint(path, **program);
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->step, 1);
}

TEST(Train, RefusesToResumeAnotherRun) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  const DataSet data = ToyData(toy, 21);
  TrainOptions options = {.steps = 2,
                          .checkpoint_path = TemporaryPath("seed.safetensors")};
  ASSERT_TRUE(TrainOnce(toy, plan, data, options).ok());
  options.resume = true;
  options.seed = 1;
  EXPECT_EQ(TrainOnce(toy, plan, data, options).status().code(),
            absl::StatusCode::kFailedPrecondition);
  options.seed = 0;
  options.shuffle = false;
  EXPECT_EQ(TrainOnce(toy, plan, data, options).status().code(),
            absl::StatusCode::kFailedPrecondition);
  options.shuffle = true;
  options.checkpoint_path = TemporaryPath("not-there");
  EXPECT_EQ(TrainOnce(toy, plan, data, options).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace loadline::executor
