// Costs and keys of nodes.
#include <gtest/gtest.h>

#include "models/ops/operator.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

TEST(CostOf, CountsMultiplyAddsTwice) {
  Graph g;
  const ValueId a = g.AddInput("a", F32({5, 2, 3}));
  const ValueId b = g.AddInput("b", F32({3, 4}));
  (void)*g.AddNode("MatMul", "mm", {a, b});
  const OperatorCost cost = CostOf(g, g.nodes[0]);
  EXPECT_EQ(cost.flops, 2.0 * 5 * 2 * 3 * 4);
  EXPECT_TRUE(cost.matmul_like);
  EXPECT_EQ(cost.bytes, 4 * (30 + 12 + 40));
}

TEST(CostOf, ConvolutionAndItsGradientsHaveTheSameFlops) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({2, 4, 9, 9}));
  const ValueId w = g.AddInput("w", F32({6, 2, 3, 3}));
  const Attributes attributes{{"group", 2}, {"strides", Ints{2, 2}}};
  const ValueId y = (*g.AddNode("Conv", "c", {x, w}, attributes))[0];
  Attributes of_x = attributes;
  of_x.Set("shape", g.value(x).type.dims);
  Attributes of_w = attributes;
  of_w.Set("shape", g.value(w).type.dims);
  (void)*g.AddNode("ConvInputGrad", "dx", {y, w}, of_x);
  (void)*g.AddNode("ConvWeightGrad", "dw", {y, x}, of_w);
  // 2 x 6 x 4 x 4 outputs, each of 2 channels x 3 x 3.
  for (const Node& node : g.nodes) {
    EXPECT_EQ(CostOf(g, node).flops, 2.0 * (2 * 6 * 4 * 4) * (2 * 3 * 3));
    EXPECT_TRUE(CostOf(g, node).matmul_like);
  }
}

TEST(CostOf, ViewsAreFreeAndGatherReadsWhatItPicks) {
  Graph g;
  const ValueId table = g.AddInput("t", F32({1000, 8}));
  const ValueId rows = g.AddInput("i", I64({3}));
  (void)*g.AddNode("Reshape", "r", {table}, {{"shape", Ints{8000}}});
  (void)*g.AddNode("Gather", "g", {table, rows}, {{"axis", 0}});
  (void)*g.AddNode("Relu", "relu", {table});
  (void)*g.AddNode("Concat", "cat", {table}, {{"axis", 0}});
  EXPECT_EQ(CostOf(g, g.nodes[0]).bytes, 0);
  EXPECT_EQ(CostOf(g, g.nodes[0]).flops, 0);
  EXPECT_EQ(CostOf(g, g.nodes[1]).bytes, 2 * 3 * 8 * 4 + 3 * 8);
  EXPECT_EQ(CostOf(g, g.nodes[2]).flops, 8000);
  EXPECT_FALSE(CostOf(g, g.nodes[2]).matmul_like);
  EXPECT_EQ(CostOf(g, g.nodes[3]).bytes, 2 * 8000 * 4);
}

TEST(OperatorKey, TellsApartWhatTakesOtherTime) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({2, 3}));
  (void)*g.AddNode("Dropout", "a", {x}, {{"ratio", 0.5}, {"salt", 1}});
  (void)*g.AddNode("Dropout", "b", {x}, {{"ratio", 0.5}, {"salt", 2}});
  (void)*g.AddNode("MatMul", "c", {x, x}, {{"trans_b", 1}});
  (void)*g.AddNode("MatMul", "d", {x, x}, {{"trans_a", 1}});
  EXPECT_EQ(OperatorKey(g, g.nodes[0]),
            "Dropout(f32[2,3])->(f32[2,3]) ratio=0.5");
  EXPECT_EQ(OperatorKey(g, g.nodes[0]), OperatorKey(g, g.nodes[1]));
  EXPECT_EQ(OperatorKey(g, g.nodes[2]),
            "MatMul(f32[2,3],f32[2,3])->(f32[2,2]) trans_b=1");
  EXPECT_NE(OperatorKey(g, g.nodes[2]), OperatorKey(g, g.nodes[3]));
}

}  // namespace
}  // namespace loadline::models
