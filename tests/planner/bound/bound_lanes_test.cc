// Copies take time on their lanes, and lanes take the step's.
#include "planner/bound/bound_lanes.h"

#include "gtest/gtest.h"
#include "planner/bound/bound_needs.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

constexpr double kComputeNs = 5 + 7 + 11 + 13;
constexpr double kOutNs = 4 + 10;
constexpr double kInNs = 4 + 5;

// Time beyond compute if `a` is on the host and back, or kept, with a cut at C.
double ExtraNs(const Problem& problem, bool copied) {
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .horizon_ns = 1000});
  AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
  const ValueColumn& a = *parts.values.Find(1, 1);
  const double copy = copied ? 1 : 0;
  return parts.LeastCost({{a.host, copy}, {a.in, copy}}).value_or(-1);
}

TEST(AddLaneRows, CopiesThatFitBesideComputeAreFree) {
  // 12 ns run before C and 24 from it on: the copy out takes 14.
  EXPECT_NEAR(ExtraNs(LineProblemWithCopies(), false), 0, 1e-6);
  EXPECT_NEAR(ExtraNs(LineProblemWithCopies(), true), kOutNs - 12, 1e-6);
}

TEST(AddLaneRows, WhatComesBackStartsAfterTheCut) {
  Problem problem = LineProblemWithCopies();
  problem.nodes[0].time_ns = 100;  // time enough for the copy out
  EXPECT_NEAR(ExtraNs(problem, true), 0, 1e-6);
  problem.nodes[2].time_ns = problem.nodes[3].time_ns = 1;
  EXPECT_NEAR(ExtraNs(problem, true), kInNs - 2, 1e-6);
}

TEST(AddLaneRows, ARerunTakesTheComputeLaneOfItsEpoch) {
  Problem problem = LineProblemWithCopies();
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .horizon_ns = 1000});
  AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
  EXPECT_NEAR(*parts.LeastCost({{parts.values.reruns().at({1, 0}), 1}}), 5,
              1e-6);
}

// Both lanes at f of their speed do 2 f (at least 1) of the work of one.
TEST(AddLaneRows, LanesSlowEachOtherDownByAnyFactor) {
  Problem problem = LineProblemWithCopies();
  for (Node& node : problem.nodes) node.time_ns = 1;
  problem.machine->copy_latency_ns = 0;
  const SearchModel model = MakeSearchModel(problem, true, true);
  for (const double factor : {0.25, 0.5, 0.625, 0.75, 0.875}) {
    problem.machine->bidirectional = factor;
    const SearchModel slowed = MakeSearchModel(problem, true, true);
    BoundRows rows(1, 1, true);
    ProgramParts parts(slowed, {.cuts = {2}, .horizon_ns = 1000});
    AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
    const ValueColumn& a = *parts.values.Find(1, 1);
    const double extra_ns =
        parts.LeastCost({{a.host, 1}, {a.in, 1}}).value_or(-1);
    // Out before the cut and back after it: never both at once.
    EXPECT_NEAR(extra_ns, 10 + 5 - 4, 1e-6) << factor;
  }
}

TEST(LaneTimes, SpansEndAtCutsOrWithTheStep) {
  BoundRows rows(2, 1, true);
  const LaneTimes times(1, 30, 100, rows);
  Terms to_cut, to_end;
  EXPECT_EQ(times.AddSpan(0, 1, to_cut), 0);
  ASSERT_EQ(to_cut.size(), 1u);
  EXPECT_EQ(to_cut[0].coefficient, 1);
  EXPECT_EQ(times.AddSpan(1, 2, to_end), 15);
  ASSERT_EQ(to_end.size(), 2u);
  EXPECT_EQ(to_end[0].column, to_cut[0].column);
  EXPECT_EQ(to_end[0].coefficient, -1);
  EXPECT_EQ(to_end[1].column, times.extra());
  EXPECT_EQ(rows.column(times.extra()).cost, 1);
  EXPECT_EQ(rows.column(times.extra()).upper, 35);
}

}  // namespace
}  // namespace loadline::planner
