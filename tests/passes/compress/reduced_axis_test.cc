// Along which axis products sum over a weight, checked with the operators'
// definitions.
#include "passes/compress/reduced_axis.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

// The axis of "w" in the last node; -1: none.
int64_t AxisIn(const Builder& b) {
  const auto found =
      ReducedAxisOf(b.graph, b.graph.nodes.back(), *b.graph.Find("w"));
  return found.has_value() ? found->axis : -1;
}

TEST(ReducedAxis, IsTheInnerOneOfAMatrixProduct) {
  for (const bool transposed : {false, true}) {
    Builder right;
    right.Op("Gemm",
             {right.Input("x", {2, 8}),
              right.Parameter("w", transposed ? std::vector<int64_t>{3, 8}
                                              : std::vector<int64_t>{8, 3})},
             {{"transB", int64_t{transposed}}});
    EXPECT_EQ(AxisIn(right), transposed ? 1 : 0);
    Builder left;
    left.Op("Gemm",
            {left.Parameter("w", transposed ? std::vector<int64_t>{8, 3}
                                            : std::vector<int64_t>{3, 8}),
             left.Input("x", {8, 2})},
            {{"transA", int64_t{transposed}}});
    EXPECT_EQ(AxisIn(left), transposed ? 0 : 1);
  }
  Builder b;
  b.Op("MatMul", {b.Input("x", {5, 2, 8}), b.Parameter("w", {5, 8, 3})});
  EXPECT_EQ(AxisIn(b), 1);
}

TEST(ReducedAxis, FollowsATranspose) {
  Builder b;
  const auto w = b.Op("Transpose", {b.Parameter("w", {3, 8})},
                      {{"perm", models::Ints{1, 0}}});
  EXPECT_EQ(AxisIn(b), -1);  // no product
  b.Op("MatMul", {b.Input("x", {2, 8}), w});
  EXPECT_EQ(AxisIn(b), 1);
}

TEST(ReducedAxis, IsThatOfTheChannelsThatAConvolutionReads) {
  Builder b;
  b.Op("Conv", {b.Input("x", {2, 8, 5, 5}), b.Parameter("w", {6, 4, 3, 3})},
       {{"kernel_shape", models::Ints{3, 3}},
        {"strides", models::Ints{1, 1}},
        {"pads", models::Ints{0, 0, 0, 0}},
        {"dilations", models::Ints{1, 1}},
        {"group", int64_t{2}}});
  const auto found =
      ReducedAxisOf(b.graph, b.graph.nodes.back(), *b.graph.Find("w"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->axis, 1);
  EXPECT_EQ(found->size, 4);
}

}  // namespace
}  // namespace loadline::passes
