// Every plan of the solver, on seeded problems, against Verify, the bounds,
// and its own promises. Brute force: brute_force_test.cc.
#include "planner/solve/solve.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/schedule/search_model.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/solve_samples.h"

namespace loadline::planner {
namespace {

TEST(Solve, EveryPlanIsVerifiedWithinBudgetAndAboveBounds) {
  int met = 0, missed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << seed << ": " << all.status();
    for (int percent : {100, 80, 60, 45, 30}) {
      SolveOptions options;
      options.budget_bytes = Percent(*all, percent);
      options.work_limit = kWork;
      if (seed % 10 != 0) options.bound_work_limit = 0;
      options.seed = seed;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      SCOPED_TRACE(absl::StrCat("seed ", seed, " at ", percent, " %"));
      if (!plan.ok()) {
        ++missed;
        const auto facts = InfeasibilityOf(plan.status());
        ASSERT_TRUE(facts.has_value()) << plan.status();
        EXPECT_EQ(facts->budget_bytes, options.budget_bytes);
        EXPECT_GT(facts->smallest_met_bytes, options.budget_bytes);
        EXPECT_LE(facts->proven_bound_bytes, facts->smallest_met_bytes);
        continue;
      }
      ++met;
      EXPECT_TRUE(Verify(problem, *plan).ok()) << Verify(problem, *plan);
      EXPECT_LE(plan->arena_bytes, options.budget_bytes);
      const absl::StatusOr<PeakFloor> floor = FindPeakFloor(problem, options);
      ASSERT_TRUE(floor.ok());
      EXPECT_EQ(plan->bounds.peak_bytes, floor->bytes);
      EXPECT_LE(plan->bounds.peak_bytes, plan->predicted.peak_bytes);
      EXPECT_LE(plan->bounds.step_ns, plan->predicted.step_ns);
      EXPECT_FALSE(plan->decisions.empty());
    }
  }
  EXPECT_GT(met, 125);
  EXPECT_GT(missed, 5);
}

// Does a step read the first version of a value after the node that makes its
// last version?
bool ReadsAfterUpdate(const Problem& problem, const Plan& plan) {
  const SearchModel model = MakeSearchModel(problem);
  std::vector<bool> gone(problem.values.size(), false);
  const auto reads = [&](BufferId buffer) {
    return gone[Index(plan.buffer(buffer).value)];
  };
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kNode) {
      if (reads(step.from)) return true;
      continue;
    }
    if (std::any_of(step.in.begin(), step.in.end(), reads)) return true;
    for (ValueId made : problem.node(step.node).outputs) {
      const int value = static_cast<int>(Index(made));
      if (!model.LastVersion(value) || model.FirstVersion(value)) continue;
      gone[model.chains[model.chain_of[value]].versions.front()] = true;
    }
  }
  return false;
}

// Without addresses too, a parameter has one place: a plan that updates it
// early must not read its old version later, also not from a copy.
TEST(Solve, ReadsNothingAfterItsUpdateWithoutAddresses) {
  int plans = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Problem problem =
        RandomProblem(seed, 6 + static_cast<int>(seed % 40), true, true);
    problem.addresses = false;
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << seed << ": " << all.status();
    for (int percent : {80, 70, 60, 50, 40}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, " at ", percent, " %"));
      SolveOptions options;
      options.budget_bytes = Percent(*all, percent);
      options.work_limit = kWork;
      options.bound_work_limit = 0;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      if (!plan.ok()) continue;
      ++plans;
      EXPECT_EQ(Verify(problem, *plan), absl::OkStatus());
      EXPECT_FALSE(ReadsAfterUpdate(problem, *plan));
    }
  }
  EXPECT_GT(plans, 150);
}

// Without copies the search has other means; what is proven stays the same.
TEST(Solve, WritesBoundsThatDoNotDependOnTheOptions) {
  int plans = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Problem problem = SeededProblem(seed);
    AddRandomChoices(seed, problem);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    const absl::StatusOr<PeakFloor> floor = FindPeakFloor(
        problem, {.permissions = {.lossy = true, .inexact = true}});
    for (int means = 0; means < 8; ++means) {
      SolveOptions options;
      options.budget_bytes = Percent(*all, 90);
      options.work_limit = 2'000;
      options.bound_work_limit = 0;
      options.allow_recompute = (means & 1) != 0;
      options.allow_offload = (means & 2) != 0;
      if ((means & 4) != 0)
        options.permissions = {.lossy = true, .inexact = true};
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      if (!plan.ok()) {
        EXPECT_EQ(InfeasibilityOf(plan.status())->proven_bound_bytes,
                  floor->bytes);
        continue;
      }
      ++plans;
      EXPECT_EQ(plan->bounds.peak_bytes, floor->bytes);
      EXPECT_EQ(all->bounds.peak_bytes, floor->bytes);
    }
  }
  EXPECT_GT(plans, 80);
}

TEST(Solve, CopiesThatStopComputeRunAlone) {
  int copied = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Problem problem = RandomProblem(seed, 8 + static_cast<int>(seed % 30),
                                    seed % 3 != 0, true);
    problem.machine->copies_exclude_compute = true;
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << seed << ": " << all.status();
    SolveOptions options;
    options.budget_bytes = Percent(*all, 60);
    options.work_limit = kWork;
    options.bound_work_limit = 0;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    if (!plan.ok()) continue;
    const Machine& machine = *problem.machine;
    double alone_ns = static_cast<double>(plan->predicted.compute_ns);
    for (const Step& step : plan->steps) {
      if (step.kind != StepKind::kCopy) continue;
      ++copied;
      const Link& link = step.lane == Lane::kD2h ? machine.d2h : machine.h2d;
      alone_ns += static_cast<double>(link.latency_ns) +
                  static_cast<double>(machine.copy_overhead_ns) +
                  static_cast<double>(plan->buffer(step.from).bytes) * 1e9 /
                      link.bytes_per_s;
    }
    EXPECT_NEAR(static_cast<double>(plan->predicted.step_ns), alone_ns, 1)
        << "seed " << seed;
  }
  EXPECT_GT(copied, 20);
}

// Of a plan for a machine where each copy costs computing so much.
struct Switching {
  int64_t copies = 0;
  int64_t step_ns = 0;
};

absl::StatusOr<Switching> PlanSwitching(Problem problem, int64_t overhead_ns,
                                        int64_t budget_bytes) {
  problem.machine->copy_overhead_ns = overhead_ns;
  SolveOptions options;
  options.budget_bytes = budget_bytes;
  options.work_limit = kWork;
  options.bound_work_limit = 0;
  const absl::StatusOr<Plan> plan = Solve(problem, options);
  if (!plan.ok()) return plan.status();
  Switching found{.step_ns = plan->predicted.step_ns};
  for (const Step& step : plan->steps) {
    found.copies += step.kind == StepKind::kCopy;
  }
  return found;
}

TEST(Solve, CopiesAreWorthWhatTheyCostComputing) {
  int64_t copies = 0, fewer = 0;
  double free_ns = 0, dear_ns = 0;  // what both come to where copies cost that
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem = RandomProblem(seed, 8 + static_cast<int>(seed % 30),
                                          seed % 3 != 0, true);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << seed << ": " << all.status();
    const int64_t overhead_ns = all->predicted.step_ns / 50;
    const int64_t bytes = Percent(*all, 60);
    const absl::StatusOr<Switching> free = PlanSwitching(problem, 0, bytes);
    const absl::StatusOr<Switching> dear =
        PlanSwitching(problem, overhead_ns, bytes);
    if (!free.ok() || !dear.ok()) continue;
    copies += free->copies;
    fewer += dear->copies;
    free_ns += static_cast<double>(free->step_ns + overhead_ns * free->copies);
    dear_ns += static_cast<double>(dear->step_ns);
  }
  EXPECT_LT(fewer, copies * 3 / 4);
  EXPECT_GT(fewer, 0);
  EXPECT_LT(dear_ns, free_ns);
}

TEST(Solve, KeepEverythingsArenaIsEnoughForNoOverhead) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    SolveOptions options;
    options.budget_bytes = all->budget_bytes;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.status();
    EXPECT_EQ(plan->predicted.step_ns, all->predicted.step_ns) << seed;
  }
}

TEST(Solve, FlagsForbidRecomputationAndCopies) {
  int met[4] = {};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    for (int flags = 0; flags < 4; ++flags) {
      SolveOptions options;
      // With nothing allowed, only the order can save bytes.
      options.budget_bytes = Percent(*all, flags == 0 ? 100 : 75);
      options.work_limit = kWork;
      options.bound_work_limit = 0;
      options.allow_recompute = (flags & 1) != 0;
      options.allow_offload = (flags & 2) != 0;
      const absl::StatusOr<Plan> plan = Solve(problem, options);
      if (!plan.ok()) continue;
      ++met[flags];
      if (!options.allow_recompute) {
        EXPECT_EQ(plan->predicted.recompute_ns, 0);
        EXPECT_EQ(plan->sequence.size(), problem.nodes.size());
      }
      if (!options.allow_offload) {
        EXPECT_EQ(plan->predicted.d2h_bytes + plan->predicted.h2d_bytes, 0);
      }
    }
  }
  for (int flags = 0; flags < 4; ++flags) EXPECT_GE(met[flags], 5) << flags;
}

TEST(Solve, SameInputAndSeedGiveTheSameBytes) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    SolveOptions options;
    options.budget_bytes = Percent(*all, 65);
    options.work_limit = kWork;
    options.seed = seed;
    const absl::StatusOr<Plan> one = Solve(problem, options);
    const absl::StatusOr<Plan> two = Solve(problem, options);
    ASSERT_EQ(one.ok(), two.ok());
    if (!one.ok()) {
      EXPECT_EQ(one.status().message(), two.status().message());
      continue;
    }
    EXPECT_EQ(PlanToJson(*one, problem), PlanToJson(*two, problem));
    ++met;
  }
  EXPECT_GE(met, 5);
}

TEST(Solve, LessWorkForTheBoundChangesNoPlan) {
  int weaker = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Problem problem = SeededProblem(seed);
    problem.machine.reset();
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    SolveOptions options;
    options.budget_bytes = Percent(*all, seed % 2 == 0 ? 80 : 60);
    options.work_limit = kWork;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    options.bound_work_limit = 0;
    absl::StatusOr<Plan> quick = Solve(problem, options);
    ASSERT_EQ(plan.ok(), quick.ok());
    if (!plan.ok()) continue;
    EXPECT_LE(quick->bounds.step_ns, plan->bounds.step_ns);
    weaker += quick->bounds.step_ns < plan->bounds.step_ns;
    quick->bounds = plan->bounds;
    quick->certificate = plan->certificate;
    EXPECT_EQ(PlanToJson(*quick, problem), PlanToJson(*plan, problem));
  }
  EXPECT_GT(weaker, 0);
}

TEST(Solve, BothMeansAreNeverWorseThanEachAlone) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem = SeededProblem(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok());
    for (int percent : {80, 63, 50}) {
      SolveOptions options;
      options.budget_bytes = Percent(*all, percent);
      options.work_limit = kWork;
      options.bound_work_limit = 0;
      const absl::StatusOr<Plan> both = Solve(problem, options);
      for (bool recompute : {false, true}) {
        options.allow_recompute = recompute;
        options.allow_offload = !recompute;
        const absl::StatusOr<Plan> alone = Solve(problem, options);
        if (!alone.ok()) continue;
        ++compared;
        ASSERT_TRUE(both.ok()) << seed << " at " << percent << " %";
        EXPECT_LE(both->predicted.step_ns, alone->predicted.step_ns)
            << seed << " at " << percent << " %";
      }
    }
  }
  EXPECT_GT(compared, 60);
}

// Every node reads one or two of the twenty before it: the peak is a matter of
// order, and nothing can be copied.
Problem ProblemOfOrders(uint64_t seed) {
  TestRandom random(seed);
  Problem problem;
  problem.name = "orders";
  problem.addresses = false;
  problem.alignment_bytes = 1;
  for (int i = 0; i < 50; ++i) {
    problem.values.push_back({.file_id = i,
                              .name = absl::StrCat("v", i),
                              .bytes = random.In(1, 50)});
    Node node;
    node.file_id = i;
    node.name = absl::StrCat("n", i);
    node.time_ns = random.In(100, 1000);
    node.outputs = {ValueId{i}};
    const int64_t first = random.In(std::max(0, i - 20), std::max(0, i - 1));
    const int64_t second = random.In(std::max(0, i - 20), std::max(0, i - 1));
    if (i > 0) node.inputs.push_back(ValueId{static_cast<int>(first)});
    if (first != second) {
      node.inputs.push_back(ValueId{static_cast<int>(second)});
    }
    problem.nodes.push_back(std::move(node));
  }
  problem.outputs = {ValueId{49}};
  return problem;
}

TEST(Solve, RecomputationIsNeverWorseThanOrdersAlone) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Problem problem = ProblemOfOrders(seed);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << all.status();
    for (int percent : {92, 86, 80, 74}) {
      SolveOptions options;
      options.budget_bytes = all->predicted.peak_bytes * percent / 100;
      options.work_limit = kWork;
      options.bound_work_limit = 0;
      options.allow_retries = false;  // the same work for both
      options.allow_recompute = false;
      const absl::StatusOr<Plan> orders = Solve(problem, options);
      if (!orders.ok()) break;
      ++compared;
      options.allow_recompute = true;
      const absl::StatusOr<Plan> both = Solve(problem, options);
      ASSERT_TRUE(both.ok()) << seed << " at " << percent << " %";
      EXPECT_LE(both->predicted.step_ns, orders->predicted.step_ns)
          << seed << " at " << percent << " %";
    }
  }
  EXPECT_GT(compared, 10);
}

// As if the machine had become slower in all it does.
Problem Slower(Problem problem, int64_t factor) {
  for (Node& node : problem.nodes) node.time_ns *= factor;
  for (Link* link : {&problem.machine->d2h, &problem.machine->h2d}) {
    link->bytes_per_s /= static_cast<double>(factor);
    link->latency_ns *= factor;
  }
  problem.machine->copy_overhead_ns *= factor;
  return problem;
}

TEST(Reprice, KeepsTheStepsAndTakesTheNewPrices) {
  int repriced = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Problem problem = RandomProblem(seed, 20, true, true);
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    ASSERT_TRUE(all.ok()) << all.status();
    SolveOptions options;
    options.budget_bytes = Percent(*all, 70);
    options.work_limit = kWork;
    const absl::StatusOr<Plan> plan = Solve(problem, options);
    if (!plan.ok()) continue;
    ++repriced;
    const Problem slower = Slower(problem, 3);
    const absl::StatusOr<Plan> again = Reprice(slower, *plan, options);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(Verify(slower, *again).ok()) << Verify(slower, *again);
    EXPECT_FALSE(Verify(problem, *again).ok());
    EXPECT_EQ(again->sequence, plan->sequence);
    EXPECT_EQ(again->predicted.peak_bytes, plan->predicted.peak_bytes);
    EXPECT_EQ(again->predicted.compute_ns, 3 * plan->predicted.compute_ns);
    EXPECT_NEAR(static_cast<double>(again->predicted.step_ns),
                3.0 * static_cast<double>(plan->predicted.step_ns),
                3.0 * static_cast<double>(plan->steps.size()));
    EXPECT_LE(again->bounds.step_ns, again->predicted.step_ns);
    EXPECT_GT(again->bounds.step_ns, plan->bounds.step_ns);
  }
  EXPECT_GE(repriced, 8);
}

TEST(Reprice, RefusesAnotherProblem) {
  const Problem problem = RandomProblem(3, 20, true, true);
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  ASSERT_TRUE(all.ok()) << all.status();
  const Problem other = RandomProblem(4, 30, true, true);
  EXPECT_FALSE(Reprice(other, *all, {}).ok());
}

TEST(Solve, NegativeBudgetAndWorkAreInvalid) {
  SolveOptions budget, work, bound_work;
  budget.budget_bytes = -1;
  work.work_limit = -1;
  bound_work.bound_work_limit = -1;
  for (const SolveOptions& options : {budget, work, bound_work}) {
    EXPECT_EQ(Solve(SeededProblem(1), options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace loadline::planner
