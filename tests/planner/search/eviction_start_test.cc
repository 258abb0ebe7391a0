// The eviction pass: within the target wherever it returns a schedule, finds
// one with little memory, and chooses what is cheap to get back.
#include "planner/search/eviction_start.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "planner/search/next_uses.h"
#include "planner/search/search.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// A forward chain of equal nodes, and a backward chain that reads what every
// forward node made, last first.
Problem TrainingChain(int forward_nodes) {
  constexpr int64_t kBytes = 100;
  Problem problem;
  problem.addresses = false;
  const auto add_value = [&] {
    const auto id = static_cast<int64_t>(problem.values.size());
    problem.values.push_back({.file_id = id, .bytes = kBytes});
    return ValueId{static_cast<int>(id)};
  };
  const auto add_node = [&](std::vector<ValueId> inputs, ValueId output) {
    const auto id = static_cast<int64_t>(problem.nodes.size());
    problem.nodes.push_back({.file_id = id,
                             .time_ns = 10,
                             .inputs = std::move(inputs),
                             .outputs = {output}});
  };
  std::vector<ValueId> made = {add_value()};
  for (int n = 0; n < forward_nodes; ++n) {
    const ValueId output = add_value();
    add_node({made.back()}, output);
    made.push_back(output);
  }
  ValueId gradient = made.back();
  for (int n = forward_nodes - 1; n >= 0; --n) {
    const ValueId output = add_value();
    add_node({gradient, made[n]}, output);
    gradient = output;
  }
  problem.outputs = {gradient};
  return problem;
}

int64_t PeakOf(const SearchModel& model, const Schedule& schedule) {
  return FindLifetimes(model, schedule).peak_bytes;
}

TEST(NextUses, WalkThroughTheOrder) {
  const Problem problem = TrainingChain(2);  // reads: 0, 1; 2 and 1; 3 and 0
  const SearchModel model = MakeSearchModel(problem);
  NextUses uses(model, GivenOrder(model));
  EXPECT_EQ(uses.end(), 4);
  EXPECT_EQ(uses.Next(0), 0);
  EXPECT_EQ(uses.Last(0), 3);
  EXPECT_EQ(uses.Last(1), 2);
  EXPECT_EQ(uses.Last(4), 4);  // the output, to the end
  uses.SetClock(1);
  EXPECT_EQ(uses.Next(0), 3);
  EXPECT_EQ(uses.Next(1), 1);
  uses.SetClock(3);
  EXPECT_EQ(uses.Next(1), NextUses::kNever);
  uses.HoldTo(1, 3);
  EXPECT_EQ(uses.Next(1), 3);
  EXPECT_EQ(uses.Last(1), 3);
  uses.SetClock(4);
  EXPECT_EQ(uses.Next(1), NextUses::kNever);
}

TEST(EvictionStart, IsTheOrderItselfWhereThatFits) {
  const Problem problem = TrainingChain(20);
  const SearchModel model = MakeSearchModel(problem);
  const Schedule order = GivenOrder(model);
  const auto start = EvictionStart(
      model, order, {.target_bytes = PeakOf(model, order), .seed = 1});
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->items, order.items);
}

TEST(EvictionStart, FindsSchedulesOfALongChainInATenthOfItsBytes) {
  constexpr int kForward = 5000;
  const Problem problem = TrainingChain(kForward);
  const SearchModel model = MakeSearchModel(problem);
  const Schedule order = GivenOrder(model);
  const int64_t peak_bytes = PeakOf(model, order);
  const auto start =
      EvictionStart(model, order, {.target_bytes = peak_bytes / 10, .seed = 1});
  ASSERT_TRUE(start.has_value());
  EXPECT_LE(PeakOf(model, *start), peak_bytes / 10);
  // With even checkpoints, each forward node runs twice.
  EXPECT_LT(start->items.size(), 4u * kForward);
}

TEST(EvictionStart, StaysWithinTheTargetOnRandomProblems) {
  int tried = 0, found = 0, evicting = 0, copying = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Problem problem = RandomProblem(
        seed, 10 + static_cast<int>(seed % 50), seed % 3 == 0, seed % 2 == 0);
    const SearchModel model = MakeSearchModel(problem);
    const Schedule order = GivenOrder(model);
    const int64_t peak_bytes = PeakOf(model, order);
    for (int percent : {95, 80, 60}) {
      const int64_t target_bytes = peak_bytes * percent / 100;
      const auto start = EvictionStart(
          model, order, {.target_bytes = target_bytes, .seed = seed});
      ++tried;
      if (!start) continue;
      ++found;
      const SearchState state(model, *start, target_bytes);
      ASSERT_TRUE(state.valid()) << seed;  // host bytes too
      ASSERT_LE(state.PeakBytes(), static_cast<double>(target_bytes)) << seed;
      evicting += start->items.size() > order.items.size();
      copying += std::any_of(
          start->items.begin(), start->items.end(),
          [](const Item& item) { return item.kind == ItemKind::kIn; });
    }
  }
  EXPECT_GT(found, tried / 3);
  EXPECT_GT(evicting, 100);
  EXPECT_GT(copying, 50);
}

TEST(EvictionStart, IsTheSameForTheSameSeed) {
  const Problem problem = RandomProblem(5, 60, true, true);
  const SearchModel model = MakeSearchModel(problem);
  const Schedule order = GivenOrder(model);
  const int64_t target_bytes = PeakOf(model, order) * 8 / 10;
  const auto one =
      EvictionStart(model, order, {.target_bytes = target_bytes, .seed = 3});
  const auto other =
      EvictionStart(model, order, {.target_bytes = target_bytes, .seed = 3});
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->items, other->items);
}

// Two values of equal size are idle over node 2; the first costs 50 times as
// much to make.
TEST(EvictionStart, DropsTheValueThatIsCheaperToMake) {
  Problem problem;
  problem.addresses = false;
  const int64_t bytes[] = {1, 1000, 1000, 2000, 10, 1};
  for (int v = 0; v < 6; ++v) {
    problem.values.push_back({.file_id = v, .bytes = bytes[v]});
  }
  const ValueId x{0}, a{1}, b{2}, c{3}, d{4}, e{5};
  problem.nodes = {
      {.file_id = 0, .time_ns = 5000, .inputs = {x}, .outputs = {a}},
      {.file_id = 1, .time_ns = 100, .inputs = {x}, .outputs = {b}},
      {.file_id = 2, .time_ns = 300, .inputs = {x}, .outputs = {c}},
      {.file_id = 3, .time_ns = 300, .inputs = {c}, .outputs = {d}},
      {.file_id = 4, .time_ns = 300, .inputs = {a, b, d}, .outputs = {e}}};
  problem.outputs = {e};
  const SearchModel model = MakeSearchModel(problem);
  const auto start = EvictionStart(model, GivenOrder(model),
                                   {.target_bytes = 3100, .seed = 1});
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(FindTimes(model, *start).compute_ns, 6000 + 100);
}

// Layers of which each updates its own weights at its end. All of them together
// fill most of the memory.
Problem UpdatedLayers(int layers, int64_t host_bytes) {
  Problem problem;
  problem.addresses = false;
  const auto add_value = [&](int64_t bytes, bool persistent) {
    const auto id = static_cast<int64_t>(problem.values.size());
    problem.values.push_back(
        {.file_id = id, .bytes = bytes, .persistent = persistent});
    return ValueId{static_cast<int>(id)};
  };
  ValueId flows = add_value(10, false);
  for (int layer = 0; layer < layers; ++layer) {
    const ValueId weights = add_value(1000, true);
    const ValueId output = add_value(10, false);
    const ValueId updated = add_value(1000, true);
    problem.nodes.push_back({.file_id = 2 * layer,
                             .time_ns = 1000,
                             .inputs = {flows, weights},
                             .outputs = {output}});
    problem.nodes.push_back({.file_id = 2 * layer + 1,
                             .time_ns = 1000,
                             .inputs = {output, weights},
                             .outputs = {updated},
                             .recompute = false,
                             .inplace = {{weights, updated}}});
    flows = output;
  }
  problem.outputs = {flows};
  problem.machine.emplace();
  problem.machine->host_bytes = host_bytes;
  problem.machine->d2h.bytes_per_s = problem.machine->h2d.bytes_per_s = 1e9;
  return problem;
}

TEST(EvictionStart, MovesTheHomesOfWeightsThatDoNotAllFit) {
  const Problem problem = UpdatedLayers(20, 1 << 20);
  ASSERT_TRUE(ValidateProblem(problem).ok());
  const SearchModel model = MakeSearchModel(problem);
  const Schedule order = GivenOrder(model);
  ASSERT_GT(PeakOf(model, order), 20'000);
  for (const int64_t target_bytes : {19'000, 10'000, 5'000, 1'020}) {
    const auto start =
        EvictionStart(model, order, {.target_bytes = target_bytes, .seed = 1});
    ASSERT_TRUE(start.has_value()) << target_bytes;
    EXPECT_LE(PeakOf(model, *start), target_bytes);
    // As few as the target asks for, and those that a draw mistook.
    const auto moved =
        std::count(start->host_home.begin(), start->host_home.end(), char{1});
    EXPECT_GE(moved, (20'000 - target_bytes) / 1000) << target_bytes;
    EXPECT_LE(moved, 20) << target_bytes;
    const SearchState state(model, *start, target_bytes);
    EXPECT_TRUE(state.valid());
  }
  // Not if the host has no room.
  const Problem no_host = UpdatedLayers(20, 1500);
  const SearchModel small = MakeSearchModel(no_host);
  EXPECT_FALSE(EvictionStart(small, order, {.target_bytes = 19'000, .seed = 1})
                   .has_value());
}

// A node that needs much memory follows the updates, and then a short one that
// leaves room. What lives on the host is not copied back then.
TEST(EvictionStart, LeavesUpdatedWeightsAtTheirNewHome) {
  Problem problem = UpdatedLayers(2, 1 << 20);
  ValueId flows = problem.outputs[0];
  for (const int64_t workspace_bytes : {1500, 0}) {
    const auto id = static_cast<int64_t>(problem.values.size());
    problem.values.push_back({.file_id = id, .bytes = 10});
    problem.nodes.push_back({.file_id = std::ssize(problem.nodes),
                             .time_ns = workspace_bytes > 0 ? 10'000 : 10,
                             .inputs = {flows},
                             .outputs = {ValueId{static_cast<int>(id)}},
                             .workspace_bytes = workspace_bytes});
    flows = problem.nodes.back().outputs[0];
  }
  problem.outputs = {flows};
  ASSERT_TRUE(ValidateProblem(problem).ok());
  const SearchModel model = MakeSearchModel(problem);
  const auto start = EvictionStart(model, GivenOrder(model),
                                   {.target_bytes = 2600, .seed = 1});
  ASSERT_TRUE(start.has_value());
  EXPECT_LE(PeakOf(model, *start), 2600);
}

// The host has room for the activations, which are copied out first because
// they take long to compute, or for the weights, which must leave when the
// forward is over.
TEST(EvictionStart, RecomputesWhatWasCopiedOutWhereTheHostIsFull) {
  Problem problem = TrainingChain(10);
  const auto weights = static_cast<int64_t>(problem.values.size());
  for (const int64_t id : {weights, weights + 1}) {
    problem.values.push_back(
        {.file_id = id, .bytes = 1000, .persistent = true});
  }
  const ValueId before{static_cast<int>(weights)},
      after{static_cast<int>(weights + 1)};
  for (int n = 0; n < 10; ++n) {
    problem.nodes[n].time_ns = 100'000;
    problem.nodes[n].inputs.push_back(before);
  }
  problem.nodes[10].workspace_bytes = 1000;
  problem.nodes.push_back({.file_id = std::ssize(problem.nodes),
                           .time_ns = 10,
                           .inputs = {problem.outputs[0], before},
                           .outputs = {after},
                           .recompute = false,
                           .inplace = {{before, after}}});
  problem.machine.emplace();
  problem.machine->d2h.bytes_per_s = problem.machine->h2d.bytes_per_s = 1e9;
  for (const int64_t host_bytes : {1 << 20, 1200}) {
    problem.machine->host_bytes = host_bytes;
    ASSERT_TRUE(ValidateProblem(problem).ok());
    const SearchModel model = MakeSearchModel(problem);
    const auto start = EvictionStart(model, GivenOrder(model),
                                     {.target_bytes = 1400, .seed = 1});
    ASSERT_TRUE(start.has_value()) << host_bytes;
    const SearchState state(model, *start, 1400);
    EXPECT_TRUE(state.valid());
    EXPECT_LE(state.PeakBytes(), 1400);
    // With little room nodes of the forward run again.
    EXPECT_EQ(FindTimes(model, *start).compute_ns > 1'200'000,
              host_bytes == 1200);
  }
}

// The second node's input and output do not fit beside the weights, which the
// first and the third node read. The target allows no more, so the weights are
// copied out while the second node runs.
TEST(EvictionStart, EvictsWhatTheNextNodeReads) {
  Problem problem;
  problem.addresses = false;
  const int64_t bytes[] = {1, 1000, 500, 1000, 1, 1};
  for (int v = 0; v < 6; ++v) {
    problem.values.push_back(
        {.file_id = v, .bytes = bytes[v], .persistent = v == 1});
  }
  const ValueId x{0}, weights{1}, a{2}, sum{3}, b{4}, c{5};
  problem.nodes = {
      {.file_id = 0, .time_ns = 100, .inputs = {x, weights}, .outputs = {a}},
      {.file_id = 1, .time_ns = 100, .inputs = {a}, .outputs = {sum}},
      {.file_id = 2, .time_ns = 100, .inputs = {x, weights}, .outputs = {b}},
      {.file_id = 3, .time_ns = 100, .inputs = {sum, b}, .outputs = {c}}};
  problem.outputs = {c};
  problem.machine.emplace();
  problem.machine->host_bytes = 1 << 20;
  problem.machine->d2h.bytes_per_s = problem.machine->h2d.bytes_per_s = 1e9;
  ASSERT_TRUE(ValidateProblem(problem).ok());
  const SearchModel model = MakeSearchModel(problem);
  const auto start = EvictionStart(model, GivenOrder(model),
                                   {.target_bytes = 2100, .seed = 1});
  ASSERT_TRUE(start.has_value());
  EXPECT_LE(PeakOf(model, *start), 2100);
}

// One node in the middle needs most of the memory.
TEST(EvictionStart, FillsMoreThanTheUsualBytesOnlyWhereItMust) {
  Problem problem = TrainingChain(200);
  const int middle = static_cast<int>(problem.nodes.size()) / 2;
  problem.nodes[middle].workspace_bytes = 9'000;
  const SearchModel model = MakeSearchModel(problem);
  const Schedule order = GivenOrder(model);
  const auto fullness = [&](int64_t usual_bytes) {
    const auto start = EvictionStart(
        model, order,
        {.target_bytes = 10'000, .usual_bytes = usual_bytes, .seed = 1});
    if (!start) return std::ptrdiff_t{-1};
    EXPECT_LE(PeakOf(model, *start), 10'000);
    const std::vector<int64_t> live = FindLifetimes(model, *start).live_bytes;
    return std::count_if(live.begin(), live.end(),
                         [](int64_t bytes) { return bytes > 5'000; });
  };
  EXPECT_EQ(fullness(5'000), 1);
  EXPECT_GT(fullness(10'000), 50);
}

}  // namespace
}  // namespace loadline::planner
