// Runs under a recipe: phases as planned, the budget held, the same bits at any
// budget and after any interruption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/import.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/recipe_runs.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::Pointwise;

constexpr char kCubic[] = R"(compression:
- name: hidden
  method: {kind: prune, criterion: taylor}
  degree: {sparsity: 0.5}
  process: {schedule: cubic, start_step: 4, end_step: 16, update_frequency: 3}
)";

// A field of the lines of a file of metrics.
template <typename T>
std::vector<T> MetricsOf(const std::string& path, const char* field) {
  std::vector<T> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    values.push_back(nlohmann::json::parse(line)[field]);
  }
  return values;
}

std::vector<int> StepsOf(const std::string& path) {
  return MetricsOf<int>(path, "step");
}

TEST(Recipe, RunsPhasesAsPlanned) {
  const std::string recipe = WriteRecipe(TestFolder("recipe_run"), kCubic);
  const CommandResult run =
      RunMlpUnder(recipe, {"--steps", "24", "--budget", "80%"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto result = run.json();
  ASSERT_EQ(result["phases"].size(), 2u);
  EXPECT_EQ(result["losses"].size(), 24u);
  for (const auto& phase : result["phases"]) {
    EXPECT_EQ(phase["measured_arena_bytes"], phase["arena_bytes"]);
    EXPECT_LE(phase["arena_bytes"], phase["budget_bytes"]);
    EXPECT_EQ(phase["budget_bytes"], result["phases"][0]["budget_bytes"]);
  }
  const auto& first = result["phases"][0];
  const auto& last = result["phases"][1];
  EXPECT_EQ(first["steps_done"], 16);
  EXPECT_EQ(last["steps_done"], 8);
  EXPECT_LE(last["keep_everything_bytes"].get<double>(),
            0.6 * first["keep_everything_bytes"].get<double>());
  EXPECT_GT(last["carried_bytes"], 0);

  // The plans that are made without training are the same.
  const CommandResult plan = RunLoadline(
      {"plan", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--budget",
       "80%", "--recipe", recipe, "--steps", "24", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  for (size_t p = 0; p < 2; ++p) {
    for (const char* field : {"parameters", "macs", "channels",
                              "keep_everything_bytes", "budget_bytes"}) {
      EXPECT_EQ(plan.json()["phases"][p][field], result["phases"][p][field])
          << field;
    }
  }
}

// Convolutions of 2 to 16 channels, whose kernels pad channels.
TEST(Recipe, TakesFewerBytesWithHalfOfNarrowChannels) {
  const std::string recipe = WriteRecipe(TestFolder("recipe_narrow"), kCubic);
  const CommandResult plan =
      RunLoadline({"plan", Zoo("unet.onnx"), "--recipe", recipe, "--steps",
                   "24", "--no-calibrate", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const auto bytes = [&](size_t p) {
    return plan.json()["phases"][p]["keep_everything_bytes"].get<double>();
  };
  EXPECT_LE(bytes(1), 0.57 * bytes(0));
}

TEST(Recipe, HasTheSameBitsAtTwoBudgets) {
  const std::string recipe = WriteRecipe(TestFolder("recipe_bits"), kCubic);
  const CommandResult whole = RunMlpUnder(recipe, {"--steps", "24"});
  const CommandResult tight = RunMlpUnder(
      recipe, {"--steps", "24", "--budget", "75%", "--no-recompute"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(tight.exit_code, 0) << tight.err;
  EXPECT_NE(whole.json()["phases"][0]["arena_bytes"],
            tight.json()["phases"][0]["arena_bytes"]);
  EXPECT_EQ(whole.json()["losses"], tight.json()["losses"]);
  EXPECT_EQ(whole.json()["weights_sha256"], tight.json()["weights_sha256"]);
}

// Masks of ones change nothing, and the learning rate is that of a run without
// a recipe.
TEST(Recipe, TrainsAsWithoutOneUntilItsWindowStarts) {
  const std::string recipe = WriteRecipe(TestFolder("recipe_before"), kCubic);
  const std::vector<std::string> rates = {
      "--steps", "24", "--schedule", "cosine", "--warmup-steps", "2"};
  const CommandResult pruned = RunMlpUnder(recipe, rates);
  ASSERT_EQ(pruned.exit_code, 0) << pruned.err;
  std::vector<std::string> args = {
      "run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--seed",
      "3",   "--json"};
  args.insert(args.end(), rates.begin(), rates.end());
  const CommandResult plain = RunLoadline(args);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  // The first masks are of seven steps: at four the sparsity is still zero.
  for (size_t step = 0; step < 7; ++step) {
    EXPECT_EQ(pruned.json()["losses"][step], plain.json()["losses"][step])
        << step;
  }
  EXPECT_NE(pruned.json()["losses"][8], plain.json()["losses"][8]);
}

TEST(Recipe, RestartsTheLearningRateWhenChannelsAreRemoved) {
  const std::string folder = TestFolder("recipe_restart");
  const std::string recipe = WriteRecipe(folder, kCubic);
  const std::string metrics = folder + "/metrics.jsonl";
  const std::vector<std::string> flags = {
      "--steps", "200",      "--schedule", "linear",    "--lr",
      "0.0184",  "--min-lr", "0",          "--metrics", metrics};
  const CommandResult whole = RunMlpUnder(recipe, flags);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::vector<double> want;
  for (int step = 0; step < 200; ++step) {
    want.push_back(step < 16 ? 0.0184 * (1 - step / 200.0)
                             : 0.0184 * (1 - (step - 16) / 184.0));
  }
  EXPECT_THAT(MetricsOf<double>(metrics, "learning_rate"),
              Pointwise(DoubleNear(1e-8), want));
  const CommandResult rest =
      InterruptAndResume(recipe, flags, " 20/200", folder + "/c.safetensors");
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(rest.json()["weights_sha256"], whole.json()["weights_sha256"]);
}

TEST(Recipe, EvaluatesDuringAndAfterEachPhase) {
  const std::string folder = TestFolder("recipe_evaluations");
  const std::string recipe =
      WriteRecipe(folder, absl::StrCat(kCubic, R"(- name: after
  method: {kind: quantize}
  degree: {bits: 2}
  process: {start_step: 200}
)"));
  const std::string metrics = folder + "/metrics.jsonl";
  const CommandResult plain = RunMlpUnder(recipe, {"--steps", "200"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const std::vector<std::string> flags = {
      "--steps",      "200", "--eval-data", Zoo("digits-test.npz"),
      "--eval-every", "90",  "--metrics",   metrics};
  const CommandResult run = RunMlpUnder(recipe, flags);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["weights_sha256"], plain.json()["weights_sha256"]);
  EXPECT_EQ(run.json()["losses"], plain.json()["losses"]);
  const auto evaluations = run.json()["evaluations"];
  std::vector<std::pair<int, int>> phases_of_steps;
  for (const auto& one : evaluations) {
    phases_of_steps.emplace_back(one["step"], one["phase"]);
    EXPECT_EQ(one["examples"], 360);
  }
  EXPECT_THAT(phases_of_steps,
              ElementsAre(Pair(16, 1), Pair(90, 2), Pair(180, 2), Pair(200, 2),
                          Pair(200, 0)));
  const auto accuracy = [&](size_t i) {
    return evaluations[i]["accuracy"].get<double>();
  };
  EXPECT_LT(accuracy(0), accuracy(3));
  EXPECT_LT(accuracy(4), accuracy(3));  // two bits
  EXPECT_THAT(run.err, HasSubstr("step 90: evaluation loss "));

  // A recipe that only prunes exports what was evaluated last.
  const std::string pruned = WriteRecipe(folder, kCubic);
  const std::string file = folder + "/pruned.onnx";
  std::vector<std::string> writes = flags;
  writes.insert(writes.end(), {"-o", file});
  const CommandResult last = RunMlpUnder(pruned, writes);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const CommandResult eval =
      RunLoadline({"eval", file, "--data", Zoo("digits-test.npz"), "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(eval.json()["accuracy"],
            last.json()["evaluations"].back()["accuracy"]);

  const CommandResult rest =
      InterruptAndResume(pruned, flags, " 120/200", folder + "/c.safetensors");
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(rest.json()["weights_sha256"], last.json()["weights_sha256"]);
  EXPECT_EQ(rest.json()["evaluations"].back(),
            last.json()["evaluations"].back());
}

// At steps in both phases, at the one between them, and twice in one run.
TEST(Recipe, ResumesWithTheBitsOfARunThatNeverStopped) {
  const std::string folder = TestFolder("recipe_resume");
  const std::string recipe = WriteRecipe(folder, kCubic);
  const std::string metrics = folder + "/metrics.jsonl";
  const CommandResult whole =
      RunMlpUnder(recipe, {"--steps", "200", "--metrics", metrics});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::vector<int> all(200);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(StepsOf(metrics), all);
  for (const char* stop : {" 9/200", " 16/200", " 20/200"}) {
    const std::string checkpoint = folder + "/c.safetensors";
    const CommandResult rest = InterruptAndResume(
        recipe, {"--steps", "200", "--metrics", metrics}, stop, checkpoint);
    ASSERT_FALSE(HasFailure());
    EXPECT_LT(rest.json()["losses"].size(), 200u);
    EXPECT_EQ(rest.json()["weights_sha256"], whole.json()["weights_sha256"])
        << stop;
    EXPECT_EQ(StepsOf(metrics), all) << stop;
  }
}

TEST(Recipe, RefusesTheCheckpointOfAnotherRecipe) {
  const std::string folder = TestFolder("recipe_other");
  const std::string checkpoint = folder + "/c.safetensors";
  ASSERT_EQ(RunMlpUnder(WriteRecipe(folder, kCubic),
                        {"--steps", "24", "--checkpoint", checkpoint})
                .exit_code,
            0);
  std::string other = kCubic;
  other.replace(other.find("0.5"), 3, "0.6");
  const CommandResult run =
      RunMlpUnder(WriteRecipe(folder, other),
                  {"--steps", "24", "--checkpoint", checkpoint, "--resume"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("its run had another recipe"));
  const CommandResult without =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--steps", "24", "--checkpoint", checkpoint, "--resume"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("its run had a recipe; resume with"));
}

TEST(Recipe, WritesTheModelThatIsLeft) {
  const std::string folder = TestFolder("recipe_export");
  const std::string out = folder + "/pruned.onnx";
  const CommandResult run =
      RunMlpUnder(WriteRecipe(folder, kCubic), {"--steps", "24", "-o", out});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LT(run.json()["file_bytes"].get<double>(),
            0.6 * run.json()["before"]["file_bytes"].get<double>());
  const CommandResult eval =
      RunLoadline({"eval", out, "--data", Zoo("digits-test.npz"), "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_GT(eval.json()["accuracy"], 0.15);
  const CommandResult groups = RunLoadline({"groups", out, "--json"});
  EXPECT_EQ(groups.json()["channels"], run.json()["phases"][1]["channels"]);
}

TEST(Recipe, MasksSingleWeightsAndSaysThatNothingIsSaved) {
  const std::string folder = TestFolder("recipe_2_of_4");
  const std::string recipe = WriteRecipe(
      folder,
      "- name: sparse\n  method: {kind: prune, criterion: l1, granularity: "
      "'2:4'}\n  degree: {sparsity: 0.5}\n"
      "  process: {schedule: one_shot, start_step: 3}\n");
  const CommandResult run = RunLoadline(
      {"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--steps",
       "8", "--recipe", recipe, "-o", folder + "/sparse.onnx"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Entry 'sparse' only sets weights to zero"));
}

// The channels that stay lie in other fours than before.
TEST(Recipe, KeepsTwoOfFourWhereChannelsGo) {
  const std::string folder = TestFolder("recipe_fours");
  const std::string out = folder + "/small.onnx";
  const CommandResult run = RunMlpUnder(
      WriteRecipe(folder,
                  "- method: {kind: prune}\n"
                  "  object: {op_names: [fc1.weight]}\n"
                  "  degree: {sparsity: 0.3, round_to: 4}\n"
                  "  process: {end_step: 8, update_frequency: 4}\n"
                  "- method: {kind: prune, granularity: '2:4'}\n"
                  "  object: {op_names: [fc2.weight]}\n"
                  "  degree: {sparsity: 0.5}\n"
                  "  process: {schedule: one_shot, start_step: 2}\n"),
      {"--steps", "12", "-o", out});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  models::ImportOptions options;
  options.batch = 1;
  const auto small = models::ImportOnnx(out, options);
  ASSERT_TRUE(small.ok()) << small.status();
  const models::Value& weight =
      small->graph.value(*small->graph.Find("fc2.weight"));
  ASSERT_EQ(weight.type.dims, (std::vector<int64_t>{128, 92}));
  const auto numbers = weight.initial->as<float>();
  for (size_t four = 0; four < numbers.size(); four += 4) {
    EXPECT_GE(std::count(numbers.begin() + four, numbers.begin() + four + 4, 0),
              2)
        << four;
  }
}

TEST(Recipe, PrunesBeforeTheFirstStep) {
  const std::string recipe =
      WriteRecipe(TestFolder("recipe_one_shot"),
                  "- method: {kind: prune, criterion: l1}\n"
                  "  degree: {sparsity: 0.75}\n"
                  "  process: {schedule: one_shot}\n");
  const CommandResult run = RunMlpUnder(recipe, {"--steps", "5"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  ASSERT_EQ(run.json()["phases"].size(), 1u);
  EXPECT_LT(run.json()["phases"][0]["parameters"].get<double>(),
            0.4 * run.json()["before"]["parameters"].get<double>());
}

// A share is one of the first phase that trains, which is pruned already.
TEST(Recipe, ResumesWithinTheBudgetOfItsFirstPhase) {
  const std::string folder = TestFolder("recipe_budget");
  const std::string recipe = WriteRecipe(folder,
                                         "- method: {kind: prune}\n"
                                         "  degree: {sparsity: 0.75}\n"
                                         "  process: {schedule: one_shot}\n");
  const std::string checkpoint = folder + "/c.safetensors";
  const std::vector<std::string> flags = {
      "--steps",      "200",      "--budget",    "95%", "--no-recompute",
      "--checkpoint", checkpoint, "--log-every", "1"};
  const CommandResult part =
      RunMlpUnder(recipe, flags, {.interrupt_when = " 9/200"});
  ASSERT_EQ(part.exit_code, 130) << part.err;
  std::vector<std::string> more = flags;
  more.push_back("--resume");
  const CommandResult rest = RunMlpUnder(recipe, more);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.json()["phases"][0]["budget_bytes"],
            part.json()["phases"][0]["budget_bytes"]);
}

TEST(Recipe, PlansForAGpuByItsName) {
  const std::string recipe = WriteRecipe(TestFolder("recipe_gpu"), kCubic);
  std::vector<std::string> args = {
      "plan", Zoo("mlp.onnx"), "--machine", "rtx-4090",      "--budget",
      "80%",  "--recipe",      recipe,      "--no-recompute"};
  const CommandResult plan = RunLoadline(args);
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out,
              HasSubstr("From step 17 on nothing is recomputed or copied."));
  args.push_back("--json");
  const auto phases = RunLoadline(args).json()["phases"];
  ASSERT_EQ(phases.size(), 2u);
  for (const auto& phase : phases) {
    EXPECT_GT(phase["peak_bytes"], 0);
    EXPECT_LE(phase["arena_bytes"], phase["budget_bytes"]);
  }
  EXPECT_LT(phases[1]["step_ns"], phases[0]["step_ns"]);
  EXPECT_LT(phases[1]["peak_bytes"], phases[0]["peak_bytes"]);
}

TEST(Recipe, SaysWhatIsWrong) {
  const std::string folder = TestFolder("recipe_wrong");
  std::string typo = kCubic;
  typo.replace(typo.find("sparsity"), 8, "sparsty");
  const CommandResult unknown =
      RunMlpUnder(WriteRecipe(folder, typo), {"--steps", "24"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("entry 'hidden': degree.sparsty: unknown key; did you "
                        "mean 'sparsity'?"));
  const CommandResult early =
      RunMlpUnder(WriteRecipe(folder, kCubic), {"--steps", "10"});
  EXPECT_EQ(early.exit_code, 2);
  EXPECT_THAT(early.err, HasSubstr("16 leaves none of the run's 10 steps"));
  // Of a later phase, before the first step.
  const CommandResult later =
      RunMlpUnder(WriteRecipe(folder,
                              "- method: {kind: prune}\n"
                              "  object: {op_names: [fc1]}\n"
                              "  degree: {sparsity: 0.5}\n"
                              "  process: {end_step: 9}\n"
                              "- method: {kind: prune, criterion: bn_scale}\n"
                              "  object: {op_names: [fc2]}\n"
                              "  degree: {sparsity: 0.5}\n"
                              "  process: {start_step: 18, end_step: 20}\n"),
                  {"--steps", "24", "--log-every", "1"});
  EXPECT_EQ(later.exit_code, 2);
  EXPECT_THAT(later.err, testing::Not(HasSubstr("step 1/24")));
  EXPECT_THAT(later.err, HasSubstr("entry 'entry2': method.criterion"));
  const CommandResult both =
      RunMlpUnder(WriteRecipe(folder, kCubic), {"--replan"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--replan and --recipe"));
}

}  // namespace
}  // namespace loadline
