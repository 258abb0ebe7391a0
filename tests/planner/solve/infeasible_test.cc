// Facts about a budget that cannot be met, as a status and back.
#include "planner/solve/infeasible.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Problem SixValues() {
  Problem problem;
  for (int v = 0; v < 6; ++v) {
    problem.values.push_back(
        {.file_id = v, .name = std::string(1, 'a' + v), .bytes = 1 << v});
  }
  problem.nodes.push_back({.name = "conv1"});
  return problem;
}

Infeasibility Facts() {
  return {.budget_bytes = 1000,
          .smallest_met_bytes = 2048,
          .proven_bound_bytes = 1500,
          .tightest_node = NodeId{0},
          .tightest_values = {ValueId{5}, ValueId{4}, ValueId{3}, ValueId{2},
                              ValueId{1}, ValueId{0}}};
}

TEST(InfeasibleError, CarriesItsFacts) {
  const absl::Status status = InfeasibleError(SixValues(), Facts());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::optional<Infeasibility> facts = InfeasibilityOf(status);
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->budget_bytes, 1000);
  EXPECT_EQ(facts->smallest_met_bytes, 2048);
  EXPECT_EQ(facts->proven_bound_bytes, 1500);
  EXPECT_EQ(facts->tightest_node, NodeId{0});
  EXPECT_EQ(facts->tightest_values, Facts().tightest_values);
}

TEST(InfeasibleError, IsASentenceOfNumbersAndNames) {
  const std::string text(InfeasibleError(SixValues(), Facts()).message());
  EXPECT_EQ(text,
            "no plan within 1000 bytes (1000 B); the smallest budget met is "
            "2048 bytes (2.00 KiB); proven: no plan needs fewer than 1500 "
            "bytes (1.46 KiB), tightest at node conv1, which needs f (32 B), e "
            "(16 B), d (8 B), c (4 B), 2 more");
}

TEST(InfeasibleError, SaysWhereNothingWasMet) {
  Infeasibility facts = Facts();
  facts.smallest_met_bytes = 0;
  facts.tightest_node = NodeId{-1};
  facts.tightest_values.resize(2);
  const std::string text(InfeasibleError(SixValues(), facts).message());
  EXPECT_THAT(text, HasSubstr("no plan was found at any budget"));
  EXPECT_THAT(text, HasSubstr("tightest at the start or end of the step"));
  EXPECT_THAT(text, Not(HasSubstr("more")));
}

TEST(InfeasibilityOf, IsNoneOfOtherStatuses) {
  EXPECT_FALSE(InfeasibilityOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(
      InfeasibilityOf(absl::ResourceExhaustedError("no memory")).has_value());
}

}  // namespace
}  // namespace loadline::planner
