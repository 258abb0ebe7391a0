// When layers are searched, and how many of them.
#include "planner/layers/coarsen_layers.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"
#include "tests/planner/support/layered_problem.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

std::unique_ptr<const CoarseLayers> CoarseOf(
    const Problem& problem, int64_t work,
    const SearchTuning::Layers& tuning = {}) {
  return FindCoarseLayers(problem, IndexProblem(problem), work, tuning);
}

TEST(FindCoarseLayers, LeavesSmallProblemsWhole) {
  const Problem problem = Chain(200);  // 800 nodes
  EXPECT_EQ(CoarseOf(problem, 10'000'000), nullptr);
  // With less work than a thousand for each node they are small no longer.
  EXPECT_EQ(CoarseOf(problem, 801'000), nullptr);
  EXPECT_NE(CoarseOf(problem, 799'000), nullptr);
}

TEST(FindCoarseLayers, LeavesProblemsWithoutLayersWhole) {
  EXPECT_EQ(CoarseOf(RandomProblem(1, 200, true, true), 1000), nullptr);
}

TEST(FindCoarseLayers, LeavesAsManyLayersAsTheWorkPlansWell) {
  const Problem problem = Chain(1000);
  const auto few = CoarseOf(problem, 300'000);
  const auto more = CoarseOf(problem, 3'000'000);
  ASSERT_NE(few, nullptr);
  ASSERT_NE(more, nullptr);
  EXPECT_LT(few->shrunk.layers.count, more->shrunk.layers.count);
  // Beyond 1,200 nodes more work changes nothing.
  const auto most = CoarseOf(problem, 100'000'000);
  ASSERT_NE(most, nullptr);
  EXPECT_LE(most->shrunk.problem.nodes.size(), 1300u);
}

TEST(FindCoarseLayers, IsSwitchedOffByItsTuning) {
  EXPECT_EQ(CoarseOf(Chain(1000), 1'000'000, {.enabled = false}), nullptr);
  EXPECT_EQ(CoarseOf(Chain(1000), 100'000'000, {.many_nodes = 5000}), nullptr);
}

TEST(FindCoarseLayers, MatchesEveryLayerToOneOfTheFew) {
  const auto coarse = CoarseOf(Chain(1000), 300'000);
  ASSERT_NE(coarse, nullptr);
  EXPECT_EQ(coarse->matches.size(), 3u);
  for (const std::vector<int>& match : coarse->matches) {
    ASSERT_EQ(match.size(), static_cast<size_t>(coarse->all.count));
    std::vector<int> uses(coarse->shrunk.layers.count, 0);
    for (int few : match) ++uses[few];
    for (int used : uses) EXPECT_GT(used, 0);
  }
}

}  // namespace
}  // namespace loadline::planner
