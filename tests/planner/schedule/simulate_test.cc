// Lifetimes and live bytes by hand, and every rule that makes a schedule
// invalid.
#include "planner/schedule/simulate.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

// SmallProblem: node 0 makes y (2) from w (0) and x (1), node 1 makes g (3)
// from y, node 2 updates w to value 4. 100 bytes each; workspace of node 1: 10
// bytes, charged as 100.
constexpr Item kRunForward{ItemKind::kRun, 0}, kGrad{ItemKind::kRun, 1},
    kUpdate{ItemKind::kRun, 2}, kOutY{ItemKind::kOut, 2},
    kInY{ItemKind::kIn, 2}, kOutW{ItemKind::kOut, 0}, kInW{ItemKind::kIn, 0},
    kOutNewW{ItemKind::kOut, 4};

class FindLifetimesByHand : public testing::Test {
 protected:
  Lifetimes Of(const std::vector<Item>& items, char host_home = 0) const {
    return FindLifetimes(model_, {items, {host_home}});
  }

  const Problem problem_ = SmallProblem();
  const SearchModel model_ = MakeSearchModel(problem_);
};

TEST_F(FindLifetimesByHand, LiveBytesOfTheGivenOrder) {
  const Lifetimes lives = Of({kRunForward, kGrad, kUpdate});
  ASSERT_TRUE(lives.valid);
  // w x y; w y g and workspace; w' in the place of w, y, g.
  EXPECT_EQ(lives.live_bytes, (std::vector<int64_t>{300, 400, 300}));
  EXPECT_EQ(lives.peak_bytes, 400);
  EXPECT_EQ(lives.raw_peak_bytes, 310);
}

TEST_F(FindLifetimesByHand, ACopiedValueIsAbsentBetweenItsCopies) {
  const Lifetimes lives = Of({kRunForward, kOutY, kInY, kGrad, kUpdate});
  ASSERT_TRUE(lives.valid);
  // The source lives to its Out, the target from its In.
  EXPECT_EQ(lives.live_bytes, (std::vector<int64_t>{300, 200, 200, 400, 300}));
  ASSERT_EQ(lives.reads[1].size(), 1u);
  const Instance& source = lives.instances[lives.reads[1][0]];
  EXPECT_EQ(source.value, 2);
  EXPECT_EQ(source.upper, 2);
  const Instance& target = lives.instances[lives.makes[2][0]];
  EXPECT_EQ(target.lower, 2);
  EXPECT_TRUE(target.last);
  EXPECT_EQ(target.upper, 5);
}

TEST_F(FindLifetimesByHand, AHostHomeIsCopiedInBeforeAndOutAfter) {
  EXPECT_TRUE(Of({kInW, kRunForward, kGrad, kUpdate, kOutNewW}, 1).valid);
  EXPECT_FALSE(Of({kRunForward, kGrad, kUpdate, kOutNewW}, 1).valid);
  EXPECT_FALSE(Of({kInW, kRunForward, kGrad, kUpdate}, 1).valid);
  EXPECT_FALSE(
      Of({kInW, kOutW, kRunForward, kGrad, kUpdate, kOutNewW}, 1).valid);
}

TEST_F(FindLifetimesByHand, EveryBrokenRuleMakesTheScheduleInvalid) {
  const std::vector<std::vector<Item>> invalid = {
      {kRunForward, kGrad},                    // the update is missing
      {kRunForward, kUpdate, kGrad},           // g is read before it is made
      {kRunForward, kGrad, kUpdate, kUpdate},  // an update runs once
      {kRunForward, kGrad, kUpdate, kRunForward},   // reads w after its update
      {kRunForward, kInY, kGrad, kUpdate},          // y is not on the host
      {kRunForward, kOutY, kOutY, kGrad, kUpdate},  // a second Out
      {kRunForward, kOutW, kInW, kInW, kGrad,
       kUpdate},                                   // an In that nobody reads
      {kRunForward, kOutW, kGrad, kUpdate, kInW},  // brings back an old version
  };
  for (size_t i = 0; i < invalid.size(); ++i) {
    EXPECT_FALSE(Of(invalid[i]).valid) << "schedule " << i;
  }
  EXPECT_TRUE(Of({kRunForward, kRunForward, kGrad, kUpdate}).valid);
}

}  // namespace
}  // namespace loadline::planner
