// Accesses against a plain sorted list, and the uses of every kind of item.
#include "planner/search/access_table.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

TEST(AccessTable, StaysSortedUnderRandomEdits) {
  const Problem problem = SmallProblem();
  const SearchModel model = MakeSearchModel(problem);
  AccessTable table(model);
  TestRandom random(1);
  std::vector<Access> plain;  // of value 2
  std::vector<int> free_slots;
  for (int slot = 0; slot < 40; ++slot) free_slots.push_back(slot);
  const auto take_slot = [&] {
    const auto at = free_slots.begin() +
                    random.In(0, static_cast<int64_t>(free_slots.size()) - 1);
    const int slot = *at;
    free_slots.erase(at);
    return slot;
  };
  int next_item = 0;
  for (int edit = 0; edit < 2000; ++edit) {
    const int kind = static_cast<int>(random.In(0, 2));
    if (plain.empty() || (kind == 0 && plain.size() < 30)) {
      const Access access = {take_slot(), next_item++,
                             static_cast<uint8_t>(random.In(0, 7))};
      table.Add(2, access);
      plain.push_back(access);
    } else {
      const size_t at = static_cast<size_t>(
          random.In(0, static_cast<int64_t>(plain.size()) - 1));
      free_slots.push_back(plain[at].slot);
      if (kind == 1) {
        plain[at].slot = take_slot();
        table.Move(2, plain[at].item, plain[at].slot);
      } else {
        table.Drop(2, plain[at].item);
        plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    std::sort(plain.begin(), plain.end(),
              [](const Access& a, const Access& b) { return a.slot < b.slot; });
    ASSERT_EQ(table.of(2).size(), plain.size());
    const int slot = static_cast<int>(random.In(0, 40));
    int maker = -1, out = -1, makes = 0, copies = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(table.of(2)[i].item, plain[i].item);
      ASSERT_EQ(table.of(2)[i].slot, plain[i].slot);
      ASSERT_EQ(table.of(2)[i].flags, plain[i].flags);
      if (plain[i].makes() && plain[i].slot < slot) maker = plain[i].item;
      makes += plain[i].makes();
      copies += (plain[i].flags & (kToHost | kFromHost)) != 0;
      if (out < 0 && (plain[i].flags & kToHost) != 0) out = plain[i].item;
    }
    ASSERT_EQ(table.MakerBefore(2, slot), maker);
    ASSERT_EQ(table.OutItem(2), out);
    ASSERT_EQ(table.makes(2), makes);
    ASSERT_EQ(table.copies(2), copies);
    ASSERT_TRUE(table.of(1).empty());
  }
}

TEST(AccessTable, UsesAreReadsThenMakesWithTheirFlags) {
  const Problem problem = SmallProblem();
  const SearchModel model = MakeSearchModel(problem);
  const AccessTable table(model);
  // Node 2 reads the weight 0 and the gradient 3, and updates 0 to 4 in place.
  const auto uses = table.UsesOf({ItemKind::kRun, 2});
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[0].value, 0);
  EXPECT_EQ(uses[0].flags, kUpdates | kTakesOver);
  EXPECT_EQ(uses[1].value, 3);
  EXPECT_EQ(uses[1].flags, 0);
  EXPECT_EQ(uses[2].value, 4);
  EXPECT_EQ(uses[2].flags, kMakes);
  ASSERT_EQ(table.UsesOf({ItemKind::kOut, 2}).size(), 1u);
  EXPECT_EQ(table.UsesOf({ItemKind::kOut, 2})[0].value, 2);
  EXPECT_EQ(table.UsesOf({ItemKind::kOut, 2})[0].flags, kToHost);
  EXPECT_EQ(table.UsesOf({ItemKind::kIn, 2})[0].flags, kMakes | kFromHost);
}

}  // namespace
}  // namespace loadline::planner
