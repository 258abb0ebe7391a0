#include "passes/compress/prune_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

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

}  // namespace
}  // namespace loadline::passes
