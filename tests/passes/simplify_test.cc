// remove_dead_nodes, remove_unread_inputs, merge_duplicates and remove_dropout:
// before and after.
#include <gtest/gtest.h>

#include "models/graph.h"
#include "passes/merge_duplicates.h"
#include "passes/remove_dead_nodes.h"
#include "passes/remove_dropout.h"
#include "passes/remove_unread_inputs.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;

TEST(RemoveDeadNodes, KeepsWhatOutputsAndUpdatesNeed) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3});
  const ValueId s = b.State("s", {2, 3});
  const ValueId y = b.Op("Relu", {x});
  b.Op("Exp", {b.Op("Neg", {x})});
  const ValueId next = b.Op("Add", {s, x});
  b.Op("Mul", {y, b.Scalar(3)});
  b.Output(y);
  b.graph.updates.emplace_back(s, next);
  ASSERT_TRUE(RemoveDeadNodes(b.graph).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = Relu(x)\n"
            "%1 = Add(s, x)\n"
            "output %0\n"
            "update s -> %1\n");
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
}

TEST(RemoveDeadNodes, KeepsInputsAndParametersWithoutReaders) {
  Builder b;
  const ValueId x = b.Input("x", {2});
  b.Input("ignored", {2});
  b.Parameter("unused", {5});
  b.Output(b.Op("Relu", {x}));
  ASSERT_TRUE(RemoveDeadNodes(b.graph).ok());
  EXPECT_TRUE(b.graph.Find("ignored").has_value());
  EXPECT_TRUE(b.graph.Find("unused").has_value());
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
}

TEST(RemoveUnreadInputs, RemovesInputsThatOnlyDeadNodesRead) {
  Builder b;
  const ValueId aside = b.Input("aside", {2});
  const ValueId x = b.Input("x", {2});
  const ValueId step = b.Input("step", {2});
  const ValueId s = b.State("s", {2});
  b.Op("Neg", {aside});
  b.graph.updates.emplace_back(s, b.Op("Add", {s, step}));
  b.Output(b.Op("Relu", {x}));
  EXPECT_EQ(InputsRead(b.graph, b.graph.outputs),
            (std::vector<ValueId>{x, step}));
  ExpectBecomes(RemoveUnreadInputs, b.graph,
                "%0 = Add(s, step)\n"
                "%1 = Relu(x)\n"
                "output %1\n"
                "update s -> %0\n");
  EXPECT_FALSE(b.graph.Find("aside").has_value());
}

TEST(RemoveUnreadInputs, KeepsAllWhereNoneIsRead) {
  Builder b;
  b.Input("x", {2});
  b.Output(b.Op("Relu", {b.Parameter("w", {3})}));
  ExpectUntouched(RemoveUnreadInputs, b.graph);
}

TEST(MergeDuplicates, MergesEqualNodesThroughChains) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3});
  const ValueId a = b.Op("Relu", {b.Op("Mul", {x, b.Scalar(2)})});
  const ValueId c = b.Op("Relu", {b.Op("Mul", {x, b.Scalar(2)})});
  b.Output(b.Op("Add", {a, c}));
  ASSERT_TRUE(MergeDuplicates(b.graph).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = Mul(x, 2)\n"
            "%1 = Relu(%0)\n"
            "%2 = Add(%1, %1)\n"
            "output %2\n");
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
}

TEST(MergeDuplicates, KeepsWhatDiffers) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3});
  const auto dropout = [&](int64_t salt) {
    return b.Op("Dropout", {x}, {{"ratio", 0.5}, {"salt", salt}});
  };
  const ValueId sum = b.Op("Add", {dropout(1), dropout(2)});
  const ValueId negative = b.Op("Sub", {b.Scalar(0.0f), x});
  const ValueId other = b.Op("Sub", {b.Scalar(-0.0f), x});
  b.Output(b.Op("Add", {sum, b.Op("Add", {negative, other})}));
  const size_t nodes = b.graph.nodes.size();
  ASSERT_TRUE(MergeDuplicates(b.graph).ok());
  EXPECT_EQ(b.graph.nodes.size(), nodes);
}

TEST(MergeDuplicates, KeepsValuesThatTheGraphNames) {
  Builder b;
  const ValueId x = b.Input("x", {2});
  b.Output(b.Op("Relu", {x}));
  b.Output(b.Op("Relu", {x}));
  ASSERT_TRUE(MergeDuplicates(b.graph).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = Relu(x)\n"
            "%1 = Relu(x)\n"
            "output %0\n"
            "output %1\n");
}

TEST(RemoveDropout, RemovesWhatDropsNothing) {
  Builder b;
  const ValueId x = b.Input("x", {2});
  const ValueId a =
      b.Op("Dropout", {x}, {{"ratio", 0.0}, {"salt", int64_t{1}}});
  const ValueId c =
      b.Op("Dropout", {a}, {{"ratio", 0.5}, {"salt", int64_t{2}}});
  b.Output(b.Op("Relu", {c}));
  ASSERT_TRUE(RemoveDropout(b.graph, Dropouts::kOfRatioZero).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = Dropout(x) {ratio=0.5, salt=2}\n"
            "%1 = Relu(%0)\n"
            "output %1\n");
  ASSERT_TRUE(RemoveDropout(b.graph, Dropouts::kAll).ok());
  EXPECT_EQ(Describe(b.graph),
            "%0 = Relu(x)\n"
            "output %0\n");
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
}

}  // namespace
}  // namespace loadline::passes
