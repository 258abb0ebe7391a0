// Layers of transformers, of a chain, and of graphs that have none.
#include "planner/layers/find_layers.h"

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "gtest/gtest.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/layered_problem.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

TEST(FindLayers, NumbersForwardAndBackwardAlike) {
  for (const Problem& problem : {SmallTransformer(20), Chain(40)}) {
    const bool chain = problem.nodes.size() == 160;
    const ProblemIndex index = IndexProblem(problem);
    const std::optional<Layers> layers = FindLayers(problem, index);
    ASSERT_TRUE(layers.has_value());
    EXPECT_GE(layers->alike_upper - layers->alike_lower, chain ? 30 : 15);
    // Only what is near the ends may be in no layer.
    size_t outside = 0;
    for (int layer : layers->node_layer) outside += layer < 0;
    EXPECT_LT(outside, problem.nodes.size() / 4);
    for (size_t n = 0; n < problem.nodes.size(); ++n) {
      const int layer = layers->node_layer[n];
      if (layer < layers->alike_lower || layer >= layers->alike_upper) continue;
      for (ValueId id : problem.nodes[n].inputs) {
        const int from = layers->value_layer[Index(id)];
        EXPECT_TRUE(from < 0 || std::abs(from - layer) <= 2) << n;
      }
      const int role = layers->node_role[n];
      const int other = layers->nodes[role][layers->alike_lower];
      EXPECT_EQ(problem.nodes[other].time_ns, problem.nodes[n].time_ns);
    }
  }
}

TEST(FindLayers, FindsNoneWhereNothingRepeats) {
  for (int seed = 0; seed < 50; ++seed) {
    const Problem problem = RandomProblem(seed, 60, true, true);
    EXPECT_FALSE(FindLayers(problem, IndexProblem(problem)).has_value());
  }
}

}  // namespace
}  // namespace loadline::planner
