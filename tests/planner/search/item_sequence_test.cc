// The sequence against a plain map from slot to item, under random edits.
#include "planner/search/item_sequence.h"

#include <iterator>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

using Plain = std::map<int, int>;  // item by slot

void ExpectSame(const ItemSequence& sequence, const Plain& plain) {
  int before = -1;
  for (const auto& [slot, item] : plain) {
    ASSERT_EQ(sequence.item_at(slot), item);
    ASSERT_EQ(sequence.slot_of(item), slot);
    ASSERT_EQ(sequence.next(before), item);
    ASSERT_EQ(sequence.previous(item), before);
    before = item;
  }
  ASSERT_EQ(sequence.next(before), -1);
  ASSERT_EQ(sequence.previous(-1), before);
  ASSERT_EQ(sequence.size(), plain.size());
  for (int slot = 0; slot <= sequence.slot_count(); ++slot) {
    const auto at = plain.lower_bound(slot);
    ASSERT_EQ(sequence.ItemBefore(slot),
              at == plain.begin() ? -1 : std::prev(at)->second);
    const int gap = sequence.GapBefore(slot);
    ASSERT_EQ(gap < 0, slot == 0 || plain.contains(slot - 1)) << slot;
    if (gap >= 0) {
      ASSERT_EQ(sequence.item_at(gap), -1);
      ASSERT_EQ(sequence.ItemBefore(gap), sequence.ItemBefore(slot));
    }
  }
}

// The distance of an empty slot to the boundary before `slot`.
int Distance(int slot, int empty) {
  return empty < slot ? slot - 1 - empty : empty - slot;
}

TEST(ItemSequence, EqualsAPlainMapUnderRandomEdits) {
  const SearchTuning::Sequence tuning;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TestRandom random(seed);
    ItemSequence sequence(tuning);
    sequence.Reset(static_cast<size_t>(random.In(1, 12)));
    Plain plain;
    for (int edit = 0; edit < 100; ++edit) {
      const int slot =
          static_cast<int>(random.In(0, sequence.slot_count() - 1));
      const int item = sequence.item_at(slot);
      if (item >= 0) {
        sequence.Unlink(item);
        plain.erase(slot);
        EXPECT_FALSE(sequence.alive(item));
        sequence.Free(item);
        if (random.OneIn(3)) {
          // An undone removal gives the item its id and its slot back.
          sequence.Unfree(item, {ItemKind::kOut, edit});
          sequence.Link(item, slot);
          plain[slot] = item;
          EXPECT_EQ(sequence.item(item).id, edit);
        }
      } else {
        const int created = sequence.Create({ItemKind::kRun, edit});
        sequence.Link(created, slot);
        plain[slot] = created;
        EXPECT_TRUE(sequence.alive(created));
        EXPECT_EQ(sequence.item(created).id, edit);
      }
      ASSERT_NO_FATAL_FAILURE(ExpectSame(sequence, plain));
    }
  }
}

TEST(ItemSequence, NearestEmptySlotIsTheNearestWithinTheLimit) {
  SearchTuning::Sequence tuning;
  tuning.slide_limit = 5;
  ItemSequence sequence(tuning);
  TestRandom random(3);
  for (int round = 0; round < 200; ++round) {
    sequence.Reset(10);
    for (int slot = 0; slot < sequence.slot_count(); ++slot) {
      if (!random.OneIn(8)) {
        sequence.Link(sequence.Create({ItemKind::kRun, slot}), slot);
      }
    }
    const int slot = static_cast<int>(random.In(0, sequence.slot_count()));
    int nearest = -1;
    for (int s = 0; s < sequence.slot_count(); ++s) {
      if (sequence.item_at(s) >= 0 || Distance(slot, s) >= 5) continue;
      if (nearest < 0 || Distance(slot, s) < Distance(slot, nearest)) {
        nearest = s;
      }
    }
    ASSERT_EQ(sequence.NearestEmpty(slot), nearest);
  }
}

}  // namespace
}  // namespace loadline::planner
