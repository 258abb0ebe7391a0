// Runs whose recipe quantizes: phases within the budget, an export of integers,
// the same bits after an interruption. tests/onnxruntime runs such exports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/end_to_end/recipe_runs.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

std::string Recipe(const std::string& folder, const std::string& method,
                   const std::string& process) {
  return WriteRecipe(folder,
                     "compression:\n- name: int8\n  method: {kind: quantize, " +
                         method + "}\n  process: {" + process + "}\n");
}

// Planning takes seconds; with fewer choices, less.
CommandResult RunMlp(const std::string& recipe, std::vector<std::string> more) {
  more.push_back("--no-recompute");
  return RunMlpUnder(recipe, more);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The file of a run of 200 steps that never stopped, and of one that did.
void ExpectResumes(const std::string& recipe, const std::string& folder,
                   const std::string& whole,
                   const std::vector<const char*>& stops) {
  const std::string resumed = folder + "/resumed.onnx";
  for (const char* stop : stops) {
    InterruptAndResume(recipe, {"--steps", "200", "--no-recompute"}, stop,
                       folder + "/c.safetensors", {"-o", resumed});
    ASSERT_FALSE(testing::Test::HasFailure());
    EXPECT_EQ(Contents(whole), Contents(resumed)) << stop;
  }
}

TEST(Quantize, TrainsInPhasesWithinTheBudgetAndExportsIntegers) {
  for (const char* quantizer : {"uniform", "lsq", "kmeans"}) {
    const std::string folder = TestFolder(std::string("quantize_") + quantizer);
    const std::string out = folder + "/out.onnx";
    std::vector<std::string> flags = {"--steps", "16", "-o", out};
    // Planning takes seconds.
    if (std::string(quantizer) == "lsq") {
      flags.insert(flags.end(), {"--budget", "80%"});
    }
    const CommandResult run =
        RunMlp(Recipe(folder, std::string("quantizer: ") + quantizer,
                      "start_step: 8, freeze_observer_step: 12, "
                      "calibration_batches: 2"),
               flags);
    ASSERT_EQ(run.exit_code, 0) << quantizer << ": " << run.err;
    const auto result = run.json();
    ASSERT_EQ(result["phases"].size(), 3u);
    EXPECT_EQ(result["losses"].size(), 16u);
    for (const auto& phase : result["phases"]) {
      EXPECT_EQ(phase["measured_arena_bytes"], phase["arena_bytes"]);
      EXPECT_LE(phase["arena_bytes"], phase["budget_bytes"]);
    }
    EXPECT_THAT(Contents(out), HasSubstr("QuantizeLinear"));
    // A codebook holds no integers that a product would saturate with.
    EXPECT_EQ(absl::StrContains(run.err, "session.x64quantprecision is 1"),
              std::string(quantizer) != "kmeans");
    EXPECT_LT(std::filesystem::file_size(out),
              std::filesystem::file_size(Zoo("mlp.onnx")) / 2);
  }
}

TEST(Quantize, AfterTrainingLeavesTheTrainingAlone) {
  const std::string folder = TestFolder("quantize_after");
  const std::string out = folder + "/out.onnx";
  const CommandResult run =
      RunMlp(Recipe(folder, "quantizer: uniform",
                    "start_step: 8, calibration_batches: 2"),
             {"--steps", "8", "-o", out});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  ASSERT_EQ(run.json()["phases"].size(), 1u);
  EXPECT_THAT(Contents(out), HasSubstr("QuantizeLinear"));
  const CommandResult plain =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--seed", "3", "--steps", "8", "--json"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(plain.json()["losses"], run.json()["losses"]);
}

TEST(Quantize, TakesFrozenWeightsThatItNames) {
  for (const char* quantizer : {"uniform", "kmeans"}) {
    const std::string folder = TestFolder(std::string("frozen_") + quantizer);
    const std::string recipe = folder + "/recipe.yaml";
    std::ofstream(recipe) << "- method: {kind: quantize, quantizer: "
                          << quantizer
                          << "}\n  object: {op_types: [Gemm]}\n"
                             "  process: {start_step: 2}\n";
    const std::string out = folder + "/out.onnx";
    const CommandResult run =
        RunMlp(recipe, {"--steps", "4", "--freeze", "fc2*", "-o", out});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_LT(std::filesystem::file_size(out),
              std::filesystem::file_size(Zoo("mlp.onnx")) / 2);
  }
}

TEST(Quantize, ResumesWithTheSameBits) {
  const std::string folder = TestFolder("quantize_resume");
  const std::string recipe =
      Recipe(folder, "quantizer: lsq",
             "start_step: 4, freeze_observer_step: 8, calibration_batches: 2");
  const std::string whole = folder + "/whole.onnx";
  ASSERT_EQ(RunMlp(recipe, {"--steps", "200", "-o", whole}).exit_code, 0);
  // The last phase is long enough for a signal to reach it.
  ExpectResumes(recipe, folder, whole,
                {" 3/200", " 4/200", " 6/200", " 9/200"});
}

TEST(Quantize, HasTheSameBitsAtTwoBudgets) {
  const std::string folder = TestFolder("quantize_bits");
  const std::string recipe =
      Recipe(folder, "quantizer: uniform",
             "start_step: 4, freeze_observer_step: 8, calibration_batches: 2");
  const std::string whole = folder + "/whole.onnx";
  const std::string tight = folder + "/tight.onnx";
  const CommandResult with_all = RunMlp(recipe, {"--steps", "12", "-o", whole});
  const CommandResult with_less =
      RunMlp(recipe, {"--steps", "12", "--budget", "70%", "-o", tight});
  ASSERT_EQ(with_all.exit_code, 0) << with_all.err;
  ASSERT_EQ(with_less.exit_code, 0) << with_less.err;
  EXPECT_LT(with_less.json()["phases"][1]["arena_bytes"],
            with_all.json()["phases"][1]["arena_bytes"]);
  EXPECT_EQ(with_all.json()["losses"], with_less.json()["losses"]);
  EXPECT_EQ(Contents(whole), Contents(tight));
}

// Prunes half of the channels, trains on, quantizes, and freezes; stopped in
// each phase and between them.
TEST(Quantize, FollowsPruningAndResumes) {
  const std::string folder = TestFolder("quantize_pruned");
  const std::string recipe = folder + "/recipe.yaml";
  std::ofstream(recipe) << R"(compression:
- name: half
  method: {kind: prune, criterion: taylor}
  degree: {sparsity: 0.5}
  process: {start_step: 1, end_step: 4}
- name: int8
  method: {kind: quantize, quantizer: lsq}
  degree: {bits: {weight: 4}}
  process: {start_step: 7, freeze_observer_step: 10, calibration_batches: 2}
)";
  const std::string whole = folder + "/whole.onnx";
  const CommandResult run =
      RunMlp(recipe, {"--steps", "200", "--budget", "90%", "-o", whole});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto phases = run.json()["phases"];
  ASSERT_EQ(phases.size(), 4u);
  for (size_t p = 0; p < 4; ++p) {
    const auto& phase = phases[p];
    EXPECT_EQ(phase["phase"], p + 1);
    EXPECT_EQ(phase["measured_arena_bytes"], phase["arena_bytes"]);
    EXPECT_LE(phase["arena_bytes"], phase["budget_bytes"]);
  }
  EXPECT_THAT(Contents(whole), HasSubstr("QuantizeLinear"));
  // Half of the channels in both layers, and a byte instead of four.
  EXPECT_LT(std::filesystem::file_size(whole),
            std::filesystem::file_size(Zoo("mlp.onnx")) / 6);
  ExpectResumes(recipe, folder, whole,
                {" 3/200", " 4/200", " 7/200", " 8/200", " 11/200"});
}

TEST(Quantize, PlansItsPhasesOffline) {
  const std::string folder = TestFolder("quantize_plan");
  const std::string recipe = Recipe(folder, "quantizer: uniform",
                                    "start_step: 8, freeze_observer_step: 12");
  const CommandResult plan =
      RunLoadline({"plan", Zoo("mlp.onnx"), "--recipe", recipe, "--steps", "16",
                   "--machine", "h100-sxm", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  ASSERT_EQ(plan.json()["phases"].size(), 3u);
  // Fake quantization keeps more between forward and backward pass.
  EXPECT_GT(plan.json()["phases"][1]["keep_everything_bytes"],
            plan.json()["phases"][0]["keep_everything_bytes"]);
}

TEST(Quantize, NamesWhatCannotWork) {
  const std::string folder = TestFolder("quantize_errors");
  const CommandResult observer = RunMlp(
      Recipe(folder, "quantizer: uniform, observer: mse", "start_step: 2"),
      {"--steps", "4"});
  EXPECT_NE(observer.exit_code, 0);
  EXPECT_THAT(observer.err, HasSubstr("minmax"));
  const CommandResult late = RunMlp(
      Recipe(folder, "quantizer: uniform", "start_step: 5"), {"--steps", "4"});
  EXPECT_NE(late.exit_code, 0);
  EXPECT_THAT(late.err, HasSubstr("5 is after the run's 4 steps"));
}

}  // namespace
}  // namespace loadline
