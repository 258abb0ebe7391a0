// A run whose weights are the number of steps, and whose losses are given.
#include "tools/pipeline/evaluated_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace loadline::tools {
namespace {

using ::testing::ElementsAre;

// Writes down what is called.
struct FakeRun {
  std::vector<double> losses;  // of the evaluations to come
  std::vector<std::string> calls;
  Notes saved;
  bool loaded = true;
  bool interrupt_evaluation = false;

  EvaluatedRunActions Actions() {
    EvaluatedRunActions actions;
    actions.train =
        [this](int64_t first_step, int64_t most_steps,
               const Notes& notes) -> absl::StatusOr<executor::TrainResult> {
      EXPECT_TRUE(loaded);
      calls.push_back(absl::StrCat("train ", first_step, "+", most_steps));
      saved = notes;
      executor::TrainResult result;
      result.first_step = first_step;
      result.losses.resize(static_cast<size_t>(most_steps));
      result.examples_per_s = 10;
      result.weights_sha256 = "weights";
      return result;
    };
    actions.unload = [this]() -> absl::StatusOr<RunState> {
      EXPECT_TRUE(std::exchange(loaded, false));
      return RunState();
    };
    actions.load = [this](RunState) {
      EXPECT_FALSE(std::exchange(loaded, true));
      return absl::OkStatus();
    };
    actions.evaluate =
        [this](const RunState&) -> absl::StatusOr<executor::Evaluation> {
      EXPECT_FALSE(loaded);
      if (interrupt_evaluation) return absl::CancelledError("interrupted");
      executor::Evaluation evaluation;
      evaluation.loss = losses.front();
      losses.erase(losses.begin());
      return evaluation;
    };
    actions.evaluated = [this](int64_t step, const executor::Evaluation&,
                               bool best, const RunState&) {
      calls.push_back(absl::StrCat("evaluated ", step, best ? " best" : ""));
      return absl::OkStatus();
    };
    actions.save = [this](int64_t step, const Notes& notes) {
      calls.push_back(absl::StrCat("save ", step));
      saved = notes;
      return absl::OkStatus();
    };
    return actions;
  }
};

TEST(TrainEvaluated, EvaluatesEverySoManyStepsAndTheLast) {
  FakeRun run = {.losses = {3, 2, 2.5}};
  const auto result = TrainEvaluated({.steps = 10, .every = 4}, run.Actions());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->losses.size(), 10u);
  EXPECT_DOUBLE_EQ(result->examples_per_s, 10);
  EXPECT_FALSE(result->interrupted);
  EXPECT_TRUE(run.loaded);
  EXPECT_THAT(run.calls,
              ElementsAre("train 0+4", "evaluated 4 best", "train 4+4",
                          "evaluated 8 best", "train 8+2", "evaluated 10"));
}

TEST(TrainEvaluated, EndsWhenEvaluationsBringNoGain) {
  FakeRun run = {.losses = {3, 4, NAN, 1}};
  const auto result =
      TrainEvaluated({.steps = 100, .every = 4, .patience = 2}, run.Actions());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->losses.size(), 12u);
  EXPECT_FALSE(result->interrupted);
  EXPECT_THAT(run.calls, ElementsAre("train 0+4", "evaluated 4 best",
                                     "train 4+4", "evaluated 8", "train 8+4",
                                     "evaluated 12", "save 12"));
}

// From every checkpoint of a run, also one that was saved before the evaluation
// of its step.
TEST(TrainEvaluated, EndsAtTheSameStepWhenResumed) {
  const std::vector<double> losses = {5, 4, 4.5, 3, 3.5, 3.25, 2};
  for (int64_t stop : {2, 4, 8, 9, 12, 16, 20, 21, 24}) {
    SCOPED_TRACE(stop);
    FakeRun run = {.losses = losses};
    const auto first = TrainEvaluated(
        {.steps = stop, .every = 4, .patience = 2}, run.Actions());
    ASSERT_TRUE(first.ok());
    // The checkpoint of the last part.
    EvaluationHistory history = EvaluationHistory::FromNotes(run.saved);
    FakeRun rest = {
        .losses = {losses.begin() + std::max<int64_t>(history.last_step / 4, 0),
                   losses.end()}};
    const auto second = TrainEvaluated({.steps = 100,
                                        .first_step = stop,
                                        .every = 4,
                                        .patience = 2,
                                        .history = history},
                                       rest.Actions());
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(stop + static_cast<int64_t>(second->losses.size()), 24);
    EXPECT_EQ(second->weights_sha256, "weights");
  }
}

TEST(TrainEvaluated, SavesWhenAnEvaluationIsInterrupted) {
  FakeRun run;
  run.interrupt_evaluation = true;
  const auto result = TrainEvaluated({.steps = 10, .every = 4}, run.Actions());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  EXPECT_TRUE(run.loaded);
  EXPECT_THAT(run.calls, ElementsAre("train 0+4", "save 4"));
}

}  // namespace
}  // namespace loadline::tools
