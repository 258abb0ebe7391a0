// What items wait for, against a search through the whole schedule, while
// random items move.
#include "planner/search/wait_links.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/random_edits.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

class Links {
 public:
  Links(const SearchModel& model, const Schedule& schedule)
      : model_(model),
        sequence(tuning_),
        accesses(model),
        links(model, sequence, accesses) {
    sequence.Reset(schedule.items.size());
    links.Reset();
    for (size_t p = 0; p < schedule.items.size(); ++p) {
      const int item = sequence.Create(schedule.items[p]);
      const int slot = sequence.SpacedSlot(p);
      sequence.Link(item, slot);
      links.CountCopy(schedule.items[p], 1);
      for (const Use& use : accesses.UsesOf(schedule.items[p])) {
        accesses.Append(use.value, {slot, item, use.flags});
      }
    }
    links.Grow(sequence.id_count());
    links.Load();
  }

  void Move(int item, int slot) {
    const int old = sequence.slot_of(item);
    first_ = std::min({first_, old, slot});
    last_ = std::max({last_, old, slot});
    sequence.Unlink(item);
    sequence.Link(item, slot);
    links.Mark(item);
    for (const Use& use : accesses.UsesOf(sequence.item(item))) {
      accesses.Move(use.value, item, slot);
      links.MarkReaders(use);
    }
  }
  void Commit() {
    links.Commit(first_, last_);
    first_ = sequence.slot_count();
    last_ = -1;
  }

  // The item that made what a read of `value` by `item` finds.
  int Maker(int value, int item) const {
    for (int i = sequence.previous(item); i >= 0; i = sequence.previous(i)) {
      for (const Use& use : accesses.UsesOf(sequence.item(i))) {
        if (use.value == value && use.makes()) return i;
      }
    }
    return -1;
  }
  int Source(int item) const {
    const Item& what = sequence.item(item);
    if (what.kind == ItemKind::kIn) return -1;
    if (what.kind == ItemKind::kOut) return Maker(what.id, item);
    int last = -1;
    for (int v : model_.reads[what.id]) {
      const int maker = Maker(v, item);
      if (maker < 0 || sequence.item(maker).kind != ItemKind::kIn) continue;
      if (last < 0 || sequence.slot_of(maker) > sequence.slot_of(last)) {
        last = maker;
      }
    }
    return last;
  }
  void ExpectSources() const {
    for (int item = sequence.next(-1); item >= 0; item = sequence.next(item)) {
      ASSERT_EQ(links.SourceOf(item), Source(item));
      // A copy out lies within the reach of the run that made its value.
      const int source = Source(item);
      if (source >= 0 && sequence.item(item).kind == ItemKind::kOut &&
          sequence.item(source).kind == ItemKind::kRun) {
        ASSERT_GE(links.ReachOf(source), sequence.slot_of(item));
      }
    }
  }
  void ExpectNextOuts() const {
    int next_out = -1;
    for (int item = sequence.previous(-1); item >= 0;
         item = sequence.previous(item)) {
      ASSERT_EQ(links.committed_next_out(item), next_out);
      if (sequence.item(item).kind == ItemKind::kOut) next_out = item;
    }
  }

 private:
  const SearchModel& model_;
  const SearchTuning::Sequence tuning_;
  int first_ = 0, last_ = -1;

 public:
  ItemSequence sequence;
  AccessTable accesses;
  WaitLinks links;
};

TEST(WaitLinks, EqualASearchThroughTheScheduleUnderRandomMoves) {
  int waiting = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 20, seed % 2 == 0, true);
    problem.machine->d2h_h2d_factor = seed % 4 < 2 ? 0.6 : 1.0;
    const SearchModel model = MakeSearchModel(problem);
    TestRandom random(seed);
    Links state(model, RandomSchedule(model, random, 40));
    ASSERT_NO_FATAL_FAILURE(state.ExpectSources());
    for (int edit = 0; edit < 30; ++edit) {
      const int slots = state.sequence.slot_count();
      const int item =
          state.sequence.item_at(static_cast<int>(random.In(0, slots - 1)));
      const int to = static_cast<int>(random.In(0, slots - 1));
      if (item < 0 || state.sequence.item_at(to) >= 0) continue;
      const int from = state.sequence.slot_of(item);
      state.Move(item, to);
      ASSERT_NO_FATAL_FAILURE(state.ExpectSources());
      if (random.OneIn(2)) {
        state.Commit();
      } else {
        state.Move(item, from);
        state.links.Undo();
      }
      ASSERT_NO_FATAL_FAILURE(state.ExpectSources());
      if (model.bidirectional < 1) {
        ASSERT_NO_FATAL_FAILURE(state.ExpectNextOuts());
      }
      waiting += state.Source(state.sequence.previous(-1)) >= 0;
    }
  }
  EXPECT_GT(waiting, 50);
}

}  // namespace
}  // namespace loadline::planner
