// Bounds on step time against the exact optimum of small problems and against
// every plan of the solver on larger ones.
#include "planner/bound.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/solve.h"
#include "tests/planner/oracle.h"
#include "tests/planner/random_problem.h"

namespace loadline::planner {
namespace {

constexpr int64_t kMostStates = 40'000;

// A problem whose optimum the oracle finds: without addresses, and with copy
// rates of a power of two.
Problem SmallProblem(uint64_t seed, bool copies) {
  TestRandom random(seed + 1'000'000);
  const int nodes = copies ? static_cast<int>(random.In(3, 5))
                           : static_cast<int>(random.In(3, 10));
  Problem problem = RandomProblem(seed, nodes, random.OneIn(3), copies);
  problem.addresses = false;
  // Half of them without the choices that the solver does not make.
  for (Node& node : problem.nodes) {
    if (seed % 2 == 0) node.variants.clear();
  }
  for (Value& value : problem.values) {
    if (seed % 2 == 0) value.stash.clear();
  }
  if (problem.machine) {
    const double rates[] = {2e9, 4e9, 8e9, 16e9};
    problem.machine->d2h_bytes_per_s = rates[random.In(0, 3)];
    problem.machine->h2d_bytes_per_s = rates[random.In(0, 3)];
    problem.machine->bidirectional = random.OneIn(2) ? 1.0 : 0.5;
  }
  return problem;
}

struct Tally {
  int solved = 0;     // the oracle knows the optimum
  int dearer = 0;     // of those, slower than compute
  int bound_met = 0;  // of those, the bound is the optimum
  int plan_met = 0;   // of those, the plan is
  int impossible = 0;
  int gave_up = 0;
};

void Compare(const Problem& problem, int64_t budget_bytes, bool solve,
             Tally& tally) {
  const Oracle oracle = FindLeastStep(problem, budget_bytes, kMostStates);
  if (oracle.gave_up) {
    ++tally.gave_up;
    return;
  }
  const Model model = MakeModel(problem, true, true);
  StepBoundOptions options;
  options.budget_bytes = budget_bytes;
  const StepBound bound = BoundStepAt(model, options);
  SolveOptions solve_options;
  solve_options.budget_bytes = budget_bytes;
  solve_options.work_limit = 20'000;
  const absl::StatusOr<Plan> plan =
      solve ? Solve(problem, solve_options) : absl::UnknownError("not asked");
  if (!oracle.step_ns) {
    ++tally.impossible;
    EXPECT_FALSE(plan.ok());
    return;
  }
  ++tally.solved;
  EXPECT_FALSE(bound.no_plan);
  EXPECT_LE(BoundPeak(model).bytes, budget_bytes);
  EXPECT_LE(static_cast<double>(bound.step_ns), *oracle.step_ns + 0.5);
  if (plan.ok()) {
    EXPECT_GE(static_cast<double>(plan->predicted.step_ns),
              *oracle.step_ns - 0.5);
  }
  if (*oracle.step_ns < static_cast<double>(BoundStep(model)) + 0.5) return;
  ++tally.dearer;
  tally.bound_met += static_cast<double>(bound.step_ns) > *oracle.step_ns - 1;
  tally.plan_met += plan.ok() && static_cast<double>(plan->predicted.step_ns) <
                                     *oracle.step_ns + 1;
}

Tally CompareSeeds(uint64_t first, uint64_t last, bool copies) {
  Tally tally;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const Problem problem = SmallProblem(seed, copies);
    if (problem.nodes.size() > 10 || problem.values.size() > 18) continue;
    const absl::StatusOr<Plan> all = KeepEverything(problem);
    EXPECT_TRUE(all.ok()) << seed;
    const int64_t peak_bytes = all->predicted.peak_bytes;
    const int64_t least_bytes = BoundPeak(MakeModel(problem, true, true)).bytes;
    for (int part : {0, 1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", part ", part));
      Compare(problem, least_bytes + (peak_bytes - least_bytes) * part / 4,
              true, tally);
    }
  }
  testing::Test::RecordProperty("solved", tally.solved);
  std::printf(
      "%d optima, %d above compute: bound meets %d, plan meets %d; "
      "%d budgets impossible, %d unknown\n",
      tally.solved, tally.dearer, tally.bound_met, tally.plan_met,
      tally.impossible, tally.gave_up);
  return tally;
}

TEST(BoundStepAt, IsNeverAboveTheOptimumWithoutCopies) {
  const Tally tally = CompareSeeds(1, 300, false);
  EXPECT_GT(tally.solved, 300);
  EXPECT_GT(tally.dearer, 50);
}

TEST(BoundStepAt, IsNeverAboveTheOptimumWithCopies) {
  const Tally tally = CompareSeeds(1, 100, true);
  EXPECT_GT(tally.solved, 100);
  EXPECT_GT(tally.dearer, 20);
}

}  // namespace
}  // namespace loadline::planner
