// The hot loops of the planner do not allocate, unit by unit of their work:
// this test program counts operator new. Sanitizers bring their own, so there
// nothing is counted.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "planner/pack/pack_parts.h"
#include "planner/schedule/simulate.h"
#include "planner/search/edits.h"
#include "planner/search/search.h"
#include "planner/search/window.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/transformer_problem.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define LOADLINE_OWN_NEW 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LOADLINE_OWN_NEW 0
#endif
#ifndef LOADLINE_OWN_NEW
#define LOADLINE_OWN_NEW 1
#endif

#if LOADLINE_OWN_NEW
namespace {
thread_local int64_t allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* place = std::malloc(bytes > 0 ? bytes : 1)) return place;
  std::abort();
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }

namespace loadline::planner {
namespace {

// Of one annealing with so many moves, from the given order.
int64_t AllocationsOf(const SearchModel& model, int64_t target_bytes,
                      int64_t moves) {
  AnnealWalk walk;
  walk.state =
      std::make_unique<SearchState>(model, GivenOrder(model), target_bytes);
  WorkBudget effort{.left = std::numeric_limits<int64_t>::max()};
  const int64_t before = allocations;
  Anneal(absl::MakeSpan(&walk, 1), {.moves = moves}, effort);
  return allocations - before;
}

Problem TwoLayers() {
  TransformerShape shape;
  shape.layers = 2;
  return TransformerProblem(shape);
}

int64_t PeakInGivenOrder(const SearchModel& model) {
  return FindLifetimes(model, GivenOrder(model)).peak_bytes;
}

TEST(Anneal, AllocatesNothingMoveByMove) {
  const Problem problem = TwoLayers();
  for (bool offload : {false, true}) {
    const SearchModel model = MakeSearchModel(problem, true, offload);
    const int64_t target_bytes = PeakInGivenOrder(model) * 7 / 10;
    // What is there at first, and the lists made anew now and then, count in
    // both.
    constexpr int64_t kMoves = 10'000;
    const int64_t once = AllocationsOf(model, target_bytes, kMoves);
    const int64_t twice = AllocationsOf(model, target_bytes, 2 * kMoves);
    ASSERT_GT(once, 0);
    EXPECT_LT(twice - once, kMoves / 4) << "copies: " << offload;
  }
}

// Items are moved, inserted and taken out at random, priced, kept or undone.
int64_t AllocationsOfEdits(SearchState& state, TestRandom& random,
                           int64_t edits) {
  const SearchModel& model = state.model();
  const int64_t before = allocations;
  for (int64_t edit = 0; edit < edits; ++edit) {
    const int slot = static_cast<int>(random.In(0, state.slot_count() - 1));
    const int item = state.item_at(slot);
    const int value = static_cast<int>(random.In(0, model.value_count - 1));
    Gap gap;
    bool done = false;
    if (random.OneIn(2) && item >= 0) {
      done = EditDrop(state, item);
    } else if (FindGap(state, value, slot, &gap)) {
      done = random.OneIn(2) ? EditRecompute(state, gap, {.items = 4})
                             : EditCopy(state, gap, slot, 1.2);
    }
    if (!done || !state.valid()) {
      state.Undo(0);
      continue;
    }
    state.Makespan();
    state.excess_area();
    if (random.OneIn(4)) {
      state.Commit();
    } else {
      state.Undo(0);
    }
  }
  return allocations - before;
}

TEST(SearchState, AllocatesNothingEditByEdit) {
  const Problem problem = TwoLayers();
  const SearchModel model = MakeSearchModel(problem, true, true);
  SearchState state(model, GivenOrder(model), PeakInGivenOrder(model) * 7 / 10);
  TestRandom random(1);
  constexpr int64_t kEdits = 5'000;
  AllocationsOfEdits(state, random, kEdits);  // grows to its size
  const int64_t count = AllocationsOfEdits(state, random, kEdits);
  EXPECT_LT(count, kEdits / 50);
}

TEST(LowerPeak, AllocatesLittleCandidateByCandidate) {
  const Problem problem = TwoLayers();
  for (bool offload : {false, true}) {
    const SearchModel model = MakeSearchModel(problem, true, offload);
    SearchState state(model, GivenOrder(model),
                      PeakInGivenOrder(model) * 6 / 10);
    constexpr int64_t kMuch = int64_t{1} << 40;
    WorkBudget effort{.left = kMuch};
    const int64_t price = effort.PriceOf(state);
    const int64_t before = allocations;
    LowerPeak(state, {}, effort);
    const int64_t count = allocations - before;
    const int64_t candidates = (kMuch - effort.left) / price;
    ASSERT_GT(candidates, 30);
    EXPECT_LT(count, candidates) << "copies: " << offload;
  }
}

TEST(ImproveWindows, AllocatesLittleStepByStep) {
  const Problem problem = TwoLayers();
  const SearchModel model = MakeSearchModel(problem, true, false);
  SearchState state(model, GivenOrder(model), PeakInGivenOrder(model) * 6 / 10);
  constexpr int64_t kMuch = int64_t{1} << 40;
  WorkBudget effort{.left = kMuch};
  ASSERT_TRUE(LowerPeak(state, {}, effort));
  constexpr int64_t kWork = 20'000;
  effort.left = kWork;
  const int64_t before = allocations;
  ImproveWindows(state, {.window_work = kWork / 4}, effort);
  ASSERT_LE(effort.left, 0);
  EXPECT_LT(allocations - before, kWork / 4);
}

// Of one layout of so many blocks, with what it needs once.
int64_t AllocationsOfLayout(int64_t blocks) {
  TestRandom random(3);
  std::vector<PackItem> items(blocks);
  for (PackItem& item : items) {
    item.lower = random.In(0, blocks);
    item.upper = item.lower + random.In(1, 40);
    item.size = random.In(1, 1000);
  }
  const absl::StatusOr<PackBlocks> made = MakePackBlocks(items, 1);
  EXPECT_TRUE(made.ok());
  LowestFloor packer(*made);
  const std::vector<double> keys(made->blocks.size(), 1);
  const int64_t before = allocations;
  packer.LayOut(keys);
  return allocations - before;
}

TEST(LowestFloor, AllocatesNothingBlockByBlock) {
  constexpr int64_t kBlocks = 4'000;
  EXPECT_LT(AllocationsOfLayout(2 * kBlocks),
            AllocationsOfLayout(kBlocks) + kBlocks / 100);
}

}  // namespace
}  // namespace loadline::planner
#endif
