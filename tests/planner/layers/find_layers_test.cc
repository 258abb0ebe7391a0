// Repeated layers: found, cut out, planned and stitched, on transformers and on
// a chain that looks like none.
#include "planner/layers/find_layers.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "planner/layers/expand_layers.h"
#include "planner/layers/repair_order.h"
#include "planner/layers/restrict_layers.h"
#include "planner/layers/schedule_copies.h"
#include "planner/layers/shrink.h"
#include "planner/schedule/simulate.h"
#include "planner/search/point_search.h"
#include "planner/solve/solve.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/transformer_problem.h"

namespace loadline::planner {
namespace {

Problem SmallTransformer(int layers) {
  TransformerShape shape;
  shape.layers = layers;
  shape.width = 256;
  shape.tokens = 512;
  shape.sequence = 128;
  shape.vocabulary = 1024;
  Problem problem = TransformerProblem(shape);
  problem.addresses = false;
  return problem;
}

// y[i] = f(w[i], x[i]), x[i + 1] = g(y[i]); the backward node reads them again;
// an update right after each backward node.
Problem Chain(int layers) {
  Problem problem;
  problem.addresses = false;
  const auto add_value = [&](int64_t bytes, bool persistent) {
    Value value;
    value.file_id = static_cast<int64_t>(problem.values.size());
    value.bytes = bytes;
    value.persistent = persistent;
    problem.values.push_back(value);
    return ValueId{static_cast<int32_t>(problem.values.size()) - 1};
  };
  const auto add_node = [&](int64_t time_ns, std::vector<ValueId> inputs,
                            std::vector<ValueId> outputs) {
    Node node;
    node.file_id = static_cast<int64_t>(problem.nodes.size());
    node.time_ns = time_ns;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    problem.nodes.push_back(node);
  };
  std::vector<ValueId> weights, states = {add_value(100, false)}, inner;
  for (int i = 0; i < layers; ++i) {
    weights.push_back(add_value(10, true));
    states.push_back(add_value(100, false));
    inner.push_back(add_value(300, false));
    add_node(40, {weights[i], states[i]}, {inner[i]});
    add_node(5, {inner[i]}, {states[i + 1]});
  }
  ValueId gradient = states.back();
  for (int i = layers - 1; i >= 0; --i) {
    const ValueId next = add_value(100, false), part = add_value(10, false);
    add_node(80, {gradient, weights[i], states[i], inner[i]}, {next, part});
    const ValueId updated = add_value(10, true);
    add_node(1, {weights[i], part}, {updated});
    problem.nodes.back().recompute = false;
    problem.nodes.back().inplace = {{weights[i], updated}};
    gradient = next;
  }
  return problem;
}

TEST(FindLayers, NumbersForwardAndBackwardAlike) {
  for (const Problem& problem : {SmallTransformer(20), Chain(40)}) {
    const bool chain = problem.nodes.size() == 160;
    const ProblemIndex index = IndexProblem(problem);
    const std::optional<Layers> layers = FindLayers(problem, index);
    ASSERT_TRUE(layers.has_value());
    EXPECT_GE(layers->alike_upper - layers->alike_lower, chain ? 30 : 15);
    // Only what is near the ends may be in no layer.
    size_t outside = 0;
    for (int layer : layers->node_layer) outside += layer < 0;
    EXPECT_LT(outside, problem.nodes.size() / 4);
    for (size_t n = 0; n < problem.nodes.size(); ++n) {
      const int layer = layers->node_layer[n];
      if (layer < layers->alike_lower || layer >= layers->alike_upper) continue;
      for (ValueId id : problem.nodes[n].inputs) {
        const int from = layers->value_layer[Index(id)];
        EXPECT_TRUE(from < 0 || std::abs(from - layer) <= 2) << n;
      }
      const int role = layers->node_role[n];
      const int other = layers->nodes[role][layers->alike_lower];
      EXPECT_EQ(problem.nodes[other].time_ns, problem.nodes[n].time_ns);
    }
  }
}

TEST(FindLayers, FindsNoneWhereNothingRepeats) {
  for (int seed = 0; seed < 50; ++seed) {
    const Problem problem = RandomProblem(seed, 60, true, true);
    EXPECT_FALSE(FindLayers(problem, IndexProblem(problem)).has_value());
  }
}

struct Scaled {
  explicit Scaled(const Problem& whole)
      : problem(whole),
        model(MakeSearchModel(problem, true, true)),
        layers(*FindLayers(problem, model.index)),
        shrunk(*CoarsenProblem(
            problem, layers,
            layers.count - (layers.alike_upper - layers.alike_lower) + 9)),
        few_model(MakeSearchModel(shrunk.problem, true, true)) {}

  const Problem problem;
  const SearchModel model;
  const Layers layers;
  const CoarseProblem shrunk;
  const SearchModel few_model;
  const LayeredModel all{&model, &layers};
  const LayeredModel few{&few_model, &shrunk.layers};
};

TEST(CoarsenProblem, KeepsWhatALayerCosts) {
  const Scaled scaled(SmallTransformer(30));
  const Scaled longer(SmallTransformer(40));
  EXPECT_TRUE(ValidateProblem(scaled.shrunk.problem).ok());
  // The layers left do not depend on how many there were.
  EXPECT_EQ(scaled.few_model.compute_ns, longer.few_model.compute_ns);
  EXPECT_EQ(
      FindLifetimes(scaled.few_model, GivenOrder(scaled.few_model)).peak_bytes,
      FindLifetimes(longer.few_model, GivenOrder(longer.few_model)).peak_bytes);
}

// The same runs in the same order, valid, and hardly slower.
void ExpectRetimes(const SearchModel& model, const Schedule& schedule) {
  const std::optional<Schedule> copies_rescheduled =
      ScheduleCopies(model, schedule);
  ASSERT_TRUE(copies_rescheduled.has_value());
  EXPECT_TRUE(FindLifetimes(model, *copies_rescheduled).valid);
  std::vector<int> runs[2];
  for (const Item& item : schedule.items) {
    if (item.kind == ItemKind::kRun) runs[0].push_back(item.id);
  }
  for (const Item& item : copies_rescheduled->items) {
    if (item.kind == ItemKind::kRun) runs[1].push_back(item.id);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_LE(FindTimes(model, *copies_rescheduled).step_ns,
            1.01 * FindTimes(model, schedule).step_ns);
}

TEST(RepairOrder, MovesWhatStandsTooEarlyBehindWhatItNeeds) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = RandomProblem(seed, 40, true, true);
    const SearchModel model = MakeSearchModel(problem, true, true);
    const Schedule given = GivenOrder(model);
    const std::optional<Schedule> same = RepairOrder(model, given);
    ASSERT_TRUE(same.has_value());
    EXPECT_EQ(same->items, given.items);
    // With one node earlier: as it is where that is valid, else mended.
    TestRandom random(seed);
    for (int tries = 0; tries < 10; ++tries) {
      Schedule early = given;
      const auto first = early.items.begin();
      const int64_t from = random.In(1, model.node_count - 1);
      std::rotate(first + random.In(0, from - 1), first + from,
                  first + from + 1);
      const std::optional<Schedule> mended = RepairOrder(model, early);
      ASSERT_TRUE(mended.has_value());
      EXPECT_TRUE(FindLifetimes(model, *mended).valid);
      const bool valid = FindLifetimes(model, early).valid;
      EXPECT_EQ(mended->items == early.items, valid);
    }
  }
}

TEST(ExpandSchedule, MakesValidSchedulesOfWhatTheSearchFinds) {
  for (const Problem& problem : {SmallTransformer(30), Chain(60)}) {
    const Scaled scaled(problem);
    const std::vector<Schedule> orders = SeedOrders(scaled.few_model);
    const int64_t peak_bytes =
        FindLifetimes(scaled.few_model, orders[0]).peak_bytes;
    for (int percent : {100, 80, 60, 50}) {
      PointSearchOptions options;
      options.target_bytes = peak_bytes / 100 * percent;
      options.work = 200'000;
      const std::vector<FoundSchedule> finds =
          SearchAtPoint(scaled.few_model, orders, {}, options, {});
      ASSERT_FALSE(finds.empty()) << percent;
      for (int blocks : {1, 3}) {
        const std::vector<int> match =
            MatchLayers(scaled.layers, scaled.shrunk.layers, blocks);
        const std::optional<Schedule> stitched =
            ExpandSchedule(scaled.all, scaled.few, scaled.shrunk, match,
                           finds.front().schedule);
        ASSERT_TRUE(stitched.has_value()) << percent;
        EXPECT_TRUE(FindLifetimes(scaled.model, *stitched).valid);
        ExpectRetimes(scaled.model, *stitched);
        EXPECT_TRUE(RestrictSchedule(scaled.all, scaled.few, scaled.shrunk,
                                     match, *stitched)
                        .has_value());
      }
    }
  }
}

absl::StatusOr<Plan> PlanAt(const Problem& problem, int percent, bool offload,
                            int64_t work = 1'000'000) {
  SolveOptions options;
  options.allow_offload = offload;
  options.bound_work_limit = 0;
  options.work_limit = work;
  options.budget_bytes =
      KeepEverything(problem)->predicted.peak_bytes / 100 * percent;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (plan.ok()) {
    EXPECT_LE(plan->arena_bytes, options.budget_bytes);
  }
  return plan;
}

double OverheadOf(const Plan& plan) {
  const int64_t once_ns =
      plan.predicted.compute_ns - plan.predicted.recompute_ns;
  return static_cast<double>(plan.predicted.step_ns) /
             static_cast<double>(once_ns) -
         1;
}

double OverheadAt(const Problem& problem, int percent, bool offload) {
  const absl::StatusOr<Plan> plan = PlanAt(problem, percent, offload);
  return plan.ok() ? OverheadOf(*plan) : 0;
}

TEST(Solve, PlansManyLayersAsWellAsFew) {
  // Both sides of the size from which on a few layers stand for all.
  const double few = OverheadAt(Chain(100), 60, false);
  const double many = OverheadAt(Chain(1000), 60, false);
  EXPECT_GT(few, 0.01);
  EXPECT_LT(many, 1.1 * few);
}

TEST(Solve, SearchesARepeatedBlockOnce) {
  const Problem problem = Chain(400);
  const absl::StatusOr<Plan> plan = PlanAt(problem, 60, false, 250'000);
  ASSERT_TRUE(plan.ok());
  EXPECT_GT(plan->searched.layers, 390);
  EXPECT_LT(plan->searched.searched_layers, 50);
  EXPECT_LT(plan->searched.searched_nodes, 200);
  EXPECT_NE(PlanToJson(*plan, problem).find("searched_layers"),
            std::string::npos);
  // What every layer gets is as good as where all of few were searched.
  const absl::StatusOr<Plan> few = PlanAt(Chain(60), 60, false, 250'000);
  ASSERT_TRUE(few.ok());
  EXPECT_EQ(few->searched.layers, 0);
  EXPECT_EQ(PlanToJson(*few, Chain(60)).find("searched_layers"),
            std::string::npos);
  EXPECT_LT(OverheadOf(*plan), 1.1 * OverheadOf(*few));
}

TEST(Solve, MeetsTightBudgetsWithManyLayers) {
  // Greedy descents on the few layers get stuck at some of these.
  TransformerShape shape;
  shape.layers = 125;
  const Problem problem = TransformerProblem(shape);
  EXPECT_LT(OverheadAt(problem, 40, false), 0.05);
  EXPECT_LT(OverheadAt(problem, 30, false), 0.062);
}

TEST(Solve, SlowMonotoneOverBudgetsWithManyLayers) {
  const Problem problem = SmallTransformer(60);
  ASSERT_GT(problem.nodes.size(), 4000u);
  double last = 1e9;
  for (int percent : {40, 60, 62, 80}) {
    const double overhead = OverheadAt(problem, percent, true);
    EXPECT_LE(overhead, last) << percent;
    last = overhead;
  }
}

}  // namespace
}  // namespace loadline::planner
