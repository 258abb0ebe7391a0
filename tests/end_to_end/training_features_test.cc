// Schedules, clipping, averages and evaluation in a run of the real command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Plus(std::vector<std::string> args,
                              const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::vector<nlohmann::json> Lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line, nullptr, false));
  }
  return lines;
}

// Everything that changes the numbers of a run.
std::vector<std::string> RunArguments(const std::string& folder) {
  return {"run",
          Zoo("mlp.onnx"),
          "--data",
          Zoo("digits-train.npz"),
          "--eval-data",
          Zoo("digits-test.npz"),
          "--eval-every",
          "1000",
          "--schedule",
          "cosine",
          "--warmup-steps",
          "5",
          "--clip-norm",
          "0.5",
          "--ema",
          "0.9",
          "--no-decay-on-norms-and-biases",
          "--optimizer",
          "lion",
          "--lr",
          "0.002",
          "--best",
          folder + "/best.onnx",
          "--ema-output",
          folder + "/average.onnx",
          "--metrics",
          folder + "/metrics.jsonl",
          "--json"};
}

TEST(RunFeatures, GiveTheSameBitsWhenResumedAndAtEveryBudget) {
  const std::string folder = TestFolder("run_features");
  const auto whole =
      RunLoadline(Plus(RunArguments(folder), {"--steps", "3000"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto lines = Lines(folder + "/metrics.jsonl");
  ASSERT_EQ(lines.size(), 3003u);  // of 3,000 steps and three evaluations
  EXPECT_EQ(lines[1000]["step"], 1000);
  EXPECT_GT(lines[1000]["eval_accuracy"], 0.8);
  EXPECT_GT(lines[3002]["eval_accuracy"], 0.8);
  EXPECT_NEAR(lines[0]["learning_rate"], 0.0004, 1e-9);

  const std::string checkpoint = folder + "/run.safetensors";
  const auto first =
      RunLoadline(Plus(RunArguments(folder),
                       {"--steps", "3000", "--checkpoint", checkpoint,
                        "--checkpoint-every", "700", "--budget", "60%"}),
                  {.interrupt_when = "step 1000: evaluation"});
  EXPECT_EQ(first.exit_code, 130) << first.err;
  const auto rest =
      RunLoadline(Plus(RunArguments(folder), {"--steps", "3000", "--checkpoint",
                                              checkpoint, "--resume"}));
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.json()["weights_sha256"], whole.json()["weights_sha256"]);
  const auto again = Lines(folder + "/metrics.jsonl");
  ASSERT_EQ(again.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const char* field : {"step", "loss", "learning_rate", "eval_loss"}) {
      EXPECT_EQ(again[i].value(field, 0.0), lines[i].value(field, 0.0)) << i;
    }
  }
}

TEST(RunFeatures, EndWhereEvaluationsBringNoGain) {
  const std::string folder = TestFolder("run_patience");
  const auto result =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--eval-data", Zoo("digits-test.npz"), "--eval-every", "2",
                   "--patience", "2", "--lr", "0", "--steps", "100", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("step 6: the run ends"));
}

}  // namespace
}  // namespace loadline
