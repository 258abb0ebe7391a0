// A run that plans again ends with the same bits as one that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

CommandResult RunNineSteps(std::vector<std::string> more) {
  std::vector<std::string> args = {
      "run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"), "--steps",
      "9",   "--budget",      "70%",    "--no-recompute",        "--seed",
      "3"};
  args.insert(args.end(), more.begin(), more.end());
  return RunLoadline(args);
}

TEST(Replan, ChangesNoBitAndReportsBothPlans) {
  const CommandResult plain = RunNineSteps({"--json"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_FALSE(plain.json().contains("replan"));
  const CommandResult again =
      RunNineSteps({"--replan", "--stress", "1", "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto result = again.json();
  EXPECT_EQ(result["losses"], plain.json()["losses"]);
  EXPECT_EQ(result["weights_sha256"], plain.json()["weights_sha256"]);
  EXPECT_EQ(result["replan"]["steps"], 5);
  EXPECT_GT(result["replan"]["step_ns"].get<int64_t>(), 0);
  EXPECT_LE(result["predicted_step_ns"].get<int64_t>(),
            result["replan"]["repriced_step_ns"].get<int64_t>());
  EXPECT_EQ(result["measured_arena_bytes"], result["arena_bytes"]);
}

TEST(Replan, SaysWhatBothPlansWerePredictedAndMeasured) {
  const CommandResult run = RunNineSteps({"--replan", "--replan-after", "3"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("first 3 steps"));
  EXPECT_THAT(run.out, HasSubstr("Planned again with the times of 3 steps"));
}

TEST(Replan, GoesOnFromACheckpointAndEndsWhereNothingIsLeft) {
  const std::string checkpoint = TestFolder("replan") + "/c.safetensors";
  const CommandResult plain = RunNineSteps({"--json"});
  ASSERT_EQ(
      RunNineSteps({"--steps", "4", "--checkpoint", checkpoint}).exit_code, 0);
  const CommandResult rest =
      RunNineSteps({"--checkpoint", checkpoint, "--resume", "--replan",
                    "--replan-after", "2", "--json"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.json()["first_step"], 4);
  EXPECT_EQ(rest.json()["losses"].size(), 5u);
  EXPECT_EQ(rest.json()["weights_sha256"], plain.json()["weights_sha256"]);
  const CommandResult done = RunNineSteps(
      {"--checkpoint", checkpoint, "--resume", "--replan", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_FALSE(done.json().contains("replan"));
  EXPECT_EQ(done.json()["weights_sha256"], plain.json()["weights_sha256"]);
}

TEST(Replan, GoesWithNoPlanOfOnesOwn) {
  const CommandResult run = RunNineSteps({"--replan", "--plan", "p.json"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--replan and --plan"));
}

}  // namespace
}  // namespace loadline
