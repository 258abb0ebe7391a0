// Least times and bytes over variants, codecs and versions.
#include "planner/bound/bound_costs.h"

#include "gtest/gtest.h"
#include "tests/planner/bound/program_parts.h"

namespace loadline::planner {
namespace {

constexpr Permissions kEverything = {.lossy = true, .inexact = true};

TEST(LeastCosts, MayComeFromDifferentVariants) {
  Problem problem = LineProblem();
  problem.nodes[1].workspace_bytes = 20;
  problem.nodes[1].variants = {{"fast", 3, 50, true}, {"lean", 90, 2, true}};
  const LeastCosts least =
      FindLeastCosts(MakeSearchModel(problem, true, true, kEverything));
  EXPECT_EQ(least.node_ns[1], 3);
  EXPECT_EQ(least.workspace_bytes[1], 2);
  EXPECT_EQ(least.compute_ns, 5 + 3 + 11 + 13);
}

TEST(LeastCosts, IgnoreVariantsThatAreNotPermitted) {
  Problem problem = LineProblem();
  problem.nodes[1].variants = {{"inexact", 3, 0, false}};
  EXPECT_EQ(FindLeastCosts(MakeSearchModel(problem, true, true)).node_ns[1], 7);
}

TEST(LeastBytes, CountTheSmallestPermittedRepresentation) {
  Problem problem = LineProblem();
  problem.values[1].stash = {{"half", 5, 1, 1, true, 0},
                             {"tiny", 1, 1, 1, false, 0.5}};
  const SearchModel exact = MakeSearchModel(problem, true, true);
  EXPECT_EQ(LeastValueBytes(exact, 1), 5);
  EXPECT_EQ(LeastValueBytes(exact, 2), 10);
  const SearchModel lossy = MakeSearchModel(problem, true, true, kEverything);
  EXPECT_EQ(LeastValueBytes(lossy, 1), 1);
}

TEST(LeastBytes, OfAPersistentValueAreThoseOfAnyVersion) {
  Problem problem = WeightProblem();
  problem.values[4].stash = {{"half", 5, 1, 1, true, 0}};
  EXPECT_EQ(LeastChainBytes(MakeSearchModel(problem, true, true), 0), 5);
}

TEST(ChargedBytes, AreRoundedUpOnlyWithAddresses) {
  Problem problem = LineProblem();
  problem.alignment_bytes = 16;
  EXPECT_EQ(ChargedBytes(MakeSearchModel(problem, true, true), 10), 10);
  problem.addresses = true;
  EXPECT_EQ(ChargedBytes(MakeSearchModel(problem, true, true), 10), 16);
}

}  // namespace
}  // namespace loadline::planner
