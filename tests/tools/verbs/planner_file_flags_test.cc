// A flag that a problem or plan file does not read is refused by name.
#include "tools/pipeline/planner_file_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/in_process.h"

namespace loadline::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kProblem[] = "tests/tools/mlp_problem.json";

CommandOutput RunVerb(const std::string& verb, const std::string& file,
                      const std::vector<std::string>& more) {
  std::vector<std::string> args = {verb, file};
  args.insert(args.end(), more.begin(), more.end());
  return RunInProcess(args);
}

// The flags that a problem takes; every other one is refused.
const std::set<std::string>& Read() {
  static const auto& read = *new std::set<std::string>{
      "--device",     "--budget",   "--no-recompute",
      "--no-offload", "--no-stash", "--max-gradient-error",
      "--time-limit", "--threads",  "--plan-seed"};
  return read;
}

TEST(PlannerFileFlags, EveryOtherOneIsRefusedForAProblem) {
  StepFlags flags;
  CLI::App app;
  AddPlannedStepFlags(&app, &flags);
  const planner::Problem problem;
  int refused = 0;
  for (const CLI::Option* option : app.get_options({})) {
    if (option->get_positional() || option->get_name() == "--help") continue;
    flags.given = {option->get_name()};
    const absl::Status status = CheckForProblemFile(flags, problem);
    EXPECT_EQ(status.ok(), Read().count(option->get_name()) > 0) << status;
    if (status.ok()) continue;
    EXPECT_THAT(std::string(status.message()), HasSubstr(option->get_name()));
    ++refused;
  }
  EXPECT_GT(refused, 30);
}

TEST(PlannerFileFlags, GivenOnTheCommandLineOrInAFileAreNamed) {
  for (const std::string verb : {"plan", "report", "estimate"}) {
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--machine", "tests/tools/machine.json"},
          {"--batch", "8"},
          {"--optimizer", "adamw"},
          {"--freeze", "fc1.*"},
          {"--emulate-device"},
          {"--no-dropout"},
          {"--no-calibrate"},
          {"--micro-batches", "1"},
          {"--split", "head=2"}}) {
      const CommandOutput output = RunVerb(verb, kProblem, more);
      const std::string name =
          more[0] == "--no-calibrate" ? "--calibrate" : more[0];
      EXPECT_EQ(output.exit_code, 2) << verb << name;
      EXPECT_THAT(output.err, AllOf(HasSubstr(name + ": "),
                                    HasSubstr("is a problem file")));
    }
  }
  const CommandOutput both = RunVerb(
      "plan", kProblem, {"--clip-norm", "1", "--budget", "90%", "--lr", "1"});
  EXPECT_THAT(both.err, HasSubstr("--lr, --clip-norm: "));
}

TEST(PlannerFileFlags, ThatItsSearchReadsAreTaken) {
  const CommandOutput output =
      RunVerb("plan", kProblem,
              {"--budget", "100%", "--threads", "1", "--device", "cpu",
               "--no-offload", "--plan-seed", "1"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
}

TEST(PlannerFileFlags, OfferNoLossyCodecsToAProblemWithout) {
  const CommandOutput output =
      RunVerb("plan", kProblem, {"--max-gradient-error", "0.01"});
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("offers no lossy codecs"));
}

TEST(PlannerFileFlags, AreAllRefusedForAPlan) {
  const std::string plan = FreshFolder() + "/plan.json";
  ASSERT_EQ(RunVerb("plan", kProblem, {"-o", plan}).exit_code, 0);
  EXPECT_EQ(RunVerb("report", plan, {"--problem", kProblem}).exit_code, 0);
  const CommandOutput output =
      RunVerb("report", plan,
              {"--problem", kProblem, "--budget", "1KiB", "--no-recompute"});
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, AllOf(HasSubstr("--budget, --no-recompute: "),
                                HasSubstr("is a plan")));
}

TEST(PlannerFileFlags, StepsOfAPlanNeedARecipe) {
  const CommandOutput output = RunVerb("plan", kProblem, {"--steps", "8"});
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("--steps: needs --recipe"));
}

}  // namespace
}  // namespace loadline::tools
