// A model whose file goes or changes while it is trained loses no run, and is
// not mixed with another model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/recipe_runs.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string BytesOfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Its lines of progress fill the pipe to the test many times, so the run cannot
// end before the test has changed the model.
std::vector<std::string> TrainingOf(const std::string& folder,
                                    const std::vector<std::string>& more) {
  std::vector<std::string> args = {"run",
                                   folder + "/m.onnx",
                                   "--data",
                                   Zoo("digits-train.npz"),
                                   "--steps",
                                   "2500",
                                   "--log-every",
                                   "1",
                                   "--no-calibrate",
                                   "-o",
                                   folder + "/out.onnx"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Runs with the change after the first steps; then goes on from the checkpoint
// with the model as it was.
void ExpectRescue(const std::string& name, const std::vector<std::string>& more,
                  const std::function<void(const std::string&)>& change,
                  const std::string& says) {
  const std::string folder = TestFolder(name);
  const std::string model = folder + "/m.onnx";
  const std::string out = folder + "/out.onnx";
  fs::copy_file(Zoo("mlp.onnx"), model);
  ASSERT_EQ(RunLoadline(TrainingOf(folder, more)).exit_code, 0);
  const std::string expected = BytesOfFile(out);
  fs::remove(out);
  const CommandResult result = RunLoadline(
      TrainingOf(folder, more),
      {.interrupt_when = "step 100/", .then = [&] { change(model); }});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr(says));
  EXPECT_FALSE(fs::exists(out)) << "trained weights in another model";
  const std::string kept = out + ".checkpoint.safetensors";
  EXPECT_THAT(result.err, HasSubstr("the run is kept in " + kept));

  fs::copy_file(Zoo("mlp.onnx"), model, fs::copy_options::overwrite_existing);
  std::vector<std::string> again = more;
  again.insert(again.end(), {"--checkpoint", kept, "--resume"});
  const CommandResult resumed = RunLoadline(TrainingOf(folder, again));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(BytesOfFile(out), expected);
}

void Remove(const std::string& model) { fs::remove(model); }

// Another model with tensors of the same names and shapes.
void WriteOther(const std::string& model) {
  std::string bytes = BytesOfFile(model);
  for (size_t at; (at = bytes.find("\"\x04Relu")) != std::string::npos;) {
    bytes.replace(at + 2, 4, "Tanh");
  }
  std::ofstream(model, std::ios::binary) << bytes;
}

TEST(Rescue, KeepsARunWhoseModelIsGone) {
  ExpectRescue("rescue_gone", {}, Remove,
               "m.onnx: the file is gone since the run began");
}

TEST(Rescue, KeepsARunWhoseModelChanges) {
  ExpectRescue("rescue_changed", {}, WriteOther,
               "m.onnx: the file has changed since the run began");
}

TEST(Rescue, KeepsARunThatPlansTwiceOrEvaluates) {
  ExpectRescue("rescue_replan", {"--replan"}, Remove, "is gone");
  ExpectRescue("rescue_evaluates",
               {"--eval-data", Zoo("digits-test.npz"), "--eval-every", "2000"},
               Remove, "is gone");
}

// Each phase reads the model. Step 100 is in the first of two.
TEST(Rescue, KeepsARunOfARecipe) {
  for (const char* end_step : {"5", "2000"}) {
    const std::string recipe = WriteRecipe(TestFolder("rescue_recipes"),
                                           absl::StrCat(R"(compression:
- name: half
  method: {kind: prune, criterion: l2}
  degree: {sparsity: 0.5}
  process: {start_step: 1, end_step: )",
                                                        end_step, "}\n"));
    ExpectRescue("rescue_recipe", {"--recipe", recipe}, WriteOther,
                 "has changed");
  }
}

TEST(Rescue, KeepsARunOfARecipeThatEvaluatesAtItsEnd) {
  const std::string recipe = WriteRecipe(TestFolder("rescue_recipes"),
                                         R"(compression:
- name: half
  method: {kind: prune, criterion: l2}
  degree: {sparsity: 0.5}
  process: {start_step: 1, end_step: 5}
)");
  ExpectRescue("rescue_recipe_eval",
               {"--recipe", recipe, "--eval-data", Zoo("digits-test.npz"),
                "--eval-every", "2500"},
               Remove, "is gone");
}

TEST(Rescue, ReplacesNoCheckpointOfAnEarlierRun) {
  const std::string folder = TestFolder("rescue_twice");
  const std::string model = folder + "/m.onnx";
  const std::string earlier = folder + "/out.onnx.checkpoint.safetensors";
  fs::copy_file(Zoo("mlp.onnx"), model);
  std::ofstream(earlier) << "earlier";
  const CommandResult result = RunLoadline(
      TrainingOf(folder, {}),
      {.interrupt_when = "step 100/", .then = [&] { Remove(model); }});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the run is kept in " + folder +
                                    "/out.onnx.2.checkpoint.safetensors"));
  EXPECT_EQ(BytesOfFile(earlier), "earlier");
}

TEST(Rescue, IsNotNeededForAModelWithTheSameContents) {
  const std::string folder = TestFolder("rescue_touched");
  const std::string model = folder + "/m.onnx";
  fs::copy_file(Zoo("mlp.onnx"), model);
  const CommandResult result =
      RunLoadline(TrainingOf(folder, {}),
                  {.interrupt_when = "step 100/", .then = [&] {
                     fs::copy_file(Zoo("mlp.onnx"), model,
                                   fs::copy_options::overwrite_existing);
                   }});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(folder + "/out.onnx"));
}

}  // namespace
}  // namespace loadline
