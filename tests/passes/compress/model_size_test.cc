#include "passes/compress/model_size.h"

#include <gtest/gtest.h>

#include "passes/compress/prune_graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

TEST(ModelSize, CountsByHand) {
  const ModelSize size = SizeOfModel(SmallMlp());  // 4 x 8 -> 16 -> 10
  EXPECT_EQ(size.parameters, 8 * 16 + 16 + 16 * 10 + 10);
  EXPECT_EQ(size.parameter_bytes, 4 * size.parameters);
  EXPECT_EQ(size.macs, 4 * (8 * 16 + 16 * 10));
  EXPECT_EQ(size.activation_bytes, 4 * 4 * (16 + 16 + 10));
}

// A square weight loses a row and a column; a grouped convolution its group.
TEST(ModelSize, OfAChannelIsWhatPruningItSaves) {
  Builder b;
  models::ValueId x = b.Input("x", {2, 3, 6, 6});
  const models::Attributes window = {{"kernel_shape", models::Ints{3, 3}},
                                     {"strides", models::Ints{1, 1}},
                                     {"pads", models::Ints{1, 1, 1, 1}},
                                     {"dilations", models::Ints{1, 1}},
                                     {"group", int64_t{1}}};
  x = b.Op("Conv", {x, b.Parameter("w1", {8, 3, 3, 3})}, window);
  x = b.Op("Add",
           {x, b.Op("Conv", {x, b.Parameter("w2", {8, 8, 3, 3})}, window)});
  models::Attributes grouped = window;
  grouped.Set("group", int64_t{8});
  x = b.Op("Conv", {x, b.Parameter("w3", {16, 1, 3, 3})}, grouped);
  b.Output(b.Op("Conv", {x, b.Parameter("w4", {5, 16, 3, 3})}, window));
  const auto groups = FindPruneGroups(b.graph);
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::vector<std::vector<int64_t>> removed(groups->size());
  removed[0] = {3};
  const auto pruned = PruneGraph(b.graph, *groups, removed);
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  const ModelSize before = SizeOfModel(b.graph);
  const ModelSize after = SizeOfModel(pruned->graph);
  const ModelSize channel = SizeOfChannel(b.graph, (*groups)[0]);
  EXPECT_EQ((*groups)[0].width, 8);
  EXPECT_EQ(before.parameters - after.parameters, channel.parameters);
  EXPECT_EQ(channel.parameters, 27 + (8 + 7) * 9 + 18 + 5 * 2 * 9);
  EXPECT_EQ(before.macs - after.macs, channel.macs);
  EXPECT_EQ(before.parameter_bytes - after.parameter_bytes,
            channel.parameter_bytes);
  EXPECT_EQ(before.activation_bytes - after.activation_bytes,
            channel.activation_bytes);
}

}  // namespace
}  // namespace loadline::passes
