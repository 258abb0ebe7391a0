// A run whose weights are the number of steps, and whose losses are given; and
// evaluations of a file that fixes the batch.
#include "tools/pipeline/evaluated_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tests/models/onnx_test_util.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"

namespace loadline::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Writes down what is called.
struct FakeRun {
  std::vector<double> losses;  // of the evaluations to come
  std::vector<std::string> calls;
  Notes saved;
  bool loaded = true;
  bool interrupt_evaluation = false;
  int64_t interrupt_at = -1;  // step after which training is interrupted

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
      const bool interrupted =
          interrupt_at >= 0 && first_step + most_steps >= interrupt_at;
      result.interrupted = interrupted;
      result.losses.resize(static_cast<size_t>(
          interrupted ? interrupt_at - first_step : most_steps));
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
    FakeRun run = {.losses = losses, .interrupt_at = stop};
    const auto first = TrainEvaluated({.steps = 100, .every = 4, .patience = 2},
                                      run.Actions());
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE(first->interrupted);
    EXPECT_EQ(first->losses.size(), static_cast<size_t>(stop));
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

constexpr int kExamples = 13;
constexpr int kClasses = 3;

template <typename T>
void WriteNpy(const std::string& path, const char* type,
              const std::string& shape, const std::vector<T>& numbers) {
  std::string header =
      absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                   shape, "), }");
  header.resize(117, ' ');
  models::WriteFile(
      path,
      absl::StrCat(std::string("\x93NUMPY\x01\x00\x76\x00", 10), header, "\n",
                   std::string(reinterpret_cast<const char*>(numbers.data()),
                               numbers.size() * sizeof(T))));
}

// Thirteen examples, whose last ones have large losses.
class Evaluated : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = models::TempFolder();
    std::vector<float> x;
    std::vector<int64_t> classes;
    for (int i = 0; i < kExamples; ++i) {
      classes.push_back(i % 5 == 1 ? -100 : i % kClasses);
      for (int j = 0; j < kClasses; ++j) {
        x.push_back(std::sin(static_cast<float>(7 * i + 3 * j)) *
                    static_cast<float>(i + 1));
      }
    }
    WriteNpy(folder_ + "/x.npy", "<f4", "13, 3", x);
    WriteNpy(folder_ + "/target.npy", "<i8", "13,", classes);
    std::filesystem::create_directory(folder_ + "/numbers");
    WriteNpy(folder_ + "/numbers/x.npy", "<f4", "13, 3", x);
    std::vector<float> targets(x.rbegin(), x.rend());
    WriteNpy(folder_ + "/numbers/target.npy", "<f4", "13, 3", targets);
  }

  // `nodes` make y f32[batch, 3], or with `scalar` a loss, of x.
  CommandOutput Eval(const std::string& batch, const std::string& nodes,
                     const std::vector<std::string>& more, bool numbers = false,
                     bool scalar = false) {
    const std::string model = folder_ + "/m.onnx";
    models::WriteFile(model, models::Bytes(models::ModelFromText(absl::StrCat(
                                 "g (float[", batch, ", 3] x) => (float",
                                 scalar ? "" : absl::StrCat("[", batch, ", 3]"),
                                 " y) {", nodes, "}"))));
    std::vector<std::string> args = {"eval",
                                     model,
                                     "--data",
                                     numbers ? folder_ + "/numbers" : folder_,
                                     "--json",
                                     "--machine",
                                     FixedMachinePath()};
    args.insert(args.end(), more.begin(), more.end());
    return RunInProcess(args);
  }

  std::string folder_;
};

constexpr char kLogits[] = "y = Identity (x)";

// Batches of 4 leave one example; one of 20 is larger than the data.
TEST_F(Evaluated, CountsEveryExampleWhereTheFileFixesTheBatch) {
  const std::string mean =
      "two = Mul (x, x) y = ReduceMean <keepdims = 0> (two)";
  const std::string sum = "two = Mul (x, x) y = ReduceSum <keepdims = 0> (two)";
  struct Case {
    std::string nodes;
    std::vector<std::string> flags;
    bool numbers = false, scalar = false;
  };
  for (const Case& one :
       std::vector<Case>{{kLogits, {}},
                         {kLogits, {"--class-weights", "0.1,2,0.5"}},
                         {kLogits, {"--label-smoothing", "0.1"}},
                         {kLogits, {"--loss", "mse"}, true},
                         {kLogits, {"--loss", "huber"}, true},
                         {mean, {"--loss", "model"}, false, true},
                         {sum, {"--loss", "model"}, false, true}}) {
    SCOPED_TRACE(one.nodes + absl::StrJoin(one.flags, " "));
    std::vector<std::string> whole = one.flags;
    whole.insert(whole.end(), {"--batch", "13"});
    const CommandOutput all =
        Eval("batch", one.nodes, whole, one.numbers, one.scalar);
    ASSERT_EQ(all.exit_code, 0) << all.err;
    const auto want = nlohmann::json::parse(all.out);
    for (const char* batch : {"4", "5", "20", "open"}) {
      SCOPED_TRACE(batch);
      std::vector<std::string> flags = one.flags;
      const bool open = batch == std::string("open");
      if (open) flags.insert(flags.end(), {"--batch", "4"});
      const CommandOutput got = Eval(open ? "batch" : batch, one.nodes, flags,
                                     one.numbers, one.scalar);
      ASSERT_EQ(got.exit_code, 0) << got.err;
      const auto json = nlohmann::json::parse(got.out);
      EXPECT_EQ(json["examples"], kExamples);
      EXPECT_NEAR(json["loss"].get<double>(), want["loss"].get<double>(),
                  2e-6 * want["loss"].get<double>());
      EXPECT_EQ(json.value("accuracy", -1.0), want.value("accuracy", -1.0));
      EXPECT_EQ(json.value("reduction", ""), one.nodes == sum ? "sum" : "");
      EXPECT_THAT(got.err, Not(HasSubstr("does not apply")));
      EXPECT_THAT(got.err, Not(HasSubstr("left out")));
    }
  }
}

TEST_F(Evaluated, SayWhatIsLeftOutAndWhatDependsOnTheBatch) {
  const std::string nodes =
      "two = Mul (x, x) s = ReduceSum <keepdims = 0> (two) y = Sqrt (s)";
  const CommandOutput fixed =
      Eval("4", nodes, {"--loss", "model"}, false, true);
  ASSERT_EQ(fixed.exit_code, 0) << fixed.err;
  EXPECT_EQ(nlohmann::json::parse(fixed.out)["examples"], 12);
  EXPECT_THAT(
      fixed.err,
      HasSubstr("1 of 13 examples left out: the file's batch is fixed to 4"));
  EXPECT_THAT(fixed.err, Not(HasSubstr("does not apply")));
  EXPECT_THAT(fixed.err, HasSubstr("averaged over batches of 4"));
  const CommandOutput whole =
      Eval("batch", nodes, {"--loss", "model", "--batch", "13"}, false, true);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.err, "");
}

}  // namespace
}  // namespace loadline::tools
