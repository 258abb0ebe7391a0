// What a cut has on the device fits the budget, to the byte.
#include "planner/bound/bound_budget.h"

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

// Can a be on the device at the cut (node C unless given) in so many bytes?
bool KeepsA(const Problem& problem, int64_t budget_bytes, int cut = 2) {
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(
      model, {.cuts = {cut}, .budget_bytes = budget_bytes, .horizon_ns = 1000});
  AddBudgetRows(parts.context, parts.values, parts.chains);
  return parts.LeastCost({{parts.values.Find(1, 1)->keep, 1}}).has_value();
}

TEST(AddBudgetRows, CountInputsOutputsWorkspaceAndWhatIsKept) {
  Problem problem = LineProblem();
  EXPECT_TRUE(KeepsA(problem, 30));  // b, c and a
  EXPECT_FALSE(KeepsA(problem, 29));
  problem.nodes[2].workspace_bytes = 3;
  EXPECT_TRUE(KeepsA(problem, 33));
  EXPECT_FALSE(KeepsA(problem, 32));
}

TEST(AddBudgetRows, AnOutputMayTakeOverADeadInput) {
  Problem problem = LineProblem();
  problem.nodes[2].inplace = {{ValueId{2}, ValueId{3}}};
  EXPECT_TRUE(KeepsA(problem, 20));
  EXPECT_FALSE(KeepsA(problem, 19));
  // Not one that is needed afterwards, unless it is made again.
  problem.outputs.push_back(ValueId{2});
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .budget_bytes = 20});
  AddBudgetRows(parts.context, parts.values, parts.chains);
  const int keep_b = parts.values.Find(2, 1)->keep;
  const int keep_a = parts.values.Find(1, 1)->keep;
  EXPECT_TRUE(parts.LeastCost({{keep_a, 1}, {keep_b, 0}}).has_value());
  EXPECT_FALSE(parts.LeastCost({{keep_a, 1}, {keep_b, 1}}).has_value());
}

TEST(AddBudgetRows, TwoOutputsCannotTakeTheSameInput) {
  Problem problem = LineProblem();
  Value e = problem.values[1];
  e.file_id = 5;
  e.name = "e";
  problem.values.push_back(e);
  problem.nodes[2].outputs.push_back(ValueId{5});
  problem.nodes[2].inplace = {{ValueId{2}, ValueId{3}},
                              {ValueId{2}, ValueId{5}}};
  EXPECT_TRUE(KeepsA(problem, 30));  // a, b's bytes, one output
  EXPECT_FALSE(KeepsA(problem, 29));
}

TEST(AddBudgetRows, AnEncodedValueCountsItsOwnBytes) {
  Problem problem = LineProblem();
  problem.values[1].stash = {{"half", 4, 2, 3, true, 0}};
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .budget_bytes = 24});
  AddBudgetRows(parts.context, parts.values, parts.chains);
  const ValueColumn& a = *parts.values.Find(1, 1);
  EXPECT_TRUE(parts.LeastCost({{a.encoded[0], 1}}).has_value());
  EXPECT_FALSE(parts.LeastCost({{a.encoded[0], 1}, {a.keep, 1}}).has_value());
}

TEST(AddBudgetRows, APersistentValueCountsOnceWhereItIs) {
  const Problem problem = WeightProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const auto keeps = [&](int64_t budget_bytes, double keep) {
    ProgramParts parts(
        model, {.cuts = {1}, .budget_bytes = budget_bytes, .horizon_ns = 1000});
    AddBudgetRows(parts.context, parts.values, parts.chains);
    return parts.LeastCost({{parts.chains.chains()[0].keep[1], keep}})
        .has_value();
  };
  EXPECT_TRUE(keeps(30, 1));  // y, g and w
  EXPECT_FALSE(keeps(29, 1));
  EXPECT_TRUE(keeps(20, 0));
  EXPECT_FALSE(keeps(19, 0));
}

}  // namespace
}  // namespace loadline::planner
