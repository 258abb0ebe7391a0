// Low-rank adapters in runs of the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "executor/files/safetensors.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

CommandResult RunMlpWithLora(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"run",    Zoo("mlp.onnx"),
                                   "--data", Zoo("digits-train.npz"),
                                   "--lora", "rank=4,alpha=8,targets=*",
                                   "--lr",   "0.01",
                                   "--seed", "3",
                                   "--json"};
  args.insert(args.end(), more.begin(), more.end());
  return RunLoadline(args);
}

double EvalLoss(const std::string& model) {
  const auto result =
      RunLoadline({"eval", model, "--data", Zoo("digits-test.npz"), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.json().value("loss", -1.0);
}

// The merged model computes what the last step's model computed, and the
// evaluations during the run saw merged weights.
TEST(Lora, TrainsAndMergesWhatItEvaluated) {
  const std::string folder = TestFolder("lora");
  const std::string model = folder + "/merged.onnx";
  const std::string adapters = folder + "/adapters.safetensors";
  const std::string metrics = folder + "/metrics.jsonl";
  const auto run = RunMlpWithLora(
      {"--steps", "120", "--eval-data", Zoo("digits-test.npz"), "--eval-every",
       "60", "--metrics", metrics, "-o", model, "--lora-output", adapters});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const double untrained = EvalLoss(Zoo("mlp.onnx"));
  const double merged = EvalLoss(model);
  EXPECT_LT(merged, 0.5 * untrained);
  std::ifstream lines(metrics);
  double evaluated = -1;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    evaluated = json.value("eval_loss", evaluated);
  }
  EXPECT_NEAR(evaluated, merged, 1e-5);

  const auto file = executor::ReadSafetensors(adapters);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.at("rank"), "4");
  EXPECT_EQ(file->types.size() % 2, 0u);
  for (const auto& [name, type] : file->types) {
    EXPECT_THAT(name, HasSubstr("base_model.model."));
    const bool a = name.find(".lora_A.weight") != std::string::npos;
    EXPECT_EQ(type.dims[a ? 0 : 1], 4) << name;
  }
}

TEST(Lora, HasTheSameBitsAtEveryBudgetAndWhenResumed) {
  const std::string checkpoint = TestFolder("lora_resume") + "/c.safetensors";
  const auto whole = RunMlpWithLora({"--steps", "40"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto first = RunMlpWithLora(
      {"--steps", "20", "--budget", "80%", "--checkpoint", checkpoint});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto rest = RunMlpWithLora({"--steps", "40", "--checkpoint", checkpoint,
                                    "--resume", "--micro-batches", "1"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.json()["weights_sha256"], whole.json()["weights_sha256"]);
}

// Gradients and optimizer state of frozen weights are gone.
TEST(Lora, TakesLessMemoryThanTrainingAllWeights) {
  const auto peak = [](const std::vector<std::string>& lora) {
    std::vector<std::string> args = {"plan", Zoo("mlp.onnx"), "--json"};
    args.insert(args.end(), lora.begin(), lora.end());
    const auto result = RunLoadline(args);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json().value("predicted_peak_bytes", int64_t{0});
  };
  const int64_t lora = peak({"--lora", "rank=4"});
  EXPECT_GT(lora, 0);
  EXPECT_LT(lora, peak({}));
}

TEST(Lora, SaysWhatIsWrong) {
  const auto error = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"run",     Zoo("mlp.onnx"),
                                     "--data",  Zoo("digits-train.npz"),
                                     "--steps", "1"};
    args.insert(args.end(), more.begin(), more.end());
    const auto result = RunLoadline(args);
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_THAT(error({"--lora", "16"}), HasSubstr("rank=N"));
  EXPECT_THAT(error({"--lora", "rank=x"}), HasSubstr("above zero"));
  EXPECT_THAT(error({"--lora", "rank=4,targets="}), HasSubstr("empty name"));
  EXPECT_THAT(error({"--lora", "rank=4,targets=nope"}),
              HasSubstr("matches 'nope'"));
  EXPECT_THAT(error({"--lora", "rank=4,rank=5"}), HasSubstr("given twice"));
  EXPECT_THAT(error({"--lora", "rank=4,targets=*", "--train", "*weight*"}),
              HasSubstr("is to be trained itself"));
  EXPECT_THAT(error({"--lora-output", "a.safetensors"}),
              HasSubstr("needs --lora"));
}

}  // namespace
}  // namespace loadline
