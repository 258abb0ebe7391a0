// The random moves: each kind alone by its share in SearchTuning, and all of
// them against the simulation from scratch.
#include "planner/search/anneal_moves.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

constexpr MoveLimits kNoLimit = {.allowed_ns =
                                     std::numeric_limits<double>::infinity()};

std::vector<Item> Sorted(std::vector<Item> items) {
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.id < b.id;
  });
  return items;
}

// No kind of move but the one whose share is set afterwards.
SearchTuning::Moves NoMoves() {
  SearchTuning::Moves moves;
  moves.shift_percent = moves.free_percent = moves.drop_percent = 0;
  moves.replace_percent = moves.shift_percent_with_copies = 0;
  moves.shift_copy_percent = moves.free_percent_with_copies = 0;
  moves.drop_percent_with_copies = moves.replace_percent_with_copies = 0;
  moves.change_home_percent = 0;
  moves.variant_period = 1'000'000'000;
  return moves;
}

struct Counts {
  int proposed = 0, reordered = 0, longer = 0, shorter = 0, homes = 0;
};

// Proposes moves, keeps the valid ones, and checks each against the simulation.
Counts Propose(const Problem& problem, const SearchTuning::Moves& moves,
               uint64_t seed, int count) {
  SearchModelOptions options;
  options.tuning.moves = moves;
  const SearchModel model = MakeSearchModel(problem, options);
  const Schedule start = GivenOrder(model);
  SearchState state(model, start,
                    FindLifetimes(model, start).peak_bytes * 7 / 10);
  Random random(seed);
  Moves proposer(state, random);
  Counts counts;
  for (int move = 0; move < count; ++move) {
    if (move % 50 == 0) proposer.Refresh();
    const Schedule before = state.ToSchedule();
    if (!proposer.Propose(kNoLimit)) {
      state.Undo(0);
      EXPECT_EQ(state.ToSchedule().items, before.items);
      continue;
    }
    const Schedule after = state.ToSchedule();
    const Lifetimes lives = FindLifetimes(model, after);
    EXPECT_EQ(state.valid(), lives.valid);
    ++counts.proposed;
    counts.reordered += after.items != before.items &&
                        Sorted(after.items) == Sorted(before.items);
    counts.longer += after.items.size() > before.items.size();
    counts.shorter += after.items.size() < before.items.size();
    counts.homes += after.host_home != before.host_home;
    if (!state.valid()) {
      state.Undo(0);
      continue;
    }
    EXPECT_EQ(static_cast<int64_t>(state.PeakBytes()), lives.peak_bytes);
    state.Commit();
  }
  return counts;
}

TEST(Moves, ShiftsAndDragsOnlyChangeTheOrder) {
  const Problem problem = RandomProblem(5, 40, true, false);
  SearchTuning::Moves shifts = NoMoves();
  shifts.shift_percent = 100;
  for (const SearchTuning::Moves& moves : {shifts, NoMoves()}) {
    const Counts counts = Propose(problem, moves, 1, 600);
    EXPECT_GT(counts.reordered, 100);
    EXPECT_EQ(counts.longer + counts.shorter, 0);
  }
}

TEST(Moves, FreeingAddsItemsAndDroppingRemovesThem) {
  const Problem problem = RandomProblem(5, 40, false, true);
  SearchTuning::Moves freeing = NoMoves();
  freeing.free_percent_with_copies = 100;
  const Counts freed = Propose(problem, freeing, 1, 300);
  EXPECT_GT(freed.longer, 30);
  EXPECT_EQ(freed.homes, 0);
  SearchTuning::Moves both = NoMoves();
  both.free_percent_with_copies = both.drop_percent_with_copies = 50;
  EXPECT_GT(Propose(problem, both, 1, 300).shorter, 20);
}

TEST(Moves, HomesChangeOnlyByTheirOwnMove) {
  const Problem problem = RandomProblem(6, 40, true, true);
  SearchTuning::Moves homes = NoMoves();
  homes.change_home_percent = 100;
  EXPECT_GT(Propose(problem, homes, 1, 300).homes, 20);
  SearchTuning::Moves others;
  others.change_home_percent = 0;
  EXPECT_EQ(Propose(problem, others, 1, 300).homes, 0);
}

TEST(Moves, AgreeWithTheSimulationOnRandomProblems) {
  int proposed = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Problem problem = RandomProblem(seed, 20, seed % 2 == 0, seed % 3 != 0);
    if (seed % 2 == 1) AddRandomChoices(seed, problem);
    proposed += Propose(problem, {}, seed, 150).proposed;
  }
  EXPECT_GT(proposed, 1500);
}

}  // namespace
}  // namespace loadline::planner
