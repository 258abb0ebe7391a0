// Building graphs: names, axes, erasing, the index.
#include "models/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AddNode, GivesUniqueNames) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({4}));
  const ValueId x2 = g.AddInput("x", F32({4}));
  EXPECT_EQ(g.value(x).name, "x");
  EXPECT_EQ(g.value(x2).name, "x.1");
  for (const char* name : {"a", "a.1", "a", "a"}) {
    ASSERT_TRUE(g.AddNode("Relu", name, {x}).ok());
  }
  ASSERT_TRUE(
      g.AddNode("Split", "s", {x}, {{"axis", 0}, {"sizes", Ints{1, 3}}}).ok());
  std::vector<std::string> names;
  for (const Node& node : g.nodes) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("a", "a.1", "a.2", "a.3", "s"));
  EXPECT_EQ(g.value(g.nodes[3].outputs[0]).name, "a.3");
  EXPECT_EQ(g.value(g.nodes[4].outputs[0]).name, "s");
  EXPECT_EQ(g.value(g.nodes[4].outputs[1]).name, "s.1");
  EXPECT_TRUE(VerifyGraph(g).ok());
}

// Takes all nodes out and puts these back.
void KeepNodes(Graph& g, const std::vector<size_t>& kept) {
  const std::vector<Node> old = std::move(g.nodes);
  g.nodes.clear();
  for (size_t n : kept) g.nodes.push_back(old[n]);
}

TEST(AddNode, GivesNamesOfRemovedNodesAgain) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({4}));
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(g.AddNode("Relu", name, {x}).ok());
  }
  KeepNodes(g, {3, 0, 2});
  for (const char* name : {"b", "a", "d"}) {
    ASSERT_TRUE(g.AddNode("Relu", name, {x}).ok());
  }
  std::vector<std::string> names;
  for (const Node& node : g.nodes) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("d", "a", "c", "b", "a.1", "d.1"));
}

TEST(Rename, TakesTheNewNameAndFreesTheOld) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({4}));
  const ValueId a = (*g.AddNode("Relu", "a", {x}))[0];
  g.Rename(NodeId{0}, "b");
  g.Rename(a, "b");
  (void)*g.AddNode("Relu", "b", {x});
  (void)*g.AddNode("Relu", "a", {x});
  std::vector<std::string> names;
  for (const Node& node : g.nodes) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("b", "b.1", "a"));
  EXPECT_TRUE(VerifyGraph(g).ok()) << VerifyGraph(g);
}

TEST(Copy, OfAGraphHasNamesOfItsOwn) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({4}));
  (void)*g.AddNode("Relu", "a", {x});
  Graph copy = g;
  KeepNodes(copy, {});
  (void)*copy.AddNode("Relu", "a", {x});
  (void)*g.AddNode("Relu", "a", {x});
  EXPECT_EQ(copy.nodes.back().name, "a");
  EXPECT_EQ(g.nodes.back().name, "a.1");
}

// Processor time of adding so many nodes to a graph, half of which want a name
// that is taken.
double SecondsToAdd(int nodes) {
  const std::clock_t start = std::clock();
  Graph g;
  const ValueId x = g.AddInput("x", F32({4}));
  for (int n = 0; n < nodes; ++n) {
    (void)*g.AddNode("Relu", n % 2 == 0 ? "same" : absl::StrCat("n", n), {x});
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(AddNode, TakesTimeThatGrowsWithTheNodes) {
  const double few = SecondsToAdd(10'000);
  EXPECT_LT(SecondsToAdd(80'000), 30 * few);  // the square: 64
}

TEST(AddNode, NormalizesAxesAndDropsAbsentInputs) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({4, 5, 6}));
  const ValueId s = g.AddParameter("s", ZeroTensor(F32({6})));
  ASSERT_TRUE(g.AddNode("LayerNormalization", "n", {x, s, kNoValue},
                        {{"axis", -1}, {"epsilon", 1e-5}})
                  .ok());
  EXPECT_EQ(g.nodes[0].attributes.Int("axis", 0), 2);
  EXPECT_EQ(g.nodes[0].inputs.size(), 2u);
  ASSERT_TRUE(g.AddNode("ReduceSum", "r", {x}, {{"axes", Ints{-1, 0}}}).ok());
  EXPECT_EQ(g.nodes[1].attributes.IntList("axes"), (Ints{0, 2}));
}

TEST(AddNode, RefusesAndChangesNothing) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({4}));
  const auto unknown = g.AddNode("Frobnicate", "f", {x});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("Frobnicate"));
  const auto wrong = g.AddNode("Softmax", "soft", {x}, {{"axis", 1}});
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("Softmax \"soft\""));
  EXPECT_EQ(g.values.size(), 1u);
  EXPECT_TRUE(g.nodes.empty());
}

TEST(EraseNodes, RenumbersWhatStays) {
  Graph g = SmallStep();
  // Erase the loss and the view before it.
  std::vector<bool> erase(g.nodes.size(), false);
  erase[2] = erase[3] = true;
  const ValueId flat = *g.Find("flat");
  g.outputs = {*g.Find("relu")};
  const std::vector<ValueId> moved = EraseNodes(&g, erase);
  EXPECT_EQ(moved[Index(flat)], kNoValue);
  EXPECT_FALSE(g.Find("flat").has_value());
  EXPECT_EQ(g.nodes.size(), 4u);
  EXPECT_EQ(g.outputs[0], *g.Find("relu"));
  EXPECT_EQ(g.updates[1].second, *g.Find("w.sgd.1"));
  EXPECT_TRUE(VerifyGraph(g).ok()) << VerifyGraph(g);
}

TEST(EraseNodes, ThatAreStillReadBreaksTheGraph) {
  Graph g = SmallStep();
  std::vector<bool> erase(g.nodes.size(), false);
  erase[1] = true;  // relu
  EraseNodes(&g, erase);
  EXPECT_FALSE(VerifyGraph(g).ok());
}

TEST(IndexGraph, FindsProducersAndReaders) {
  Graph g;
  const ValueId x = g.AddInput("x", F32({4}));
  const ValueId square = (*g.AddNode("Mul", "square", {x, x}))[0];
  (void)*g.AddNode("Add", "sum", {square, x});
  const GraphIndex index = IndexGraph(g);
  EXPECT_THAT(index.producer, ElementsAre(-1, 0, 1));
  EXPECT_THAT(index.consumers[Index(x)], ElementsAre(NodeId{0}, NodeId{1}));
  EXPECT_THAT(index.consumers[Index(square)], ElementsAre(NodeId{1}));
}

}  // namespace
}  // namespace loadline::models
