// FuseAttention: masks, causal and other, and dropout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "models/graph.h"
#include "passes/fuse_attention.h"
#include "tests/passes/attention_parts.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::ValueId;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(FuseAttention, KnowsACausalMaskWhenItSeesOne) {
  using Form = ValueId (*)(Builder&, ValueId);
  const Form forms[] = {
      [](Builder& b, ValueId s) {
        return b.Op("Add", {s, CausalMask(b, -kInfinity)});
      },
      [](Builder& b, ValueId s) {
        return b.Op("Add", {CausalMask(b, -1e9f), s});
      },
      [](Builder& b, ValueId s) {
        return b.Op("Where", {CausalCondition(b, true), s, b.Scalar(-1e4f)});
      },
      [](Builder& b, ValueId s) {
        return b.Op("Where",
                    {CausalCondition(b, false), b.Scalar(-kInfinity), s});
      },
      // The scale is applied before the mask.
      [](Builder& b, ValueId s) {
        return b.Op("Add",
                    {b.Op("Mul", {s, b.Scalar(1)}), CausalMask(b, -kInfinity)});
      }};
  for (const Form form : forms) {
    Builder b;
    const Parts p(b);
    const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
    EXPECT_EQ(Fused(b, b.Op("MatMul", {Softmax(b, form(b, scores)), p.v})),
              "%0, %1 = Attention(q, k, v) {causal=1, interleaved=0, "
              "scale=1}\n%2 = Relu(%0)\noutput %2\n");
  }
}

TEST(FuseAttention, HandsOtherMasksOn) {
  {
    Builder b;
    const Parts p(b);
    const ValueId mask = b.Input("mask", {2, 1, kLength});
    const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
    const ValueId masked =
        b.Op("Add", {b.Op("Add", {scores, CausalMask(b, -kInfinity)}), mask});
    EXPECT_THAT(Fused(b, b.Op("MatMul", {Softmax(b, masked), p.v})),
                HasSubstr("Attention(q, k, v, mask) {causal=1"));
  }
  {
    // A mask that is not causal is passed to the operator.
    Builder b;
    const Parts p(b);
    const ValueId mask = CausalMask(b, -3);
    const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
    EXPECT_THAT(Fused(b, b.Op("MatMul",
                              {Softmax(b, b.Op("Add", {scores, mask})), p.v})),
                HasSubstr("Attention(q, k, v, causal) {causal=0"));
  }
  {
    Builder b;
    const Parts p(b);
    const ValueId keep = b.Input("keep", {2, 1, kLength}, DType::kBool);
    const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
    const ValueId masked = b.Op("Where", {keep, scores, b.Scalar(-kInfinity)});
    EXPECT_EQ(Fused(b, b.Op("MatMul", {Softmax(b, masked), p.v})),
              "%0 = Where(keep, 0, -inf)\n%1, %2 = Attention(q, k, v, %0) "
              "{causal=0, interleaved=0, scale=1}\n%3 = Relu(%1)\n"
              "output %3\n");
  }
}

TEST(FuseAttention, DrawsTheMaskOfADropout) {
  Builder b;
  const Parts p(b);
  const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
  const ValueId dropped =
      b.Op("Dropout", {Softmax(b, scores)}, {{"ratio", 0.1}, {"salt", 9}});
  EXPECT_THAT(Fused(b, b.Op("MatMul", {dropped, p.v})),
              HasSubstr("{causal=0, interleaved=0, ratio=0.1, salt=9, "
                        "scale=1}"));
}

}  // namespace
}  // namespace loadline::passes
