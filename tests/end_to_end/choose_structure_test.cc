// `--split auto` and `--micro-batches auto` through the command.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

std::vector<std::string> Plan(const std::vector<std::string>& more) {
  std::vector<std::string> args = {
      "plan", Zoo("gpt.onnx"), "--batch", "8", "--machine", "l4", "--json"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// What the step in one piece needs most bytes for is what segments divide.
TEST(ChooseStructure, SlowFindsAPlanWhereTheWholeStepHasNone) {
  const CommandResult smallest =
      RunLoadline(Plan({"--budget", "smallest", "--no-split"}));
  ASSERT_EQ(smallest.exit_code, 0) << smallest.err;
  const nlohmann::json least = smallest.json();
  const int64_t percent = least["arena_bytes"].get<int64_t>() * 60 /
                          least["keep_everything_peak_bytes"].get<int64_t>();
  const std::string budget = std::to_string(percent) + "%";
  const CommandResult whole =
      RunLoadline(Plan({"--budget", budget, "--no-split", "--split", "auto"}));
  EXPECT_EQ(whole.exit_code, 3) << whole.err;
  const CommandResult chosen =
      RunLoadline(Plan({"--budget", budget, "--micro-batches", "auto"}));
  ASSERT_EQ(chosen.exit_code, 0) << budget << ": " << chosen.err;
  const nlohmann::json found = chosen.json();
  EXPECT_LE(found["arena_bytes"].get<int64_t>(),
            found["budget_bytes"].get<int64_t>());
  EXPECT_TRUE(found["micro_batches"] != 1 || found.contains("splits"));
  EXPECT_GT(found["structures"].size(), 1u);
}

TEST(ChooseStructure, SlowIsNotSlowerThanTheWholeStep) {
  const std::string budget = "40%";
  const CommandResult whole =
      RunLoadline(Plan({"--budget", budget, "--no-split"}));
  const CommandResult chosen =
      RunLoadline(Plan({"--budget", budget, "--split", "auto"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_LE(chosen.json()["predicted_step_ns"].get<int64_t>(),
            whole.json()["predicted_step_ns"].get<int64_t>());
}

}  // namespace
}  // namespace loadline
