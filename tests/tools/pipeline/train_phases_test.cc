// Evaluations of a run under a recipe, wherever it is interrupted.
#include "tools/pipeline/train_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/train/metrics.h"
#include "nlohmann/json.hpp"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/model_flags.h"
#include "tools/cli/device_names.h"
#include "tools/pipeline/device.h"

namespace loadline::tools {
namespace {

using ::testing::ElementsAre;

// Channels go at step 8; the export is quantized.
constexpr char kTwoPhases[] = R"(compression:
- name: hidden
  method: {kind: prune}
  degree: {sparsity: 0.5}
  process: {start_step: 2, end_step: 8, update_frequency: 3}
- name: after
  method: {kind: quantize}
  degree: {bits: 8}
  process: {start_step: 12}
)";

struct Stop {
  int64_t at = 0;             // step; 0: nowhere
  bool in_evaluation = true;  // else after that of the step
};

class EvaluatedPhases : public testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = FreshFolder();
    recipe_ = folder + "/recipe.yaml";
    checkpoint_ = folder + "/c.safetensors";
    metrics_ = folder + "/metrics.jsonl";
    std::ofstream(recipe_) << kTwoPhases;
  }

  absl::StatusOr<PhasedResult> Train(bool resume, Stop stop) {
    std::atomic<bool> stopped = false;
    std::unique_ptr<executor::MetricsFile> metrics;
    PhasedRun run = {
        .step = MlpFlags(),
        .recipe_path = recipe_,
        .steps = 12,
        .device = [] { return MakeDevice(kCpu); },
        .eval_data = ZooPath("digits-test.npz"),
        .eval_every = 5,
        .evaluated =
            [&](const PhaseEvaluation& evaluation) {
              metrics->AddEvaluation(evaluation.step, evaluation.result);
              if (!stop.in_evaluation && evaluation.step == stop.at) {
                stopped = true;
              }
            }};
    run.step.loss.data = ZooPath("digits-train.npz");
    run.step.purpose.runs_here = true;
    run.begins = [&](int64_t done, bool evaluates_again) -> absl::Status {
      auto file = executor::MetricsFile::Open(metrics_, done, evaluates_again);
      if (file.ok()) metrics = *std::move(file);
      return file.status();
    };
    run.train = {.learning_rate = 0.01f,
                 .checkpoint_path = checkpoint_,
                 .resume = resume,
                 .progress = [&](const executor::TrainProgress& progress) {
                   metrics->Add(progress);
                   if (stop.in_evaluation && progress.step == stop.at) {
                     stopped = true;
                   }
                 }};
    return TrainPhases(run, &stopped);
  }

  // Steps, or whole lines of evaluations, of the file of metrics.
  std::vector<std::string> Lines(bool evaluations) const {
    std::vector<std::string> lines;
    std::ifstream file(metrics_);
    for (std::string line; std::getline(file, line);) {
      const auto parsed = nlohmann::json::parse(line);
      if (parsed.contains("eval_loss") != evaluations) continue;
      lines.push_back(evaluations ? line : parsed["step"].dump());
    }
    return lines;
  }

  std::string recipe_, checkpoint_, metrics_;
};

// In a step that has an evaluation, so that this is interrupted: in a phase, at
// the end of one, at the end of the run; in one without; and when the
// evaluation is done.
TEST_F(EvaluatedPhases, HaveEachEvaluationOnceWhereverTheyAreInterrupted) {
  const auto whole = Train(/*resume=*/false, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  std::vector<int64_t> steps;
  for (const PhaseEvaluation& one : whole->evaluations) {
    steps.push_back(one.step);
  }
  ASSERT_THAT(steps, ElementsAre(5, 8, 10, 12, 12));
  const std::vector<std::string> evaluations = Lines(true);
  const std::vector<std::string> all_steps = Lines(false);
  for (const Stop stop : {Stop{5}, Stop{6}, Stop{8}, Stop{10}, Stop{12},
                          Stop{5, false}, Stop{8, false}, Stop{10, false}}) {
    SCOPED_TRACE(testing::Message()
                 << "step " << stop.at
                 << (stop.in_evaluation ? "" : ", evaluated"));
    const auto first = Train(/*resume=*/false, stop);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_TRUE(first->train.interrupted);
    const auto rest = Train(/*resume=*/true, {});
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_EQ(rest->train.weights_sha256, whole->train.weights_sha256);
    EXPECT_EQ(Lines(true), evaluations);
    EXPECT_EQ(Lines(false), all_steps);
  }
}

// A kill leaves what an interrupt in the evaluation leaves.
TEST_F(EvaluatedPhases, AreTheSameWhenARunThatHasEndedIsResumed) {
  const auto whole = Train(/*resume=*/false, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::vector<std::string> evaluations = Lines(true);
  const auto again = Train(/*resume=*/true, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Lines(true), evaluations);
}

}  // namespace
}  // namespace loadline::tools
