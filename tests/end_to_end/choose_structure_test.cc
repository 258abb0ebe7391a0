// `--split auto` and `--micro-batches auto` through the command.
#include <gtest/gtest.h>

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
TEST(ChooseStructure, FindsSegmentsWhereTheWholeStepHasNoPlan) {
  const CommandResult smallest =
      RunLoadline(Plan({"--budget", "smallest", "--no-split"}));
  ASSERT_EQ(smallest.exit_code, 0) << smallest.err;
  const auto bytes = smallest.json()["arena_bytes"].get<int64_t>() * 3 / 4;
  const std::string budget = std::to_string(bytes) + "B";
  EXPECT_EQ(
      RunLoadline(Plan({"--budget", budget, "--no-split", "--split", "auto"}))
          .exit_code,
      3);
  const CommandResult split =
      RunLoadline(Plan({"--budget", budget, "--split", "auto"}));
  ASSERT_EQ(split.exit_code, 0) << split.err;
  const nlohmann::json found = split.json();
  EXPECT_LE(found["arena_bytes"].get<int64_t>(), bytes);
  EXPECT_EQ(found["micro_batches"], 1);
  EXPECT_FALSE(found["splits"].empty());
  EXPECT_GT(found["structures"].size(), 1u);
}

TEST(ChooseStructure, IsNotSlowerThanTheWholeStep) {
  for (const char* budget : {"80%", "40%"}) {
    const CommandResult whole =
        RunLoadline(Plan({"--budget", budget, "--no-split"}));
    const CommandResult chosen =
        RunLoadline(Plan({"--budget", budget, "--micro-batches", "auto"}));
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
    EXPECT_LE(chosen.json()["predicted_step_ns"].get<int64_t>(),
              whole.json()["predicted_step_ns"].get<int64_t>())
        << budget;
  }
}

}  // namespace
}  // namespace loadline
