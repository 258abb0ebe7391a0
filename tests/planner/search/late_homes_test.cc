// Homes that move while a schedule is made, on SmallProblem: w is read by
// forward and updated to w' at the end.
#include "planner/search/late_homes.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/schedule/simulate.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

constexpr int kW = 0, kX = 1, kNewW = 4;
constexpr Item kForwardRun{ItemKind::kRun, 0}, kGradRun{ItemKind::kRun, 1},
    kUpdateRun{ItemKind::kRun, 2}, kInW{ItemKind::kIn, kW},
    kOutNewW{ItemKind::kOut, kNewW};

TEST(LateHomes, CopyInBeforeTheFirstRead) {
  const Problem problem = SmallProblem();
  const SearchModel model = MakeSearchModel(problem);
  LateHomes homes(model, true);
  EXPECT_FALSE(homes.OnHost(kW));
  EXPECT_FALSE(homes.WasRead(kNewW));
  homes.NoteRead(kW, 0);
  homes.NoteRead(kW, 2);
  EXPECT_TRUE(homes.WasRead(kNewW));
  const std::vector<Item> items = {kForwardRun, kGradRun, kUpdateRun, kOutNewW};
  const std::vector<char> none(4, 0);
  EXPECT_EQ(homes.Finish(items, none, {}).items, items);
  homes.Move(kNewW);
  EXPECT_TRUE(homes.OnHost(kW));
  EXPECT_TRUE(homes.OnHost(kNewW));
  const Schedule moved = homes.Finish(items, none, {});
  EXPECT_EQ(moved.items, (std::vector<Item>{kInW, kForwardRun, kGradRun,
                                            kUpdateRun, kOutNewW}));
  EXPECT_TRUE(FindLifetimes(model, moved).valid);
  // A cancelled copy, and one that is still to be made.
  EXPECT_EQ(homes.Finish(items, {0, 0, 0, 1}, {kNewW}).items, moved.items);
}

TEST(LateHomes, MoveOnceAndOnlyWhereThatIsAllowed) {
  Problem problem = SmallProblem();
  const SearchModel model = MakeSearchModel(problem);
  EXPECT_FALSE(LateHomes(model, false).MayMove(kW));
  LateHomes homes(model, true);
  EXPECT_TRUE(homes.MayMove(kW));
  EXPECT_TRUE(homes.MayMove(kNewW));
  EXPECT_FALSE(homes.MayMove(kX));
  homes.Move(kW);
  EXPECT_FALSE(homes.MayMove(kNewW));
  problem.values[kW].offload = false;
  const SearchModel stays = MakeSearchModel(problem);
  EXPECT_FALSE(LateHomes(stays, true).MayMove(kW));
}

}  // namespace
}  // namespace loadline::planner
