// A rerun between two cuts fits next to what stays there.
#include "planner/bound/bound_fits.h"

#include "gtest/gtest.h"
#include "planner/bound/bound_needs.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

// s (10 bytes, made once) stays from before the first cut (B) to the end; a is
// dropped at B and made again before the second (C).
Problem StayingProblem() {
  Problem problem = LineProblem();
  Value s = problem.values[1];
  s.file_id = 5;
  s.name = "s";
  problem.values.push_back(s);
  problem.nodes[0].outputs.push_back(ValueId{5});
  problem.outputs.push_back(ValueId{5});
  return problem;
}

// Can s stay from cut to cut while node B runs again in between, in so many
// bytes?
bool RerunFits(const Problem& problem, int64_t budget_bytes, double staying) {
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2, 3}, .budget_bytes = budget_bytes});
  AddCarryRows(parts.context, parts.values);
  AddRerunFitRows(parts.context, parts.values, parts.chains);
  const int s = 5;
  return parts
      .LeastCost({{parts.values.reruns().at({1, 1}), 1},
                  {parts.values.reruns().at({1, 0}), 0},
                  {parts.values.Find(s, 1)->keep, 1},
                  {parts.values.Find(s, 2)->keep, staying}})
      .has_value();
}

TEST(AddRerunFitRows, InputsOutputsAndWorkspaceLieNextToWhatStays) {
  Problem problem = StayingProblem();
  problem.outputs.push_back(ValueId{2});   // b: worth a rerun of B
  EXPECT_TRUE(RerunFits(problem, 30, 1));  // a, b and s
  EXPECT_FALSE(RerunFits(problem, 29, 1));
  EXPECT_TRUE(RerunFits(problem, 20, 0));
  EXPECT_FALSE(RerunFits(problem, 19, 0));
  problem.nodes[1].workspace_bytes = 3;
  EXPECT_TRUE(RerunFits(problem, 33, 1));
  EXPECT_FALSE(RerunFits(problem, 32, 1));
}

TEST(AddRerunFitRows, APersistentValueThatNeverLeavesTakesItsBytes) {
  Problem problem = StayingProblem();
  problem.outputs.push_back(ValueId{2});
  Value p = problem.values[1];
  p.file_id = 6;
  p.name = "p";
  p.bytes = 4;
  p.persistent = true;
  problem.values.push_back(p);
  EXPECT_TRUE(RerunFits(problem, 34, 1));
  EXPECT_FALSE(RerunFits(problem, 33, 1));
  // Once, also if the rerun reads it.
  problem.nodes[1].inputs.push_back(ValueId{6});
  EXPECT_TRUE(RerunFits(problem, 34, 1));
  EXPECT_FALSE(RerunFits(problem, 33, 1));
}

TEST(AddRerunFitRows, WhatStaysAndIsReadCountsOnce) {
  Problem problem = StayingProblem();
  problem.outputs.push_back(ValueId{2});
  problem.nodes[1].inputs.push_back(ValueId{5});
  EXPECT_TRUE(RerunFits(problem, 30, 1));  // a, b and s
  EXPECT_FALSE(RerunFits(problem, 29, 1));
}

TEST(AddRerunFitRows, AnOutputThatMayBeInPlaceCountsNothing) {
  Problem problem = StayingProblem();
  problem.outputs.push_back(ValueId{2});
  problem.nodes[1].inplace = {{ValueId{1}, ValueId{2}}};
  EXPECT_TRUE(RerunFits(problem, 20, 1));
  EXPECT_FALSE(RerunFits(problem, 19, 1));
}

TEST(AddRerunFitRows, AValueThatArrivesInTheEpochNeedNotHaveStayed) {
  Problem problem = StayingProblem();
  problem.outputs.push_back(ValueId{2});
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2, 3}, .budget_bytes = 20});
  AddCarryRows(parts.context, parts.values);
  AddRerunFitRows(parts.context, parts.values, parts.chains);
  // A makes s again after the rerun of B.
  EXPECT_TRUE(parts
                  .LeastCost({{parts.values.reruns().at({1, 1}), 1},
                              {parts.values.reruns().at({1, 0}), 1},
                              {parts.values.Find(5, 1)->keep, 1},
                              {parts.values.Find(5, 2)->keep, 1}})
                  .has_value());
}

// A value with a codec may be encoded, dropped and decoded within the epoch.
TEST(AddRerunFitRows, AValueThatIsEncodedInTheEpochNeedNotHaveStayed) {
  Problem problem = StayingProblem();
  problem.outputs.push_back(ValueId{2});
  problem.values[5].stash = {{"half", 1, 2, 3, true, 0}};
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2, 3}, .budget_bytes = 20});
  AddCarryRows(parts.context, parts.values);
  AddRerunFitRows(parts.context, parts.values, parts.chains);
  const ValueColumn& s = *parts.values.Find(5, 1);
  const int later = parts.values.Find(5, 2)->keep;
  ASSERT_EQ(s.recode.size(), 1u);
  EXPECT_TRUE(parts.values.Find(5, 2)->recode.empty());
  const int rerun_b = parts.values.reruns().at({1, 1});
  const int rerun_a = parts.values.reruns().at({1, 0});
  // One encode, one decode, and B.
  EXPECT_EQ(parts.LeastCost({{rerun_b, 1},
                             {rerun_a, 0},
                             {s.keep, 1},
                             {s.encoded[0], 0},
                             {later, 1}}),
            2 + 3 + 7);
  EXPECT_FALSE(parts
                   .LeastCost({{rerun_b, 1},
                               {rerun_a, 0},
                               {s.keep, 1},
                               {s.encoded[0], 0},
                               {s.recode[0], 0},
                               {later, 1}})
                   .has_value());
  // Only what was there can be encoded.
  EXPECT_FALSE(
      parts
          .LeastCost(
              {{rerun_a, 0}, {s.keep, 0}, {s.encoded[0], 0}, {s.recode[0], 1}})
          .has_value());
}

// A value that may be copied may go to the host and back within the epoch.
TEST(AddRerunFitRows, AValueThatMayBeCopiedNeedNotHaveStayed) {
  Problem problem = StayingProblem();
  problem.outputs.push_back(ValueId{2});
  problem.machine = LineProblemWithCopies().machine;
  for (Value& value : problem.values) value.offload = value.name == "s";
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model,
                     {.cuts = {2, 3}, .budget_bytes = 20, .horizon_ns = 1000});
  AddCarryRows(parts.context, parts.values);
  AddRerunFitRows(parts.context, parts.values, parts.chains);
  EXPECT_TRUE(parts
                  .LeastCost({{parts.values.reruns().at({1, 1}), 1},
                              {parts.values.reruns().at({1, 0}), 0},
                              {parts.values.Find(5, 1)->keep, 1},
                              {parts.values.Find(5, 2)->keep, 1}})
                  .has_value());
}

}  // namespace
}  // namespace loadline::planner
