// Readers find their inputs, and nothing is on the device that did not come.
#include "planner/bound/bound_needs.h"

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

TEST(AddNeedRows, AValueThatIsDroppedIsMadeAgainForItsReader) {
  Problem problem = LineProblem();
  {
    const SearchModel model = MakeSearchModel(problem, true, true);
    ProgramParts parts(model, {.cuts = {2}});
    AddNeedRows(parts.context, parts.tracked, parts.values);
    const int keep = parts.values.Find(1, 1)->keep;
    EXPECT_EQ(parts.LeastCost({{keep, 1}}), 0);
    EXPECT_EQ(parts.LeastCost({{keep, 0}}), 5);
  }
  problem.nodes[0].recompute = false;
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}});
  AddNeedRows(parts.context, parts.tracked, parts.values);
  EXPECT_FALSE(
      parts.LeastCost({{parts.values.Find(1, 1)->keep, 0}}).has_value());
}

// E: a, c -> e runs after the first cut, before or after the second.
TEST(AddNeedRows, AReaderInOneOfSeveralEpochsTakesAnyArrival) {
  Problem problem = LineProblem();
  Value e = problem.values[1];
  e.file_id = 5;
  e.name = "e";
  problem.values.push_back(e);
  problem.nodes[3].inputs = {ValueId{3}};
  const ValueId a{1}, c{3}, made{5};
  problem.nodes.push_back({4, "E", 1, {a, c}, {made}, 0, true, {}, {}});
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2, 3}});
  AddNeedRows(parts.context, parts.tracked, parts.values);
  EXPECT_EQ(parts.epochs.From(4), 1);
  EXPECT_EQ(parts.epochs.Until(4), 3);
  const int keep = parts.values.Find(1, 1)->keep;
  const int first = parts.values.reruns().at({1, 0});
  const int second = parts.values.reruns().at({2, 0});
  EXPECT_EQ(parts.LeastCost({{keep, 0}, {first, 0}, {second, 1}}), 5);
  EXPECT_FALSE(
      parts.LeastCost({{keep, 0}, {first, 0}, {second, 0}}).has_value());
}

TEST(AddNeedRows, AnOutputIsThereAtTheEnd) {
  Problem problem = LineProblem();
  problem.outputs.push_back(ValueId{2});  // b
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {3}});
  AddNeedRows(parts.context, parts.tracked, parts.values);
  const int keep = parts.values.Find(2, 1)->keep;
  EXPECT_EQ(parts.LeastCost({{keep, 1}}), 0);
  EXPECT_EQ(parts.LeastCost({{keep, 0}}), 7);
}

TEST(AddCarryRows, AnEncodedValueStaysEncoded) {
  Problem problem = LineProblem();
  problem.values[1].stash = {{"half", 5, 2, 3, true, 0}};
  problem.nodes[1].inplace = {{ValueId{1}, ValueId{2}}};
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {1, 2}});
  AddCarryRows(parts.context, parts.values);
  const ValueColumn& now = *parts.values.Find(1, 1);
  const ValueColumn& later = *parts.values.Find(1, 2);
  // One encode; no decode, no rerun.
  EXPECT_EQ(parts.LeastCost({{now.keep, 0},
                             {now.encoded[0], 1},
                             {now.decode[0], 0},
                             {parts.values.reruns().at({1, 0}), 0},
                             {later.encoded[0], 1}}),
            2);
}

TEST(AddCarryRows, WhatIsThereAtTheNextCutWasThereOrCame) {
  const Problem problem = LineProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {1, 2}});
  AddCarryRows(parts.context, parts.values);
  const int now = parts.values.Find(0, 1)->keep;
  const int later = parts.values.Find(0, 2)->keep;
  EXPECT_TRUE(parts.LeastCost({{now, 1}, {later, 0}}).has_value());
  EXPECT_FALSE(parts.LeastCost({{now, 0}, {later, 1}}).has_value());
}

TEST(AddCarryRows, AnEncodedValueWasEncodedOrPlainBefore) {
  Problem problem = LineProblem();
  problem.values[0].stash = {{"half", 0, 2, 3, true, 0}};
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {1, 2}});
  AddCarryRows(parts.context, parts.values);
  const ValueColumn& now = *parts.values.Find(0, 1);
  const ValueColumn& later = *parts.values.Find(0, 2);
  EXPECT_FALSE(
      parts
          .LeastCost(
              {{now.keep, 0}, {now.encoded[0], 0}, {later.encoded[0], 1}})
          .has_value());
  EXPECT_TRUE(
      parts.LeastCost({{now.keep, 1}, {later.encoded[0], 1}}).has_value());
}

TEST(AddCarryRows, WhatHasBeenCopiedOutStaysSo) {
  const Problem problem = LineProblemWithCopies();
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {1, 2}, .horizon_ns = 1000});
  AddCarryRows(parts.context, parts.values);
  const int now = parts.values.Find(1, 1)->host;
  const int later = parts.values.Find(1, 2)->host;
  EXPECT_FALSE(parts.LeastCost({{now, 1}, {later, 0}}).has_value());
  EXPECT_TRUE(parts.LeastCost({{now, 0}, {later, 1}}).has_value());
}

}  // namespace
}  // namespace loadline::planner
