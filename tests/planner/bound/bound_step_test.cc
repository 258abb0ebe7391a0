// The stages of BoundStepAt: each can be switched off, each is worth something.
#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "planner/solve/solve.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

BoundTuning NoStages() {
  BoundTuning tuning;
  tuning.linear_stage = tuning.exact_stage = tuning.span_stage = false;
  tuning.joint_stage = tuning.free_stage = false;
  return tuning;
}

// Halfway between the least peak and that of keeping everything.
StepBoundOptions Tight(const Problem& problem, const SearchModel& model) {
  const absl::StatusOr<Plan> all = KeepEverything(problem);
  EXPECT_TRUE(all.ok()) << all.status();
  const int64_t least_bytes = BoundPeak(model).bytes;
  StepBoundOptions options;
  options.budget_bytes =
      least_bytes + (all->predicted.peak_bytes - least_bytes) / 3;
  return options;
}

TEST(BoundTuning, WithoutStagesOnlyTheRankingProves) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = RandomProblem(seed, 20, true, seed % 2 == 0);
    const SearchModel model = MakeSearchModel(problem, true, true);
    StepBoundOptions options = Tight(problem, model);
    options.tuning = NoStages();
    const StepBound none = BoundStepAt(model, options);
    EXPECT_EQ(none.work, 0) << seed;
    options.tuning = BoundTuning();
    options.work_limit = 0;
    EXPECT_EQ(none.step_ns, BoundStepAt(model, options).step_ns) << seed;
  }
}

// Is the bound with this stage alone better than with none, somewhere?
int Raised(bool BoundTuning::*stage, bool linear_too) {
  int raised = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const Problem problem = RandomProblem(seed, 14, seed % 2 == 0, false);
    const SearchModel model = MakeSearchModel(problem, true, true);
    StepBoundOptions options = Tight(problem, model);
    options.tuning = NoStages();
    options.tuning.linear_stage = linear_too;
    const StepBound none = BoundStepAt(model, options);
    options.tuning.*stage = true;
    const StepBound one = BoundStepAt(model, options);
    EXPECT_GE(one.step_ns, none.step_ns) << seed;
    raised += one.step_ns > none.step_ns;
  }
  return raised;
}

TEST(BoundTuning, EveryStageRaisesSomeBound) {
  EXPECT_GT(Raised(&BoundTuning::linear_stage, false), 0);
  EXPECT_GT(Raised(&BoundTuning::exact_stage, true), 0);
  EXPECT_GT(Raised(&BoundTuning::span_stage, false), 0);
  EXPECT_GT(Raised(&BoundTuning::joint_stage, false), 0);
  EXPECT_GT(Raised(&BoundTuning::free_stage, false), 0);
}

TEST(BoundTuning, NoCutsProveNothingBeyondTheRanking) {
  const Problem problem = RandomProblem(3, 20, true, false);
  const SearchModel model = MakeSearchModel(problem, true, true);
  StepBoundOptions options = Tight(problem, model);
  options.tuning.linear_cuts = 0;
  options.tuning.joint_cuts.clear();
  options.tuning.free_cuts = 0;
  options.tuning.span_stage = false;
  EXPECT_EQ(BoundStepAt(model, options).work, 0);
}

// A known plan that is faster than any can be must not lower the bound: a bound
// above a plan shows that one of them is wrong.
TEST(BoundStepAt, StoppedAtOnceProvesWhatNeedsNoSolver) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = RandomProblem(seed, 20, true, seed % 2 == 0);
    const SearchModel model = MakeSearchModel(problem, true, true);
    StepBoundOptions options = Tight(problem, model);
    options.work_limit = 0;
    const StepBound none = BoundStepAt(model, options);
    options.work_limit = 15'000;
    options.stop.deadline = absl::InfinitePast();
    EXPECT_EQ(BoundStepAt(model, options).step_ns, none.step_ns) << seed;
  }
}

TEST(BoundStepAt, IsNotCappedAtTheKnownPlan) {
  int above = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem problem =
        RandomProblem(seed, 8 + static_cast<int>(seed % 20), false, false);
    const SearchModel model = MakeSearchModel(problem, true, false);
    StepBoundOptions options;
    options.budget_bytes =
        KeepEverything(problem)->predicted.peak_bytes / 100 * 70;
    options.known_step_ns = BoundStep(model) + 1;
    above += BoundStepAt(model, options).step_ns > options.known_step_ns;
  }
  EXPECT_GT(above, 5);
}

}  // namespace
}  // namespace loadline::planner
