#include "passes/drop_softmax_guards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::ValueId;
using Masked = std::function<ValueId(Builder&, ValueId)>;

ValueId Mask(Builder& b, float hidden) {
  std::vector<float> numbers(9, 0);
  for (size_t i : {1u, 2u, 5u}) numbers[i] = hidden;
  return b.graph.AddConstant(
      "mask",
      models::MakeTensor({models::DType::kF32, {3, 3}}, numbers.data()));
}

// The softmax of masked scores followed by its guard, which gives `otherwise`.
std::string Dropped(const Masked& masked, float otherwise = 0) {
  Builder b;
  const ValueId scores =
      b.Op("MatMul", {b.Input("q", {2, 3, 4}), b.Parameter("k", {4, 3})});
  const ValueId p =
      b.Op("Softmax", {masked(b, scores)}, {{"axis", int64_t{2}}});
  const ValueId isnan = b.Op("Not", {b.Op("Equal", {p, p})});
  b.Output(b.Op("Where", {isnan, b.Scalar(otherwise), p}));
  EXPECT_TRUE(DropSoftmaxGuards(b.graph).ok());
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
  return Describe(b.graph);
}

bool IsDropped(const std::string& graph) {
  return graph.find("Where") == std::string::npos;
}

TEST(DropSoftmaxGuards, WhereMasksAreFiniteConstants) {
  EXPECT_EQ(Dropped([](Builder&, ValueId x) { return x; }),
            "%0 = MatMul(q, k)\n%1 = Softmax(%0) {axis=2}\noutput %1\n");
  EXPECT_TRUE(IsDropped(Dropped([](Builder& b, ValueId x) {
    return b.Op("Add", {b.Op("Div", {x, b.Scalar(8)}),
                        Mask(b, std::numeric_limits<float>::lowest())});
  })));
}

TEST(DropSoftmaxGuards, NotWhereARowMayBeMaskedWhole) {
  EXPECT_FALSE(IsDropped(Dropped([](Builder& b, ValueId x) {
    return b.Op("Add", {x, Mask(b, -INFINITY)});
  })));
  EXPECT_FALSE(IsDropped(Dropped([](Builder& b, ValueId x) {
    return b.Op("Add", {x, b.Input("mask", {3, 3})});
  })));
  EXPECT_FALSE(IsDropped(Dropped([](Builder& b, ValueId x) {
    return b.Op("Div", {b.Scalar(1), x});
  })));
}

TEST(DropSoftmaxGuards, LeavesOtherSelectionsAlone) {
  EXPECT_FALSE(IsDropped(Dropped([](Builder&, ValueId x) { return x; }, 0.5f)));
  Builder b;
  const ValueId x = b.Input("x", {3});
  b.Output(
      b.Op("Where", {b.Op("Not", {b.Op("Equal", {x, x})}), b.Scalar(0), x}));
  ASSERT_TRUE(DropSoftmaxGuards(b.graph).ok());
  EXPECT_FALSE(IsDropped(Describe(b.graph)));
}

}  // namespace
}  // namespace loadline::passes
