// HiGHS behind planner/bound/mip.h: optima by brute force over all 0-1 points,
// and bounds that hold wherever the work limit stops it.
#include "planner/bound/mip.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

// Covering rows and one knapsack row over `count` 0-1 columns.
MipProgram RandomProgram(uint64_t seed, int count, int rows) {
  TestRandom random(seed);
  MipProgram program;
  std::vector<Term> knapsack;
  double all = 0;
  for (int c = 0; c < count; ++c) {
    program.AddColumn(static_cast<double>(random.In(1, 30)), 0, 1, true);
    const double weight = static_cast<double>(random.In(1, 20));
    knapsack.push_back({c, weight});
    all += weight;
  }
  for (int r = 0; r < rows; ++r) {
    std::vector<Term> terms;
    for (int c = 0; c < count; ++c) {
      if (random.OneIn(3)) {
        terms.push_back({c, static_cast<double>(random.In(1, 9))});
      }
    }
    if (!terms.empty()) {
      program.AddRow(static_cast<double>(random.In(1, 12)), kNoLimit, terms);
    }
  }
  program.AddRow(-kNoLimit, all * 0.8, knapsack);
  return program;
}

// Least cost of all 0-1 points; kNoLimit: none satisfies the rows.
double LeastCost(const MipProgram& program) {
  double least = kNoLimit;
  const int count = static_cast<int>(program.columns.size());
  for (uint32_t point = 0; point < (uint32_t{1} << count); ++point) {
    double cost = 0;
    for (int c = 0; c < count; ++c) {
      if ((point >> c & 1) != 0) cost += program.columns[c].cost;
    }
    bool fits = cost < least;
    for (size_t r = 0; fits && r < program.rows.size(); ++r) {
      double sum = 0;
      for (const Term& term : program.TermsOf(static_cast<int>(r))) {
        if ((point >> term.column & 1) != 0) sum += term.coefficient;
      }
      fits = sum >= program.rows[r].lower && sum <= program.rows[r].upper;
    }
    if (fits) least = cost;
  }
  return least;
}

TEST(SolveMip, FindsTheOptimumOfSmallPrograms) {
  int possible = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const MipProgram program = RandomProgram(seed, 10, 6);
    const double least = LeastCost(program);
    const MipBound lp = SolveLp(program, {10'000});
    const MipBound mip = SolveMip(program, {10'000}, kNoLimit);
    if (least == kNoLimit) {
      EXPECT_TRUE(mip.infeasible) << seed;
      continue;
    }
    ++possible;
    EXPECT_TRUE(mip.optimal) << seed;
    EXPECT_NEAR(mip.cost, least, 1e-3) << seed;
    EXPECT_FALSE(lp.infeasible) << seed;
    EXPECT_LE(lp.cost, least) << seed;
    EXPECT_GE(lp.cost, 0) << seed;
  }
  EXPECT_GT(possible, 60);
}

TEST(SolveMip, TermsOfOneColumnAddUp) {
  MipProgram program;
  const int x = program.AddColumn(1, 0, 10, true);
  const Term terms[] = {{x, 3}, {x, -1}};
  program.AddRow(6, kNoLimit, terms);  // 2 x >= 6
  EXPECT_EQ(program.terms.size(), 1);
  EXPECT_NEAR(SolveLp(program, {100}).cost, 3, 1e-6);
  EXPECT_NEAR(SolveMip(program, {100}, kNoLimit).cost, 3, 1e-6);
}

// By what dual tolerances of 1e-7 can add: never above the optimum.
TEST(SolveMip, ProvesSlightlyLessThanTheOptimum) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const MipProgram program = RandomProgram(seed, 12, 6);
    const double least = LeastCost(program);
    const MipBound bound = SolveMip(program, {100'000}, kNoLimit);
    ASSERT_EQ(bound.infeasible, least == kNoLimit) << seed;
    if (bound.infeasible) continue;
    ++feasible;
    EXPECT_LT(bound.cost - bound.error, least) << seed;
    EXPECT_GT(bound.cost - bound.error, least * (1 - 1e-5) - 1e-5) << seed;
    // 12 columns from 0 to 1.
    EXPECT_NEAR(bound.error, 12e-7, 1e-9) << seed;
  }
  EXPECT_GE(feasible, 25);
}

TEST(SolveMip, ProvesNothingWhereRangesOrNumbersAreUnlimited) {
  MipProgram program;
  const int x = program.AddColumn(1, 0, kNoLimit, true);
  program.AddRow(3, kNoLimit, {{x, 1}});
  EXPECT_EQ(SolveMip(program, {100}, kNoLimit).error,
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(SolveMip(program, {100}, kNoLimit).x.size(), 1u);
  for (const double huge : {1e13, 1e15, 1e18}) {
    MipProgram large;
    const int y = large.AddColumn(1, 0, 1, true);
    large.AddRow(3, kNoLimit, {{y, huge}});
    EXPECT_EQ(SolveMip(large, {100}, kNoLimit).cost, -kNoLimit);
    EXPECT_EQ(SolveLp(large, {100}).cost, -kNoLimit);
    EXPECT_FALSE(SolveLp(large, {100}).infeasible);
  }
}

TEST(SolveMip, IterationLimitsLeaveAProvenBound) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const MipProgram program = RandomProgram(seed, 40, 40);
    const MipBound whole = SolveMip(program, {1'000'000}, kNoLimit);
    if (whole.infeasible) continue;
    ++feasible;
    ASSERT_TRUE(whole.optimal) << seed;
    for (int64_t limit : {1, 10, 40}) {
      EXPECT_LE(SolveLp(program, {limit}).cost, whole.cost + 1e-6) << seed;
      EXPECT_LE(SolveMip(program, {limit}, kNoLimit).cost, whole.cost + 1e-6)
          << seed;
    }
  }
  EXPECT_GE(feasible, 3);
}

// Stopped at once, in presolve or in the first iteration.
TEST(SolveMip, AStopLeavesAProvenBound) {
  MipLimit stopped = {1'000'000};
  stopped.stop.deadline = absl::InfinitePast();
  int fewer = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const MipProgram program = RandomProgram(seed, 40, 40);
    const MipBound whole = SolveMip(program, {1'000'000}, kNoLimit);
    if (whole.infeasible) continue;
    const MipBound mip = SolveMip(program, stopped, kNoLimit);
    EXPECT_LE(mip.cost, whole.cost + 1e-6) << seed;
    EXPECT_LE(SolveLp(program, stopped).cost, whole.cost + 1e-6) << seed;
    LpSolver solver(program);
    const MipBound lp = solver.Solve(stopped);
    EXPECT_LE(lp.cost, whole.cost + 1e-6) << seed;
    EXPECT_FALSE(lp.infeasible) << seed;
    // What follows is not stopped.
    EXPECT_TRUE(solver.Solve({1'000'000}).optimal) << seed;
    fewer += !mip.optimal && !lp.optimal;
  }
  EXPECT_GE(fewer, 3);
}

}  // namespace
}  // namespace loadline::planner
