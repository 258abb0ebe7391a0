// Copies take time on their lanes, and lanes take the step's.
#include "planner/bound/bound_lanes.h"

#include <algorithm>

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

TEST(AddLaneRows, OneCopyOutAndBackIsNeverBothLanesAtOnce) {
  Problem problem = LineProblemWithCopies();
  for (Node& node : problem.nodes) node.time_ns = 1;
  problem.machine->d2h.latency_ns = problem.machine->h2d.latency_ns = 0;
  for (const double factor : {0.5, 0.625, 0.75, 0.875}) {
    problem.machine->d2h_h2d_factor = factor;
    const SearchModel model = MakeSearchModel(problem, true, true);
    ProgramParts parts(model, {.cuts = {2}, .horizon_ns = 1000});
    AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
    const ValueColumn& a = *parts.values.Find(1, 1);
    const double extra_ns =
        parts.LeastCost({{a.host, 1}, {a.in, 1}}).value_or(-1);
    EXPECT_NEAR(extra_ns, 10 + 5 - 4, 1e-6) << factor;
  }
}

TEST(AddLaneRows, CountsTheOverheadOfACopyOutAndBack) {
  Problem problem = LineProblemWithCopies();
  const auto extra_ns = [&](int64_t overhead_ns, double horizon_ns) {
    problem.machine->copy_overhead_ns = overhead_ns;
    const SearchModel model = MakeSearchModel(problem, true, true);
    ProgramParts parts(model, {.cuts = {2}, .horizon_ns = horizon_ns});
    AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
    const ValueColumn& a = *parts.values.Find(1, 1);
    return parts.LeastCost({{a.host, 1}, {a.in, 1}}).value_or(-1);
  };
  const double lanes_ns = extra_ns(0, 1000);
  EXPECT_NEAR(extra_ns(7, 1000), lanes_ns + 2 * 7, 1e-6);
  // No more than the horizon for each, so that coefficients stay small.
  EXPECT_LT(extra_ns(INT64_MAX, 1000), 3000);
  EXPECT_GT(extra_ns(INT64_MAX, 1000), 1000);
}

// y goes out before the cut at G while w comes in; w' goes out afterwards.
// 10 and 10 ns out and 5 ns in, alone.
TEST(AddLaneRows, BothLanesTogetherDoTwiceTheFactorOfOne) {
  Problem problem = WeightProblem();
  for (Node& node : problem.nodes) node.time_ns = 0;
  problem.values[2].offload = true;
  problem.machine->d2h.latency_ns = problem.machine->h2d.latency_ns = 0;
  for (const double factor : {1.0, 0.875, 0.75, 0.625, 0.5625, 0.5, 0.25}) {
    problem.machine->d2h_h2d_factor = factor;
    const SearchModel model = MakeSearchModel(problem, true, true);
    ProgramParts parts(model, {.cuts = {1}, .horizon_ns = 1000});
    AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
    const double extra_ns =
        parts
            .LeastCost({{parts.chains.chains()[0].home_host, 1},
                        {parts.values.Find(2, 1)->host, 1}})
            .value_or(-1);
    EXPECT_NEAR(extra_ns, std::max(20.0, 25 / std::max(1.0, 2 * factor)), 1e-6)
        << factor;
  }
}

// The same with 4 ns of latency for each copy, and y comes back. A copy does
// not slow the other lane down while it waits: 30 ns of moving bytes remain.
TEST(AddLaneRows, LatenciesAreNotShared) {
  Problem problem = WeightProblem();
  for (Node& node : problem.nodes) node.time_ns = 0;
  problem.values[2].offload = true;
  for (const double factor : {1.0, 0.75, 0.5, 0.25}) {
    problem.machine->d2h_h2d_factor = factor;
    const SearchModel model = MakeSearchModel(problem, true, true);
    ProgramParts parts(model, {.cuts = {1}, .horizon_ns = 1000});
    AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
    const ValueColumn& y = *parts.values.Find(2, 1);
    const double extra_ns =
        parts
            .LeastCost({{parts.chains.chains()[0].home_host, 1},
                        {y.host, 1},
                        {y.in, 1}})
            .value_or(-1);
    EXPECT_NEAR(extra_ns, std::max(28.0, 30 / std::max(1.0, 2 * factor)), 1e-6)
        << factor;
  }
}

// The weight moves while nothing computes, with a cut at G: 5 ns in, 10 out.
double WeightExtraNs(bool on_host) {
  Problem problem = WeightProblem();
  for (Node& node : problem.nodes) node.time_ns = 0;
  problem.machine->d2h.latency_ns = problem.machine->h2d.latency_ns = 0;
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {1}, .horizon_ns = 1000});
  AddLaneRows(parts.context, *parts.times, parts.values, parts.chains);
  const ChainColumn& w = parts.chains.chains()[0];
  return parts
      .LeastCost({{w.home_host, on_host ? 1 : 0}, {w.keep[1], on_host ? 1 : 0}})
      .value_or(-1);
}

TEST(AddLaneRows, AWeightOnTheHostComesInBeforeTheCutAndGoesOutAfterIt) {
  EXPECT_NEAR(WeightExtraNs(true), 5 + 10, 1e-6);
}

TEST(AddLaneRows, AWeightThatIsAwayAtTheCutWentOutBeforeItAndComesInAfter) {
  EXPECT_NEAR(WeightExtraNs(false), 10 + 5, 1e-6);
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
