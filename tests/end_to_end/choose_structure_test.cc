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
