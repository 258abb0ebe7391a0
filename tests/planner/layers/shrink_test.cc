// Problems with fewer layers.
#include "planner/layers/shrink.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "planner/schedule/simulate.h"
#include "tests/planner/support/layered_problem.h"

namespace loadline::planner {
namespace {

TEST(CoarsenProblem, KeepsWhatALayerCosts) {
  const Coarsened coarse(SmallTransformer(30));
  const Coarsened longer(SmallTransformer(40));
  EXPECT_TRUE(ValidateProblem(coarse.shrunk.problem).ok());
  // The layers left do not depend on how many there were.
  EXPECT_EQ(coarse.few_model.compute_ns, longer.few_model.compute_ns);
  EXPECT_EQ(
      FindLifetimes(coarse.few_model, GivenOrder(coarse.few_model)).peak_bytes,
      FindLifetimes(longer.few_model, GivenOrder(longer.few_model)).peak_bytes);
}

TEST(CoarsenProblem, MapsWhatRemainsBothWays) {
  for (const Problem& problem : {SmallTransformer(20), Chain(30)}) {
    const Coarsened coarse(problem);
    const CoarseProblem& left = coarse.shrunk;
    ASSERT_EQ(left.node_of.size(), left.problem.nodes.size());
    ASSERT_EQ(left.value_of.size(), left.problem.values.size());
    for (size_t n = 0; n < left.node_of.size(); ++n) {
      const int all = left.node_of[n];
      EXPECT_EQ(left.node_left[all], static_cast<int>(n));
      EXPECT_EQ(left.problem.nodes[n].time_ns, problem.nodes[all].time_ns);
      EXPECT_EQ(left.layers.node_role[n], coarse.layers.node_role[all]);
    }
    for (size_t v = 0; v < left.value_of.size(); ++v) {
      const int all = left.value_of[v];
      EXPECT_EQ(left.value_left[all], static_cast<int>(v));
      EXPECT_EQ(left.problem.values[v].bytes, problem.values[all].bytes);
    }
    EXPECT_EQ(left.layers.alike_upper - left.layers.alike_lower, 9);
  }
}

// Of the values' bytes about half remain, so about half of the host's too.
TEST(CoarsenProblem, ShrinksTheHostWithTheValues) {
  const Problem problem = SmallTransformer(20);
  const Coarsened coarse(problem);
  const auto bytes = [](const Problem& of) {
    int64_t sum = 0;
    for (const Value& value : of.values) sum += value.bytes;
    return static_cast<double>(sum);
  };
  EXPECT_NEAR(static_cast<double>(coarse.shrunk.problem.machine->host_bytes) /
                  static_cast<double>(problem.machine->host_bytes),
              bytes(coarse.shrunk.problem) / bytes(problem), 1e-6);
}

TEST(CoarsenProblem, KeepsTwoEqualLayersAtEitherEnd) {
  const Problem problem = Chain(30);
  const Layers layers = *FindLayers(problem, IndexProblem(problem));
  const int others = layers.count - (layers.alike_upper - layers.alike_lower);
  EXPECT_TRUE(CoarsenProblem(problem, layers, others + 4).has_value());
  EXPECT_FALSE(CoarsenProblem(problem, layers, others + 3).has_value());
  EXPECT_FALSE(CoarsenProblem(problem, layers, layers.count).has_value());
}

}  // namespace
}  // namespace loadline::planner
