// The main use: a model trains within a budget, can be stopped and resumed, and
// gives a valid model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// Half of this small model's peak is less than any plan needs: a single update
// needs 57 to 61 %, depending on the processor's workspaces.
TEST(Run, LearnsTheDigitsNearTheSmallestBudgetOfAll) {
  const std::string out = TestFolder("digits") + "/trained.onnx";
  const CommandResult run =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--batch", "32", "--epochs", "30", "--budget", "63%", "--lr",
                   "2e-3", "-o", out, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto result = run.json();
  EXPECT_LE(result["arena_bytes"].get<int64_t>(),
            result["budget_bytes"].get<int64_t>());
  EXPECT_EQ(result["measured_arena_bytes"], result["arena_bytes"]);
  const CommandResult eval =
      RunLoadline({"eval", out, "--data", Zoo("digits-test.npz"), "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(eval.json()["examples"], 360);
  EXPECT_GE(eval.json()["accuracy"].get<double>(), 0.97);
}

TEST(Run, SlowResNet18ReachesNinetySevenPercentUnderHalfOfItsBytes) {
  const std::string out = TestFolder("resnet") + "/trained.onnx";
  const CommandResult run = RunLoadline(
      {"run", Zoo("resnet18.onnx"), "--data", Zoo("digits-train.npz"),
       "--batch", "32", "--epochs", "4", "--budget", "50%", "--optimizer",
       "sgd", "--lr", "0.02", "-o", out, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const CommandResult eval =
      RunLoadline({"eval", out, "--data", Zoo("digits-test.npz"), "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_GE(eval.json()["accuracy"].get<double>(), 0.97);
}

TEST(Run, PrintsPredictedBesideMeasured) {
  const CommandResult run =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--steps", "5", "--budget", "63%"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("predicted"));
  EXPECT_THAT(run.out, HasSubstr("measured"));
}

TEST(Run, TracesWhatWasMeasuredAboveWhatWasPredicted) {
  const std::string trace = TestFolder("trace") + "/trace.json";
  const CommandResult run =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--steps", "2", "--trace", trace, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::ifstream file(trace);
  const auto events = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(events.is_discarded());
  std::map<int, double> end_us;
  for (const auto& event : events["traceEvents"]) {
    if (event["ph"] != "X") continue;
    double& end = end_us[event["pid"].get<int>()];
    end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  ASSERT_EQ(end_us.size(), 2u);
  EXPECT_GT(end_us[1], 0);
  EXPECT_NEAR(end_us[2] * 1e3, run.json()["predicted_step_ns"].get<double>(),
              2);
}

TEST(Run, ResumedIsBitIdenticalToNeverStopped) {
  const std::string folder = TestFolder("resume");
  const std::vector<std::string> base = {
      "run", Zoo("gpt.onnx"), "--data", Zoo("text-train.npz"), "--batch",
      "8",   "--json"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return RunLoadline(more);
  };
  const CommandResult whole = with({"--steps", "12"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::string checkpoint = folder + "/c.safetensors";
  const CommandResult first =
      with({"--steps", "5", "--checkpoint", checkpoint});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const CommandResult rest = with({"--steps", "12", "--checkpoint", checkpoint,
                                   "--resume", "--budget", "50%"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.json()["weights_sha256"], whole.json()["weights_sha256"]);
  // It did the rest only: starting again would give the same weights.
  const nlohmann::json resumed = rest.json();
  EXPECT_EQ(resumed["first_step"], 5);
  nlohmann::json losses = first.json()["losses"];
  for (const auto& loss : resumed["losses"]) losses.push_back(loss);
  EXPECT_EQ(losses, whole.json()["losses"]);
}

TEST(Run, ResumingWithOtherDataGivesAWarning) {
  const std::string checkpoint = TestFolder("data") + "/c.safetensors";
  const auto resume = [&](const std::string& data,
                          std::vector<std::string> more) {
    std::vector<std::string> args = {"run",     Zoo("mlp.onnx"), "--data",
                                     Zoo(data), "--checkpoint",  checkpoint,
                                     "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const CommandResult result = RunLoadline(args);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  };
  resume("digits-train.npz", {"--steps", "2"});
  EXPECT_THAT(resume("digits-train.npz", {"--steps", "3", "--resume"}),
              Not(HasSubstr("other data")));
  EXPECT_THAT(resume("digits-test.npz", {"--steps", "4", "--resume"}),
              HasSubstr("1437 examples, now 360"));
}

TEST(Run, InterruptFinishesTheStepSavesAndExits130) {
  const std::string folder = TestFolder("interrupt");
  const std::string checkpoint = folder + "/c.safetensors";
  CommandOptions options;
  options.interrupt_when = "step";
  const CommandResult run = RunLoadline(
      {"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--steps",
       "10000000", "--log-every", "1", "--checkpoint", checkpoint},
      options);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_TRUE(fs::exists(checkpoint));
  const CommandResult resumed =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--steps", "10000001", "--checkpoint", checkpoint,
                   "--resume", "--log-every", "1", "--json"},
                  options);
  EXPECT_EQ(resumed.exit_code, 130) << resumed.err;
  EXPECT_GT(resumed.json()["first_step"].get<int64_t>(), 0);
}

// The terminal is closed, or the connection to the machine ends.
TEST(Run, HangUpSavesAsAnInterruptDoes) {
  const std::string checkpoint = TestFolder("hang_up") + "/c.safetensors";
  const CommandResult run = RunLoadline(
      {"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--steps",
       "10000000", "--log-every", "1", "--checkpoint", checkpoint},
      {.interrupt_when = "step", .signal = SIGHUP});
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_TRUE(fs::exists(checkpoint));
}

// The machine's profile is read, or measured, after these.
TEST(Run, ChecksDataCheckpointAndStoreBeforeItMeasures) {
  const std::string folder = TestFolder("before_measuring");
  const std::string checkpoint = folder + "/c.safetensors";
  const std::vector<std::string> run = {
      "run", Zoo("mlp.onnx"), "--data",  Zoo("digits-train.npz"), "--steps",
      "1",   "--checkpoint",  checkpoint};
  ASSERT_EQ(RunLoadline(run).exit_code, 0);
  const auto error = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = run;
    args.insert(args.end(), {"--machine", folder + "/none.json"});
    args.insert(args.end(), more.begin(), more.end());
    return RunLoadline(args).err;
  };
  EXPECT_THAT(error({"--resume"}), HasSubstr("none.json"));
  EXPECT_THAT(error({"--resume", "--seed", "7"}),
              HasSubstr("its run had seed 0, this one has 7"));
  EXPECT_THAT(error({"--resume", "--optimizer", "sgd"}),
              HasSubstr("another model, batch or optimizer"));
  EXPECT_THAT(error({"--resume", "--clip-norm", "1"}), HasSubstr("clipping"));
  EXPECT_THAT(error({"--resume", "--batch", "16"}),
              HasSubstr("at a batch of 32, and this run has 16"));
  EXPECT_THAT(error({"--overwrite", "--batch", "100000"}),
              HasSubstr("less than one batch"));
  EXPECT_THAT(error({"--overwrite", "--host-store", folder + "/no/file"}),
              HasSubstr("host store " + folder + "/no/file"));
}

// As under nohup, or in the background of a script.
TEST(Run, SignalsThatTheCallerIgnoresAreIgnored) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const CommandResult run = RunLoadline(
        {"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--steps",
         "300", "--log-every", "1"},
        {.interrupt_when = "step", .signal = signal, .ignore_signals = true});
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
}

// Days of work, lost by recalling a command without --resume.
TEST(Run, KeepsACheckpointThatExistsUnlessToldToOverwriteIt) {
  const std::string checkpoint = TestFolder("keep") + "/c.safetensors";
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {
        "run", Zoo("mlp.onnx"), "--data",  Zoo("digits-train.npz"), "--steps",
        "2",   "--checkpoint",  checkpoint};
    args.insert(args.end(), more.begin(), more.end());
    return RunLoadline(args);
  };
  ASSERT_EQ(run({}).exit_code, 0);
  const auto written = fs::last_write_time(checkpoint);
  const CommandResult again = run({});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr(checkpoint + ": exists"));
  EXPECT_THAT(again.err, HasSubstr("--resume"));
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  EXPECT_EQ(fs::last_write_time(checkpoint), written);
  EXPECT_EQ(run({"--resume", "--overwrite"}).exit_code, 2);
  EXPECT_EQ(run({"--resume"}).exit_code, 0);
  EXPECT_EQ(run({"--overwrite"}).exit_code, 0);
  EXPECT_NE(fs::last_write_time(checkpoint), written);
}

// A file without a name, a named one, and the memory of an emulated device.
TEST(Run, EveryHostStoreGivesTheSameBits) {
  const std::string folder = TestFolder("host_store");
  const std::string store = folder + "/store";
  const std::vector<std::string> base = {"run",
                                         Zoo("gpt.onnx"),
                                         "--data",
                                         Zoo("text-train.npz"),
                                         "--batch",
                                         "8",
                                         "--steps",
                                         "3",
                                         "--budget",
                                         "50%",
                                         "--no-recompute",
                                         "--json"};
  std::string sha256;
  for (const std::vector<std::string>& flags : {std::vector<std::string>{},
                                                {"--host-store", store},
                                                {"--host-store", folder},
                                                {"--emulate-device"}}) {
    SCOPED_TRACE(testing::PrintToString(flags));
    std::vector<std::string> args = base;
    args.insert(args.end(), flags.begin(), flags.end());
    const CommandResult run = RunLoadline(args);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(run.json()["host_bytes"].get<int64_t>(), 0);
    if (sha256.empty()) sha256 = run.json()["weights_sha256"];
    EXPECT_EQ(run.json()["weights_sha256"], sha256);
    EXPECT_TRUE(fs::is_empty(folder));
  }
}

// With copies to memory, half of the budget would be taken elsewhere.
TEST(Run, OnlyAnEmulatedDeviceCopiesToMemoryBesideTheBudget) {
  const std::vector<std::string> base = {"run",
                                         Zoo("gpt12.onnx"),
                                         "--data",
                                         Zoo("text-train.npz"),
                                         "--batch",
                                         "32",
                                         "--steps",
                                         "2",
                                         "--budget",
                                         "50%",
                                         "--no-recompute",
                                         "--json"};
  const auto above_arena = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> args = base;
    args.insert(args.end(), flags.begin(), flags.end());
    EXPECT_EQ(RunLoadline(args).exit_code, 0);  // measures
    const CommandResult run = RunLoadline(args);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const nlohmann::json json = run.json();
    EXPECT_GT(json["host_bytes"].get<int64_t>(), int64_t{20} << 20);
    return json["measured_resident_bytes"].get<int64_t>() -
           json["resident_base_bytes"].get<int64_t>() -
           json["arena_bytes"].get<int64_t>();
  };
  EXPECT_LT(above_arena({}), int64_t{10} << 20);
  EXPECT_GT(above_arena({"--emulate-device"}), int64_t{20} << 20);
}

TEST(Plan, TwelveLayerGptFitsHalfOfItsBytes) {
  const CommandResult plan = RunLoadline(
      {"plan", Zoo("gpt12.onnx"), "--batch", "8", "--budget", "50%", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_LE(plan.json()["arena_bytes"].get<int64_t>(),
            plan.json()["budget_bytes"].get<int64_t>());
}

}  // namespace
}  // namespace loadline
