// Optimizer states in 8 bits, in runs of the real command. That every plan
// gives the same bits is tested in cut_updates_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

CommandResult RunDigitsMlp(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"run", Zoo("mlp.onnx"), "--data",
                                   Zoo("digits-train.npz"), "--json"};
  args.insert(args.end(), more.begin(), more.end());
  return RunLoadline(args);
}

// With everything that an update may have.
CommandResult RunMlp8(const std::string& optimizer,
                      std::vector<std::string> more) {
  more.insert(more.end(),
              {"--optimizer-bits", "8", "--optimizer", optimizer, "--precision",
               "bf16", "--clip-norm", "0.5", "--ema", "0.9"});
  return RunDigitsMlp(more);
}

class OptimizerBits : public testing::TestWithParam<const char*> {};

TEST_P(OptimizerBits, GiveTheSameBitsWhenResumed) {
  const auto with = [&](const std::vector<std::string>& more) {
    const CommandResult run = RunMlp8(GetParam(), more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.json();
  };
  const nlohmann::json whole = with({"--steps", "30"});
  const std::string checkpoint =
      TestFolder(std::string("bits_") + GetParam()) + "/c.safetensors";
  with({"--steps", "11", "--checkpoint", checkpoint});
  const nlohmann::json rest =
      with({"--steps", "30", "--checkpoint", checkpoint, "--resume"});
  EXPECT_EQ(rest["first_step"], 11);
  EXPECT_EQ(rest["weights_sha256"], whole["weights_sha256"]);
  EXPECT_EQ(rest["measured_arena_bytes"], rest["arena_bytes"]);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerBits,
                         testing::Values("adamw", "sgd"));

TEST(StatesIn8Bits, LearnTheDigits) {
  const std::string out = TestFolder("bits") + "/trained.onnx";
  const CommandResult run = RunDigitsMlp(
      {"--optimizer-bits", "8", "--epochs", "30", "--lr", "2e-3", "-o", out});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const CommandResult eval =
      RunLoadline({"eval", out, "--data", Zoo("digits-test.npz"), "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_GE(eval.json()["accuracy"].get<double>(), 0.97);
}

TEST(StatesIn8Bits, CutTheBytesOfStates) {
  const auto bytes = [](const char* bits) {
    const CommandResult estimate =
        RunLoadline({"estimate", Zoo("gpt.onnx"), "--batch", "8",
                     "--optimizer-bits", bits, "--json"});
    EXPECT_EQ(estimate.exit_code, 0) << estimate.err;
    const nlohmann::json json = estimate.json();
    for (const nlohmann::json& part : json["components"]) {
      if (part["name"] == "optimizer") return part["total_bytes"].get<double>();
    }
    return 0.0;
  };
  const double share = bytes("8") / bytes("32");
  // 260 bytes of 1,024, and all of the biases and scales.
  EXPECT_GT(share, 0.254);
  EXPECT_LT(share, 0.27);
}

TEST(StatesIn8Bits, MustBeThoseOfTheCheckpoint) {
  for (const auto& [first, second] :
       {std::pair("32", "8"), std::pair("8", "32")}) {
    const std::string checkpoint = TestFolder("bits_other") + "/c.safetensors";
    const CommandResult begun =
        RunDigitsMlp({"--steps", "1", "--optimizer-bits", first, "--checkpoint",
                      checkpoint});
    ASSERT_EQ(begun.exit_code, 0) << begun.err;
    const CommandResult run =
        RunDigitsMlp({"--steps", "2", "--optimizer-bits", second,
                      "--checkpoint", checkpoint, "--resume"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err,
                HasSubstr("its optimizer states have " + std::string(first) +
                          " bits, and those of this run have " + second +
                          "; resume it with --optimizer-bits " + first));
  }
}

// The 256 hidden channels lose half: blocks with numbers of several channels
// are cut, with the same bits under two budgets and with a checkpoint.
TEST(StatesIn8Bits, AreCutWithTheChannelsOfARecipe) {
  const std::string folder = TestFolder("bits_recipe");
  const std::string recipe = folder + "/r.yaml";
  std::ofstream(recipe) << R"(compression:
- name: shrink
  method:  {kind: prune, criterion: l2, granularity: channel}
  degree:  {sparsity: 0.5}
  process: {start_step: 2, end_step: 6}
- name: states
  method: {kind: optimizer_states}
)";
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--recipe", recipe, "--steps", "12"});
    return RunDigitsMlp(more);
  };
  const CommandResult whole = train({});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const CommandResult tight = train({"--budget", "80%"});
  ASSERT_EQ(tight.exit_code, 0) << tight.err;
  EXPECT_EQ(whole.json()["weights_sha256"], tight.json()["weights_sha256"]);
  const std::string checkpoint = folder + "/c";
  const CommandResult part = RunDigitsMlp(
      {"--recipe", recipe, "--steps", "12", "--checkpoint", checkpoint});
  ASSERT_EQ(part.exit_code, 0) << part.err;
  EXPECT_EQ(whole.json()["weights_sha256"], part.json()["weights_sha256"]);
  // The flag does the same as the key.
  std::ofstream(recipe) << R"(compression:
- name: shrink
  method:  {kind: prune, criterion: l2, granularity: channel}
  degree:  {sparsity: 0.5}
  process: {start_step: 2, end_step: 6}
)";
  const CommandResult flag = train({"--optimizer-bits", "8"});
  ASSERT_EQ(flag.exit_code, 0) << flag.err;
  EXPECT_EQ(whole.json()["weights_sha256"], flag.json()["weights_sha256"]);
  const CommandResult wide = train({});
  EXPECT_NE(whole.json()["weights_sha256"], wide.json()["weights_sha256"]);
}

}  // namespace
}  // namespace loadline
