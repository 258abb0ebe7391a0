// Bytes by slot against a plain array, with stretches over many blocks, wholly
// or partly below and above the target.
#include "planner/search/search_memory.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int kSlots = 517;  // eight blocks and a part of one

// The same without blocks, in whole numbers.
struct PlainMemory {
  std::vector<int64_t> bytes = std::vector<int64_t>(kSlots);

  void Add(int lower, int upper, int64_t more) {
    for (int s = lower; s < upper; ++s) bytes[s] += more;
  }
  int64_t Area(int64_t target) const {
    int64_t excess_area = 0;
    for (int64_t at : bytes) excess_area += std::max<int64_t>(0, at - target);
    return excess_area;
  }
  // Whether a slot that has more than before has more than so many.
  bool Exceeds(const PlainMemory& before, int64_t most) const {
    for (int s = 0; s < kSlots; ++s) {
      if (bytes[s] > before.bytes[s] && bytes[s] > most) return true;
    }
    return false;
  }
};

TEST(SearchMemory, EqualsAPlainArrayUnderRandomChanges) {
  int exceeded = 0, committed = 0, stretches_over = 0;
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    TestRandom random(seed);
    const int64_t target = random.In(100, 600);
    SearchMemory memory;
    memory.Reset(kSlots);
    memory.SetTarget(static_cast<double>(target));
    PlainMemory now;
    for (int edit = 0; edit < 150; ++edit) {
      PlainMemory next = now;
      for (int64_t change = random.In(1, 4); change > 0; --change) {
        const int lower = static_cast<int>(random.In(0, kSlots - 1));
        const int upper = static_cast<int>(
            random.OneIn(2) ? random.In(lower, kSlots)
                            : std::min<int64_t>(kSlots, lower + 9));
        const int64_t more = random.In(-60, 70);
        memory.Note(lower, upper, static_cast<double>(more));
        next.Add(lower, upper, more);
      }
      ASSERT_EQ(memory.excess_area(), static_cast<double>(next.Area(target)));
      const int64_t most = random.In(target, 2 * target);
      ASSERT_EQ(memory.Exceeds(static_cast<double>(most)),
                next.Exceeds(now, most));
      exceeded += next.Exceeds(now, most);
      const int lower = static_cast<int>(random.In(0, kSlots - 1));
      const int upper = static_cast<int>(random.In(lower, kSlots));
      const int64_t fewer = random.In(1, 90);
      PlainMemory freed = next;
      freed.Add(lower, upper, -fewer);
      ASSERT_EQ(memory.FreedArea(lower, upper, static_cast<double>(fewer)),
                static_cast<double>(next.Area(target) - freed.Area(target)));
      const bool over =
          std::any_of(now.bytes.begin() + lower, now.bytes.begin() + upper,
                      [&](int64_t at) { return at > target; });
      ASSERT_EQ(memory.AnyOver(lower, upper), over);
      stretches_over += over;
      if (random.OneIn(2)) {
        memory.Drop();
      } else {
        memory.Commit();
        ++committed;
        now = next;
      }
      ASSERT_EQ(memory.excess_area(), static_cast<double>(now.Area(target)));
      ASSERT_EQ(memory.PeakSlot(),
                std::max_element(now.bytes.begin(), now.bytes.end()) -
                    now.bytes.begin());
      const int slot = static_cast<int>(random.In(0, kSlots - 1));
      ASSERT_EQ(memory.at(slot), static_cast<double>(now.bytes[slot]));
    }
  }
  EXPECT_GT(exceeded, 100);
  EXPECT_GT(committed, 500);
  EXPECT_GT(stretches_over, 200);
  EXPECT_LT(stretches_over, 2000);
}

}  // namespace
}  // namespace loadline::planner
