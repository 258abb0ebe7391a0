// The sentence of every kind of decision, with the facts it states.
#include "planner/solve/explain.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;

class ExplainTest : public testing::Test {
 protected:
  Decision Of(const Schedule& schedule, int value) const {
    Decision found;
    for (const Decision& decision : Explain(model_, schedule)) {
      if (decision.value == ValueId{value}) found = decision;
    }
    return found;
  }
  Schedule With(std::vector<Item> items) const {
    Schedule schedule = GivenOrder(model_);
    schedule.items = std::move(items);
    return schedule;
  }
  static Item RunOf(int job) { return {ItemKind::kRun, job}; }

  // Aligned so that y, encoded, takes fewer bytes.
  static Problem FinelyAligned() {
    Problem problem = SmallProblem();
    problem.alignment_bytes = 50;
    return problem;
  }

  const Problem problem_ = FinelyAligned();
  const SearchModel model_ = MakeSearchModel(problem_, true, true);
};

TEST_F(ExplainTest, HasOneDecisionForEveryValueWithABuffer) {
  const std::vector<Decision> decisions = Explain(model_, GivenOrder(model_));
  ASSERT_EQ(decisions.size(), 5u);
  for (size_t v = 0; v < decisions.size(); ++v) {
    EXPECT_EQ(decisions[v].value, ValueId{static_cast<int32_t>(v)});
    EXPECT_EQ(decisions[v].action, Action::kKeep);
    EXPECT_FALSE(decisions[v].why.empty());
  }
  // Four buffers of 100 bytes while the gradient runs, and its workspace.
  EXPECT_THAT(Of(GivenOrder(model_), 2).why, HasSubstr("at the highest point"));
}

// y is copied out in 200 ns and back in 150 ns; the step waits for both.
TEST_F(ExplainTest, SaysWhatACopyFreesAndCosts) {
  const Decision decision = Of(With({RunOf(0),
                                     {ItemKind::kOut, 2},
                                     {ItemKind::kIn, 2},
                                     RunOf(1),
                                     RunOf(2)}),
                               2);
  EXPECT_EQ(decision.action, Action::kOffload);
  EXPECT_THAT(decision.why, HasSubstr("frees 100 B for "));
  EXPECT_THAT(decision.why, HasSubstr("350 ns of copies"));
  EXPECT_THAT(decision.why, HasSubstr("the step waits 350 ns for copies"));
}

TEST_F(ExplainTest, SaysWhatARerunFreesAndCosts) {
  const Decision decision =
      Of(With({RunOf(0), RunOf(0), RunOf(1), RunOf(2)}), 2);
  EXPECT_EQ(decision.action, Action::kRecompute);
  EXPECT_THAT(decision.why, HasSubstr("at the cost of 1.00 us of rerun"));
}

TEST_F(ExplainTest, SaysWhatACodecFreesAndCosts) {
  ASSERT_EQ(model_.codings[2].size(), 1u);
  const Coding& coding = model_.codings[2][0];
  const Decision decision = Of(With({RunOf(0), RunOf(coding.encode),
                                     RunOf(coding.decode), RunOf(1), RunOf(2)}),
                               2);
  EXPECT_EQ(decision.action, Action::kStash);
  EXPECT_THAT(decision.why, HasSubstr("is kept in 50 B instead of 100 B"));
  EXPECT_THAT(decision.why, HasSubstr("by codec half"));
}

}  // namespace
}  // namespace loadline::planner
