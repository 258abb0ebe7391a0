// Bad input gives one clear line that names what and where, the right exit
// code, no partial files and no crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/end_to_end/run_command.h"
#include "tests/executor/support/sanitizers.h"
#include "tests/tools/support/environment.h"

namespace loadline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void Spill(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Checks the error line: the last line of ours on stderr.
void ExpectError(const CommandResult& result, int exit_code,
                 const std::string& what) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_THAT(result.err, HasSubstr(what));
  EXPECT_THAT(result.err, HasSubstr("loadline: "));
  EXPECT_EQ(result.out, "");
}

std::vector<std::string> RunMlp(std::vector<std::string> more) {
  std::vector<std::string> args = {"run",     Zoo("mlp.onnx"),
                                   "--data",  Zoo("digits-train.npz"),
                                   "--steps", "2"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// With less memory than measuring the machine takes. One thread: the stacks of
// others count, and OpenMP ends a process that cannot have them.
TEST(BadInput, TooLittleMemoryIsNoBugOfOurs) {
  if (SanitizersKeepMemory()) GTEST_SKIP() << "shadow memory is over the limit";
  const tools::ScopedEnvironment cache("LOADLINE_CACHE",
                                       TestFolder("memory").c_str());
  const tools::ScopedEnvironment threads("OMP_NUM_THREADS", "1");
  ExpectError(RunLoadline(RunMlp({}), {.data_bytes_limit = 64 << 20}), 2,
              "no more memory");
}

TEST(BadInput, UnknownVerbSuggestsTheNearest) {
  ExpectError(RunLoadline({"pla"}), 2, "did you mean 'plan'");
  ExpectError(RunLoadline({"train", "x"}), 2, "unknown verb 'train'");
}

TEST(BadInput, UnknownFlagIsNamed) {
  ExpectError(RunLoadline(RunMlp({"--bugdet", "50%"})), 2, "--bugdet");
}

TEST(BadInput, MissingFilesAreNamed) {
  ExpectError(RunLoadline({"run", "/no/model.onnx", "--data", "x.npz"}), 2,
              "/no/model.onnx");
  ExpectError(RunLoadline({"run", Zoo("mlp.onnx"), "--data", "/no/d.npz"}), 2,
              "/no/d.npz");
  ExpectError(RunLoadline({"verify", "/no/p.json", "/no/q.json"}), 2,
              "/no/p.json");
}

TEST(BadInput, BareBudgetGetsAHint) {
  ExpectError(RunLoadline(RunMlp({"--budget", "3"})), 2, "3GiB");
}

TEST(BadInput, BudgetBelowTheSmallestSaysWhatWouldFit) {
  const CommandResult result = RunLoadline(RunMlp({"--budget", "1KiB"}));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the smallest budget met is"));
  EXPECT_THAT(result.err, HasSubstr("no plan needs fewer than"));
  EXPECT_THAT(result.err, HasSubstr("fc2.weight"));
}

TEST(BadInput, BudgetBelowTheSmallestNamesWhatHelpsWhereItIsTightest) {
  // An update reads no activations.
  const std::vector<std::string> tight = {"plan", Zoo("mlp.onnx"), "--budget",
                                          "255KiB"};
  const CommandResult result = RunLoadline(tight);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("fewer bytes: --optimizer-bits 8, "
                                    "--optimizer sgd (less optimizer state), "
                                    "--freeze or --lora"));
  EXPECT_THAT(result.err, Not(HasSubstr("--precision")));
  for (const std::vector<std::string>& helps :
       {std::vector<std::string>{"--optimizer-bits", "8"},
        std::vector<std::string>{"--optimizer", "sgd"}}) {
    std::vector<std::string> args = tight;
    args.insert(args.end(), helps.begin(), helps.end());
    EXPECT_EQ(RunLoadline(args).exit_code, 0) << helps[0];
  }
  std::vector<std::string> kept = tight;
  kept.insert(kept.end(), {"--no-recompute", "--no-offload"});
  EXPECT_THAT(RunLoadline(kept).err,
              HasSubstr("fewer bytes: without --no-recompute, without "
                        "--no-offload, --optimizer-bits 8"));
}

TEST(BadInput, TruncatedModelIsRefusedAtEveryLength) {
  const std::string folder = TestFolder("truncated");
  const std::string whole = Slurp(Zoo("mlp.onnx"));
  ASSERT_GT(whole.size(), 1000u);
  for (size_t length : {size_t{0}, size_t{1}, size_t{100}, whole.size() / 2,
                        whole.size() - 1}) {
    const std::string path = folder + "/cut.onnx";
    Spill(path, whole.substr(0, length));
    ExpectError(RunLoadline({"inspect", path}), 2, "cut.onnx");
  }
}

// The array that is missing, not the loss that its target would not fit.
TEST(BadInput, DataOfAnotherModelNamesTheArrayThatIsMissing) {
  ExpectError(
      RunLoadline({"run", Zoo("gpt.onnx"), "--data", Zoo("digits-train.npz")}),
      2, "no array 'tokens'; it has: image, target");
  ExpectError(
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("text-train.npz")}), 2,
      "no array 'image'; it has: tokens, target");
}

TEST(BadInput, DataThatIsNoArchive) {
  const std::string path = TestFolder("not_npz") + "/data.npz";
  Spill(path, "this is no zip file");
  ExpectError(RunLoadline({"run", Zoo("mlp.onnx"), "--data", path}), 2,
              "data.npz");
}

TEST(BadInput, LossThatIsNoNumberStopsTheRun) {
  const std::string out = TestFolder("nan") + "/out.onnx";
  const CommandResult result = RunLoadline(
      {"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--steps",
       "50", "--optimizer", "sgd", "--lr", "1e30", "-o", out});
  ExpectError(result, 2, "step");
  EXPECT_FALSE(fs::exists(out));
}

TEST(BadInput, FullDiskLeavesNothingHalfWritten) {
  const std::string folder = TestFolder("full_disk");
  CommandOptions options;
  options.file_bytes_limit = 20'000;  // the model has 100,000
  const CommandResult result = RunLoadline(
      RunMlp({"-o", folder + "/out.onnx", "--checkpoint",
              folder + "/c.safetensors", "--checkpoint-every", "1"}),
      options);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr(folder));
  EXPECT_THAT(result.err, HasSubstr("no room for the trained model: it has "));
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(BadInput, FullDiskOfMetricsIsToldAtOnce) {
  const std::string folder = TestFolder("full_disk_of_metrics");
  CommandOptions options;
  options.file_bytes_limit = 20'000;  // a step has some 85
  const CommandResult result = RunLoadline(
      {"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--steps",
       "400", "--no-calibrate", "--metrics", folder + "/m.jsonl"},
      options);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("/m.jsonl: File too large; lines from "
                                    "step 2"));
  EXPECT_THAT(result.err, HasSubstr(" on are missing, and the run goes on"));
}

// A machine that is measured while its disk is full, or that can be measured
// better than before, trains without copies.
TEST(BadInput, NoRoomToMeasureTheHostStoreStopsNoRun) {
  const std::string folder = TestFolder("no_room_for_the_store");
  const tools::ScopedEnvironment cache("LOADLINE_CACHE", folder.c_str());
  CommandOptions options;
  options.file_bytes_limit = 250'000;  // the store is measured with 134 MB
  for (const char* mark : {"no host store", "little memory"}) {
    const CommandResult result =
        RunLoadline(RunMlp({"-o", folder + "/out.onnx"}), options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("no plan will copy to the disk: "));
    EXPECT_TRUE(fs::exists(folder + "/out.onnx"));
    const std::string kept = folder + "/machine-cpu.json.provisional";
    EXPECT_EQ(Slurp(kept), "no host store\n");
    Spill(kept, std::string(mark) + "\n");
  }
  const std::string kept = folder + "/machine-cpu.json.provisional";
  Spill(kept, "no host store\n");
  for (const char* budget : {"99%", ""}) {  // within the budget, and in full
    std::vector<std::string> args = RunMlp({"-o", folder + "/out.onnx"});
    if (*budget != 0) args.insert(args.end(), {"--budget", budget});
    const CommandResult result = RunLoadline(args);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("measuring anew"));
    if (*budget == 0) continue;
    EXPECT_EQ(Slurp(kept), "little memory\n");
  }
  EXPECT_FALSE(fs::exists(kept));
}

// What cannot be written costs nothing else.
TEST(BadInput, AFileThatCannotBeWrittenLeavesTheOthers) {
  const std::string folder = TestFolder("one_full");
  CommandOptions options;
  options.file_bytes_limit = 250'000;  // the checkpoint has 310,000
  const CommandResult result = RunLoadline(
      RunMlp({"-o", folder + "/out.onnx", "--checkpoint",
              folder + "/c.safetensors", "--checkpoint-every", "2"}),
      options);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("c.safetensors"));
  EXPECT_THAT(result.err, HasSubstr("the run goes on"));
  EXPECT_TRUE(fs::exists(folder + "/out.onnx"));
  EXPECT_FALSE(fs::exists(folder + "/c.safetensors"));
}

TEST(BadInput, UnwritableOutputIsFoundBeforeTraining) {
  const CommandResult result =
      RunLoadline(RunMlp({"-o", "/no/such/folder/out.onnx"}));
  ExpectError(result, 2, "/no/such/folder");
  EXPECT_THAT(result.err, testing::Not(HasSubstr("step 1")));
}

TEST(BadInput, CorruptCheckpointIsRefused) {
  const std::string folder = TestFolder("corrupt_checkpoint");
  const std::string path = folder + "/c.safetensors";
  Spill(path, "garbage that is no checkpoint");
  ExpectError(RunLoadline(RunMlp({"--checkpoint", path, "--resume"})), 2,
              "c.safetensors");
}

TEST(BadInput, WrongPlanIsRefusedByVerify) {
  const std::string folder = TestFolder("wrong_plan");
  const std::string problem = folder + "/problem.json";
  const std::string plan = folder + "/plan.json";
  ASSERT_EQ(RunLoadline({"plan", Zoo("mlp.onnx"), "--budget", "70%", "-o", plan,
                         "--problem", problem})
                .exit_code,
            0);
  EXPECT_EQ(RunLoadline({"verify", problem, plan}).exit_code, 0);
  ExpectError(RunLoadline({"report", plan}), 2,
              "plan.json is a plan; give the problem");
  ExpectError(RunLoadline({"verify", plan, problem}), 2,
              "plan.json is a plan; the problem that it is for comes first");
  nlohmann::ordered_json moved = nlohmann::ordered_json::parse(Slurp(plan));
  nlohmann::ordered_json& offset = moved["buffers"][0]["offset"];
  offset = offset.get<int64_t>() + 1;  // not aligned
  Spill(plan, moved.dump());
  ExpectError(RunLoadline({"verify", problem, plan}), 2, "not valid");
}

TEST(BadInput, ARunThatHasEndedSaysSo) {
  const std::string path = TestFolder("ended") + "/c.safetensors";
  const std::vector<std::string> args = {"--checkpoint", path, "--steps", "4"};
  ASSERT_EQ(RunLoadline(RunMlp(args)).exit_code, 0);
  std::vector<std::string> again = args;
  again.push_back("--resume");
  const auto result = RunLoadline(RunMlp(again));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("No step was trained: the run is at step 4"));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("-100.0 %")));
}

TEST(BadInput, ALastLearningRateAboveTheFirstIsRefused) {
  ExpectError(RunLoadline(RunMlp(
                  {"--schedule", "cosine", "--lr", "0.001", "--min-lr", "1"})),
              2, "--min-lr 1 is above --lr 0.001");
}

}  // namespace
}  // namespace loadline
