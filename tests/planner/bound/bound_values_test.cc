// What each way of bringing a value back needs and costs.
#include "planner/bound/bound_values.h"

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

TEST(ValueColumns, ARerunCostsItsNodeAndNeedsItsInputs) {
  Problem problem = LineProblem();
  problem.outputs.push_back(ValueId{2});  // b is needed after the cut at C
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}});
  const int rerun_a = parts.values.reruns().at({1, 0});
  const int rerun_b = parts.values.reruns().at({1, 1});
  const int keep_a = parts.values.Find(1, 1)->keep;
  EXPECT_EQ(parts.LeastCost({{rerun_b, 1}, {keep_a, 1}}), 7);
  EXPECT_EQ(parts.LeastCost({{rerun_b, 1}, {keep_a, 0}}), 7 + 5);
  EXPECT_FALSE(
      parts.LeastCost({{rerun_b, 1}, {keep_a, 0}, {rerun_a, 0}}).has_value());
}

TEST(ValueColumns, HaveNoRerunOfWhatMayRunOnlyOnce) {
  Problem problem = LineProblem();
  problem.nodes[0].recompute = false;
  const SearchModel model = MakeSearchModel(problem, true, true);
  const ProgramParts parts(model, {.cuts = {2}});
  EXPECT_TRUE(parts.values.reruns().empty());
  EXPECT_EQ(parts.values.Arrivals(1, 1).size(), 0u);
}

TEST(ValueColumns, ADecodeNeedsTheEncodedValueAndOneEncode) {
  Problem problem = LineProblem();
  problem.values[1].stash = {{"half", 5, 2, 3, true, 0}};
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {1, 2}});
  const ValueColumn& first = *parts.values.Find(1, 1);
  const ValueColumn& second = *parts.values.Find(1, 2);
  EXPECT_FALSE(parts.LeastCost({{first.decode[0], 1}, {first.encoded[0], 0}})
                   .has_value());
  EXPECT_EQ(parts.LeastCost({{first.decode[0], 1}}), 2 + 3);
  EXPECT_EQ(parts.LeastCost({{first.decode[0], 1}, {second.decode[0], 1}}),
            2 + 3 + 3);
}

TEST(ValueColumns, AnEncodeBeforeACutOffSpanIsFree) {
  Problem problem = LineProblem();
  problem.values[1].stash = {{"half", 5, 2, 3, true, 0}};
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .until = 3});
  EXPECT_EQ(parts.LeastCost({{parts.values.Find(1, 1)->decode[0], 1}}), 3);
}

TEST(ValueColumns, ACopyBackNeedsACopyOut) {
  const Problem problem = LineProblemWithCopies();
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .horizon_ns = 1000});
  const ValueColumn& a = *parts.values.Find(1, 1);
  EXPECT_FALSE(parts.LeastCost({{a.in, 1}, {a.host, 0}}).has_value());
  EXPECT_TRUE(parts.LeastCost({{a.in, 1}, {a.host, 1}}).has_value());
  EXPECT_EQ(parts.values.Find(0, 1)->in, -1);
}

TEST(ValueColumns, WhatACutReadsIsThereUnlessItMayBeOverwritten) {
  Problem problem = LineProblem();
  const auto may_be_away = [&] {
    const SearchModel model = MakeSearchModel(problem, true, true);
    ProgramParts parts(model, {.cuts = {1}});
    return parts.LeastCost({{parts.values.Find(1, 1)->keep, 0}}).has_value();
  };
  EXPECT_FALSE(may_be_away());
  problem.nodes[1].inplace = {{ValueId{1}, ValueId{2}}};
  EXPECT_TRUE(may_be_away());
}

}  // namespace
}  // namespace loadline::planner
