#include "passes/compress/prune_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PruneGraph, SlicesContentsAndSaysWhatStays) {
  const models::Graph model = SmallMlp();
  const auto groups = FindPruneGroups(model);
  ASSERT_TRUE(groups.ok());
  const auto pruned =
      PruneGraph(model, *groups, {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13}, {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  const models::Value& bias =
      pruned->graph.value(*pruned->graph.Find("fc1.bias"));
  EXPECT_THAT(bias.type.dims, ElementsAre(4));
  EXPECT_THAT(bias.initial->as<float>(),
              ElementsAre(0.01f * 10, 0.01f * 12, 0.01f * 14, 0.01f * 15));
  const models::Value& next =
      pruned->graph.value(*pruned->graph.Find("fc2.weight"));
  EXPECT_THAT(next.type.dims, ElementsAre(10, 4));
  EXPECT_EQ(next.initial->as<float>()[5], 0.01f * (16 + 12));
  ASSERT_EQ(pruned->kept.size(), 3u);
  EXPECT_EQ(pruned->kept.at("fc2.weight")[0].axis, 1);
  EXPECT_THAT(pruned->kept.at("fc2.weight")[0].indices,
              ElementsAre(10, 12, 14, 15));
}

TEST(PruneGraph, RefusesWhatCannotGo) {
  const models::Graph model = SmallMlp();
  const auto groups = FindPruneGroups(model);
  ASSERT_TRUE(groups.ok());
  std::vector<int64_t> all(16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  EXPECT_THAT(
      std::string(PruneGraph(model, *groups, {all, {}}).status().message()),
      HasSubstr("group \"n0\" would lose all of its 16 channels"));
  EXPECT_THAT(
      std::string(PruneGraph(model, *groups, {{16}, {}}).status().message()),
      HasSubstr("none with number 16"));
  EXPECT_THAT(
      std::string(PruneGraph(model, *groups, {{}, {1}}).status().message()),
      HasSubstr("cannot be pruned: output of the model"));
  EXPECT_EQ(PruneGraph(model, *groups, {{}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The unbiased variance divides by the number of elements, which falls where a
// statistic is taken over channels.
TEST(PruneGraph, CountsTheElementsOfStatisticsAnew) {
  Builder b;
  const ValueId x = b.Input("x", {2, 4, 6});
  const ValueId h = b.Op("MatMul", {x, b.Parameter("w", {6, 8})});
  const std::vector<ValueId> norm =
      b.Ops("BatchNormTraining",
            {h, b.Parameter("scale", {4}), b.Parameter("shift", {4})},
            {{"epsilon", 1e-5}});
  const ValueId mean = b.State("mean", {4}), var = b.State("var", {4});
  const std::vector<ValueId> next =
      b.Ops("RunningStatsUpdate", {mean, var, norm[1], norm[2]},
            {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", int64_t{16}}});
  b.graph.updates = {{mean, next[0]}, {var, next[1]}};
  b.Output(b.Op("MatMul", {norm[0], b.Parameter("w2", {8, 5})}));
  const auto groups = FindPruneGroups(b.graph);
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ((*groups)[0].width, 8);
  EXPECT_THAT((*groups)[0].approximate, HasSubstr("statistics of"));
  const auto pruned = PruneGraph(b.graph, *groups, {{1, 2, 5}, {}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  for (const models::Node& node : pruned->graph.nodes) {
    if (node.op == "RunningStatsUpdate") {
      EXPECT_EQ(node.attributes.Int("count", 0), 2 * 5);
    }
  }
}

}  // namespace
}  // namespace loadline::passes
