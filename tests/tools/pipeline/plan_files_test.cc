// Every error names its file.
#include "tools/pipeline/plan_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/planner/support/small_plan.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "plan_files_" + name;
  EXPECT_TRUE(WriteFile(path, text).ok());
  return path;
}

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(PlanFiles, ReadBackWhatWasWritten) {
  const planner::Problem problem = planner::SmallProblem();
  const planner::Plan plan = planner::SmallPlan(problem);
  const auto read_problem =
      ReadProblemFile(Written("problem.json", planner::ProblemToJson(problem)));
  ASSERT_TRUE(read_problem.ok()) << read_problem.status();
  EXPECT_EQ(planner::ProblemToJson(*read_problem),
            planner::ProblemToJson(problem));
  const auto read_plan = ReadPlanFile(
      Written("plan.json", planner::PlanToJson(plan, problem)), *read_problem);
  ASSERT_TRUE(read_plan.ok()) << read_plan.status();
  EXPECT_EQ(planner::PlanToJson(*read_plan, *read_problem),
            planner::PlanToJson(plan, problem));
}

TEST(PlanFiles, NameTheFileThatDoesNotRead) {
  const planner::Problem problem = planner::SmallProblem();
  const std::string bad = Written("bad.json", "{\"format\": 1");
  for (const absl::Status& status :
       {ReadProblemFile(bad).status(), ReadPlanFile(bad, problem).status(),
        ReadMachineFile(bad).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(status), StartsWith(bad + ": "));
  }
  const std::string missing = testing::TempDir() + "plan_files_missing.json";
  EXPECT_THAT(Message(ReadProblemFile(missing).status()), HasSubstr(missing));
}

TEST(VerifyPlanFile, NamesTheFileOfAPlanThatIsNotValid) {
  const planner::Problem problem = planner::SmallProblem();
  planner::Plan plan = planner::SmallPlan(problem);
  EXPECT_TRUE(VerifyPlanFile("p.json", problem, plan).ok());
  plan.arena_bytes -= problem.alignment_bytes;
  const absl::Status status = VerifyPlanFile("p.json", problem, plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), StartsWith("p.json: not valid: "));
}

}  // namespace
}  // namespace loadline::tools
