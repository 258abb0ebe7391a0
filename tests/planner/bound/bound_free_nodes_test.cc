// Which nodes may run on either side of a cut.
#include "planner/bound/bound_free_nodes.h"

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

// LineProblem and E: in -> e, F: e -> f, neither before nor after C.
Problem ForkedProblem() {
  Problem problem = LineProblem();
  for (int v = 5; v < 7; ++v) {
    Value value = problem.values[1];
    value.file_id = v;
    value.name = v == 5 ? "e" : "f";
    problem.values.push_back(value);
  }
  const ValueId in{0}, e{5}, f{6};
  problem.nodes.push_back({4, "E", 1, {in}, {e}, 0, true, {}, {}});
  problem.nodes.push_back({5, "F", 1, {e}, {f}, 0, true, {}, {}});
  return problem;
}

TEST(FreeNodes, AreThoseThatAreNeitherBeforeNorAfterTheCut) {
  const Problem problem = ForkedProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  const ProgramParts parts(model, {.cuts = {2}, .free_nodes = true});
  for (int n = 0; n < 4; ++n) EXPECT_FALSE(parts.free.Has(n)) << n;
  EXPECT_TRUE(parts.free.Has(4));
  EXPECT_TRUE(parts.free.Has(5));
}

TEST(FreeNodes, RunInOrder) {
  const Problem problem = ForkedProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  ProgramParts parts(model, {.cuts = {2}, .free_nodes = true});
  const int e = parts.free.Ran(4);
  const int f = parts.free.Ran(5);
  EXPECT_TRUE(parts.LeastCost({{e, 1}, {f, 0}}).has_value());
  EXPECT_FALSE(parts.LeastCost({{e, 0}, {f, 1}}).has_value());
}

TEST(FreeNodes, AreNoneWithTwoCutsOrUnlessAskedFor) {
  const Problem problem = ForkedProblem();
  const SearchModel model = MakeSearchModel(problem, true, true);
  EXPECT_FALSE(
      ProgramParts(model, {.cuts = {1, 2}, .free_nodes = true}).free.enabled());
  EXPECT_FALSE(ProgramParts(model, {.cuts = {2}}).free.Has(4));
}

}  // namespace
}  // namespace loadline::planner
