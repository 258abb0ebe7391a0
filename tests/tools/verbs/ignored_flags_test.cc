// A flag that the run would ignore is an error that says what it needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"
#include "tests/tools/support/model_flags.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& verb,
                    const std::vector<std::string>& more) {
  std::vector<std::string> args = {verb, ZooPath("mlp.onnx"), "--machine",
                                   FixedMachinePath()};
  args.insert(args.end(), more.begin(), more.end());
  const CommandOutput output = RunInProcess(args);
  EXPECT_EQ(output.exit_code, 2) << absl::StrJoin(more, " ") << output.err;
  return output.err;
}

std::string RunError(std::vector<std::string> more) {
  more.insert(more.begin(), {"--data", ZooPath("digits-train.npz"), "--steps",
                             "1", "--no-calibrate"});
  return ErrorOf("run", more);
}

TEST(IgnoredFlags, OfRunNameTheFlagThatTheyNeed) {
  EXPECT_THAT(RunError({"--replan-after", "3"}),
              HasSubstr("--replan-after: needs --replan"));
  EXPECT_THAT(RunError({"--problem", "p.json"}),
              HasSubstr("--problem: needs --plan FILE"));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--checkpoint-every", "5"},
        {"--overwrite"},
        {"--resume"}}) {
    EXPECT_THAT(RunError(more), HasSubstr(more[0] + ": needs --checkpoint"));
  }
  EXPECT_THAT(RunError({"--decay-factor", "0.1"}),
              HasSubstr("--decay-factor: needs --schedule step"));
  EXPECT_THAT(RunError({"--decay-factor", "0.5", "--schedule", "linear"}),
              HasSubstr("--decay-factor: needs --schedule step"));
}

TEST(IgnoredFlags, OfTheStepNameTheFlagThatTheyNeed) {
  EXPECT_THAT(ErrorOf("pose", {"--huber-delta", "1"}),
              HasSubstr("--huber-delta: needs --loss huber"));
  EXPECT_THAT(ErrorOf("pose", {"--loss", "mse", "--class-axis", "1"}),
              HasSubstr("--class-axis: needs --loss cross_entropy"));
  EXPECT_THAT(ErrorOf("estimate", {"--allow-micro-batch-statistics"}),
              HasSubstr("--allow-micro-batch-statistics: needs "
                        "--micro-batches of 2 or more"));
  EXPECT_THAT(ErrorOf("pose", {"--optimizer", "sgd", "--momentum", "0",
                               "--optimizer-bits", "8"}),
              HasSubstr("8-bit optimizer states: SGD without a momentum"));
}

TEST(IgnoredFlags, BatchBesideAnotherSizeOfTheSameAxis) {
  EXPECT_THAT(ErrorOf("pose", {"--batch", "8", "--dim", "batch=16"}),
              HasSubstr("--batch 8: --dim batch=16 is the first axis"));
  EXPECT_THAT(
      ErrorOf("pose", {"--batch", "8", "--input-shape", "image=16x1x8x8"}),
      HasSubstr("--batch 8: --input-shape makes the first axis of 'image' 16"));
  EXPECT_THAT(ErrorOf("eval", {"--data", ZooPath("digits-test.npz"), "--batch",
                               "8", "--dim", "batch=16"}),
              HasSubstr("--batch 8: --dim batch=16"));
  // They agree, and the next error is another.
  EXPECT_THAT(
      ErrorOf("pose", {"--batch", "8", "--dim", "batch=8", "--input-shape",
                       "image=8x1x8x8", "--freeze", "*"}),
      HasSubstr("nothing to train"));
}

// Also those of the last batch, which is smaller.
TEST(Eval, CountsEveryExampleWhicheverFlagGivesTheBatch) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--batch", "16"},
        {"--dim", "batch=16"},
        {"--input-shape", "image=16x1x8x8"}}) {
    std::vector<std::string> args = {"eval", ZooPath("mlp.onnx"), "--data",
                                     ZooPath("digits-test.npz"), "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const CommandOutput output = RunInProcess(args);
    ASSERT_EQ(output.exit_code, 0) << output.err;
    EXPECT_EQ(nlohmann::json::parse(output.out)["examples"], 360) << more[0];
  }
}

TEST(IgnoredFlags, NumbersBeyondTheirType) {
  for (const char* flag : {"--seed", "--plan-seed", "--stress"}) {
    const std::string error = RunError({flag, "18446744073709551616"});
    EXPECT_THAT(error, HasSubstr(flag));
    EXPECT_THAT(error, HasSubstr("from 0 to 18446744073709551615"));
  }
  EXPECT_THAT(RunError({"--batch", "9223372036854775808"}),
              HasSubstr("at most 9223372036854775807"));
  EXPECT_THAT(RunError({"--epochs", "9223372036854775808"}),
              HasSubstr("at most 9223372036854775807"));
  // Of a flag that takes any number.
  EXPECT_THAT(RunError({"--lr", "99999999999999999999", "--resume"}),
              HasSubstr("--resume"));
}

TEST(IgnoredFlags, ClipNormOfZeroClipsNothing) {
  EXPECT_THAT(RunError({"--clip-norm", "0"}),
              HasSubstr("--clip-norm: must be a number above 0"));
}

TEST(IgnoredFlags, FieldsThatAFileGivesTwice) {
  const std::string folder = FreshFolder();
  std::ofstream(folder + "/s.yaml") << "lr: 0.1\nsteps: 3\nlr: 0.2\n";
  EXPECT_THAT(RunError({"--config", folder + "/s.yaml"}),
              HasSubstr("/s.yaml:3: lr: given twice, first in line 1"));
  std::ofstream(folder + "/r.yaml")
      << "compression: []\ncompression:\n- name: a\n";
  EXPECT_THAT(RunError({"--recipe", folder + "/r.yaml"}),
              HasSubstr("/r.yaml:2: compression: given twice"));
}

}  // namespace
}  // namespace loadline::tools
