// What single edits do to a schedule of a few items. Random ones, against the
// simulation from scratch: search_state_test.cc.
#include "planner/search/edits.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "planner/problem/problem.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/layered_graph.h"

namespace loadline::planner {
namespace {

Problem Empty(std::vector<Value> values) {
  Problem problem;
  problem.name = "edits";
  problem.addresses = false;
  problem.values = std::move(values);
  Machine machine;
  machine.name = "test";
  machine.device_bytes = 1'000'000;
  machine.host_bytes = 1'000'000;
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 1e9;
  problem.machine = machine;
  return problem;
}

void AddNode(Problem& problem, const std::string& name,
             std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node node;
  node.file_id = static_cast<int64_t>(problem.nodes.size());
  node.name = name;
  node.time_ns = 1000;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  problem.nodes.push_back(node);
}

// x -> a, then b = f(a), which may take over a's bytes, then a and b -> c.
Problem TakenOverAndReadAgain() {
  Problem problem = Empty({{.name = "x", .bytes = 10},
                           {.file_id = 1, .name = "a", .bytes = 100},
                           {.file_id = 2, .name = "b", .bytes = 100},
                           {.file_id = 3, .name = "c", .bytes = 10}});
  const ValueId x{0}, a{1}, b{2}, c{3};
  AddNode(problem, "make", {x}, {a});
  AddNode(problem, "take", {a}, {b});
  problem.nodes.back().inplace = {{a, b}};
  AddNode(problem, "read", {a, b}, {c});
  problem.outputs = {c};
  return problem;
}

class TakenOver : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ValidateProblem(problem_).message(), "");
    take_ = state_.next(state_.next(-1));
    ASSERT_TRUE(FindGap(state_, 1, state_.slot_of(take_), &gap_));
    ASSERT_EQ(gap_.taken_item, take_);
    ASSERT_EQ(BytesAtTake(), 200);
  }

  double BytesAtTake() const { return state_.BytesAt(state_.slot_of(take_)); }

  const Problem problem_ = TakenOverAndReadAgain();
  const SearchModel model_ = MakeSearchModel(problem_, true, true);
  SearchState state_{model_, GivenOrder(model_), 200};
  int take_ = -1;
  Gap gap_;
};

TEST_F(TakenOver, ByCopyingBeforeAndBack) {
  ASSERT_TRUE(EditCopy(state_, gap_, state_.slot_of(take_), 1.2));
  ASSERT_TRUE(state_.valid());
  state_.Commit();
  EXPECT_EQ(BytesAtTake(), 100);
  EXPECT_EQ(state_.copy_count(), 2);
}

TEST_F(TakenOver, ByRunningTheMakerAgain) {
  ASSERT_TRUE(EditRecompute(state_, gap_, {}));
  ASSERT_TRUE(state_.valid());
  state_.Commit();
  EXPECT_EQ(BytesAtTake(), 110);  // with x, for the rerun
  EXPECT_EQ(state_.compute_ns(), 4000);
}

// w, x -> a, an output; g -> w', the update of w, after all that reads it.
// With addresses, w' is at the address of w.
TEST(EditRecompute, ComesBeforeTheUpdateOfWhatItReads) {
  Problem problem =
      Empty({{.name = "w", .bytes = 100, .persistent = true},
             {.file_id = 1, .name = "x", .bytes = 10},
             {.file_id = 2, .name = "a", .bytes = 100},
             {.file_id = 3, .name = "g", .bytes = 100},
             {.file_id = 4, .name = "w'", .bytes = 100, .persistent = true}});
  const ValueId w{0}, x{1}, a{2}, g{3}, updated{4};
  AddNode(problem, "forward", {w, x}, {a});
  AddNode(problem, "backward", {x}, {g});
  problem.nodes.back().workspace_bytes = 1000;
  AddNode(problem, "update", {w, g}, {updated});
  problem.nodes.back().inplace = {{w, updated}};
  problem.nodes.back().recompute = false;
  problem.outputs = {a};
  problem.addresses = true;
  problem.alignment_bytes = 1;
  ASSERT_EQ(ValidateProblem(problem).message(), "");
  const SearchModel model = MakeSearchModel(problem, true, false);
  SearchState state(model, GivenOrder(model), 1300);
  const int backward = state.next(state.next(-1));
  ASSERT_EQ(state.BytesAt(state.slot_of(backward)), 1310);
  Gap gap;
  ASSERT_TRUE(FindGap(state, 2, state.slot_of(backward), &gap));
  ASSERT_EQ(gap.to_item, -1);  // it has to be there in the end
  ASSERT_TRUE(EditRecompute(state, gap, {}));
  ASSERT_TRUE(state.valid());
  state.Commit();
  EXPECT_EQ(state.BytesAt(state.slot_of(backward)), 1210);
  const int rerun = state.next(backward);
  EXPECT_EQ(state.item(rerun).id, 0);
  EXPECT_EQ(state.item(state.next(rerun)).id, 2);
}

// x -> a, b; then x -> high, which needs much memory; then a, b -> c.
TEST(EditRecompute, MayTakeMoreTimeWhereItMakesSeveralValues) {
  Problem problem = Empty({{.name = "x", .bytes = 10},
                           {.file_id = 1, .name = "a", .bytes = 100},
                           {.file_id = 2, .name = "b", .bytes = 100},
                           {.file_id = 3, .name = "high", .bytes = 500},
                           {.file_id = 4, .name = "c", .bytes = 10}});
  const ValueId x{0}, a{1}, b{2}, high{3}, c{4};
  AddNode(problem, "make", {x}, {a, b});
  AddNode(problem, "high", {x}, {high});
  AddNode(problem, "read", {a, b}, {c});
  problem.outputs = {c};
  ASSERT_EQ(ValidateProblem(problem).message(), "");
  const SearchModel model = MakeSearchModel(problem, true, false);
  SearchState state(model, GivenOrder(model), 600);
  const int slot = state.slot_of(state.next(state.next(-1)));
  Gap gap;
  ASSERT_TRUE(FindGap(state, 1, slot, &gap));
  // The bytes of `a` alone are not worth the rerun; with those of `b` it is.
  EXPECT_FALSE(EditRecompute(state, gap, {.most_ns = 900}));
  EXPECT_FALSE(EditRecompute(state, gap, {.most_ns = 900, .several_ns = 50}));
  state.Undo(0);
  ASSERT_TRUE(EditRecompute(state, gap, {.most_ns = 900, .several_ns = 200}));
  ASSERT_TRUE(state.valid());
  const double before = 3 * 110;  // slots of high with a and b over the target
  EXPECT_LT(state.excess_area(), before);
  EXPECT_EQ(state.excess_area(), 0);
}

// The limit of the annealing's reruns (Moves::LimitTime) relies on it.
TEST(EditRecompute, FreesTheBytesOfTheGapAtMostWhereNodesMakeOneValue) {
  int freed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem =
        LayeredGraph(seed, 20 + static_cast<int>(seed % 40));
    const SearchModel model = MakeSearchModel(problem, true, false);
    const Schedule start = GivenOrder(model);
    SearchState state(model, start,
                      FindLifetimes(model, start).peak_bytes * 2 / 3);
    for (int edit = 0; edit < 40; ++edit) {
      const int value = static_cast<int>(
          (seed * 31 + edit * 17) % static_cast<uint64_t>(model.value_count));
      const int slot = state.PeakSlot();
      Gap gap;
      if (!FindGap(state, value, slot, &gap)) continue;
      const double area = state.excess_area();
      const double most =
          state.FreedArea(value, std::max(0, gap.from_slot), gap.to_slot);
      if (!EditRecompute(state, gap, {.items = 2}) || !state.valid()) {
        state.Undo(0);
        continue;
      }
      EXPECT_LE(area - state.excess_area(), most);
      freed += area > state.excess_area();
      state.Commit();
      state.Respread();  // two reruns have room without sliding others
    }
  }
  EXPECT_GT(freed, 30);
}

}  // namespace
}  // namespace loadline::planner
