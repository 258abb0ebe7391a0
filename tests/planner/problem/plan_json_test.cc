// The reader and writer of plan files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/simple_plan.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;

TEST(PlanJson, ReadsBackWhatItWrites) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Problem problem = RandomProblem(seed, 40, seed % 2 == 0, true);
    const Plan plan = SimplePlan(problem, seed);
    const std::string text = PlanToJson(plan, problem);
    const auto again = PlanFromJson(text, problem);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(PlanToJson(*again, problem), text);
    EXPECT_EQ(Verify(problem, *again), absl::OkStatus());
  }
}

TEST(PlanJson, LeavesOffsetsOutWithoutAddresses) {
  Problem problem = SmallProblem();
  const std::string with = PlanToJson(SmallPlan(problem), problem);
  problem.addresses = false;
  const std::string without = PlanToJson(SmallPlan(problem), problem);
  EXPECT_THAT(without, testing::Not(HasSubstr("offset")));
  EXPECT_TRUE(PlanFromJson(without, problem).ok());
  EXPECT_THAT(std::string(PlanFromJson(with, problem).status().message()),
              HasSubstr("field \"offset\" is unknown"));
}

TEST(PlanJson, NamesTheFieldAndTheIdOfEveryError) {
  const Problem problem = SmallProblem();
  const std::string good = PlanToJson(SmallPlan(problem), problem);
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } cases[] = {
      {"plan/1", "plan/9", "field \"format\" must be"},
      {"\"budget_bytes\":600,", "", "field \"budget_bytes\" is missing"},
      {"\"stall_ns\"", "\"stalls\"", "plan.predicted: field \"stall_ns\""},
      {"\"sha256\"", "\"hash\"", "plan.problem: field \"sha256\" is missing"},
      {"{\"id\":5,\"value\":3", "{\"id\":5,\"value\":8",
       "buffers[5] (id 5): field \"value\" refers to id 8, which is nothing"},
      {"\"space\":\"host\"", "\"space\":\"disk\"",
       "buffers[3] (id 3): field \"space\" must be"},
      {"{\"id\":6,\"value\"", "{\"id\":5,\"value\"",
       "buffers[6] (id 5): field \"id\" was given"},
      {"\"lane\":\"h2d\"", "\"lane\":\"up\"",
       "steps[2] (id 2): field \"lane\" must be"},
      {"\"lane\":\"h2d\"", "\"lane\":\"compute\"",
       "steps[2] (id 2): field \"node\" is missing (or"},
      {"\"lane\":\"h2d\"", "\"lane\":\"h2d\",\"node\":1",
       "field \"node\" is unknown"},
      {"\"node\":1", "\"node\":7", "refers to id 7, which is nothing"},
      {"\"workspace\":6", "\"workspace\":60",
       "steps[3] (id 3): field \"workspace\" refers to id 60"},
      {"\"wait\":[1]", "\"wait\":[9]",
       "steps[2] (id 2): field \"wait\" refers to id 9, which is nothing"},
      {"\"wait\":[1]", "\"wait\":[1.0]", "field \"wait\" must be an integer"},
      {"\"sequence\":[0,1,2]", "\"sequence\":[0,1,5]",
       "plan: field \"sequence\" refers to id 5"},
      {"\"action\":\"offload\"", "\"action\":\"forget\"",
       "decisions[0]: field \"action\" must be"},
      {"\"why\"", "\"reason\"", "field \"why\" is missing"},
      {"\"bounds\"", "\"extra2\":1,\"bounds\"", "\"extra2\" is unknown"},
  };
  for (const auto& test : cases) {
    const std::string text = absl::StrReplaceAll(good, {{test.from, test.to}});
    ASSERT_NE(text, good) << test.from;
    const auto plan = PlanFromJson(text, problem);
    ASSERT_FALSE(plan.ok()) << test.from << " -> " << test.to;
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(test.message));
  }
}

TEST(PlanJson, RefusesEveryTruncation) {
  const Problem problem = SmallProblem();
  const std::string text = PlanToJson(SmallPlan(problem), problem);
  for (size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(PlanFromJson(text.substr(0, size), problem).ok()) << size;
  }
}

}  // namespace
}  // namespace loadline::planner
