// The lower bound on the peak, by hand; brute_force_test.cc has random ones.
#include "gtest/gtest.h"
#include "planner/bound/bound.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

PeakBound Bound(const Problem& problem) {
  return BoundPeak(MakeSearchModel(problem, true, true));
}

TEST(BoundPeak, IsTheLargestNodeWithInputsOutputsAndWorkspace) {
  Problem problem = LineProblem();
  PeakBound bound = Bound(problem);
  EXPECT_EQ(bound.bytes, 30);  // D: a, c, d
  EXPECT_EQ(bound.node, 3);
  EXPECT_EQ(bound.values, std::vector<int>({1, 3, 4}));
  problem.nodes[1].workspace_bytes = 11;
  bound = Bound(problem);
  EXPECT_EQ(bound.bytes, 31);
  EXPECT_EQ(bound.node, 1);
}

TEST(BoundPeak, TakesTheLeanestVariantAndInPlaceOutputs) {
  Problem problem = LineProblem();
  problem.nodes[3].workspace_bytes = 7;
  problem.nodes[3].variants = {{"lean", 99, 2, true}};
  problem.nodes[3].inplace = {{ValueId{1}, ValueId{4}}};
  EXPECT_EQ(Bound(problem).bytes, 22);
}

TEST(BoundPeak, CountsAPersistentValueThatNeverLeaves) {
  Problem problem = WeightProblem();
  EXPECT_EQ(Bound(problem).bytes, 20);  // w may be away while G runs
  problem.values[0].offload = problem.values[4].offload = false;
  EXPECT_EQ(Bound(problem).bytes, 30);
}

TEST(BoundPeak, CountsOutputsAtTheEnd) {
  Problem problem = LineProblem();
  problem.outputs = {ValueId{1}, ValueId{2}, ValueId{3}, ValueId{4}};
  const PeakBound bound = Bound(problem);
  EXPECT_EQ(bound.bytes, 40);
  EXPECT_EQ(bound.node, -1);
}

}  // namespace
}  // namespace loadline::planner
