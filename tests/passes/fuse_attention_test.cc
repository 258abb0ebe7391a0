// FuseAttention: scales, transposes, heads, and what must be left alone.
#include "passes/fuse_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "models/graph.h"
#include "passes/add_gradients.h"
#include "tests/passes/attention_parts.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Ints;
using models::ValueId;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(FuseAttention, FindsTheScaleOnEitherSideOnBothAndOnTheScores) {
  const struct {
    float on_q, on_k, on_scores;
    const char* scale;
  } kCases[] = {{1, 1, 1, "scale=1"},
                {0.25, 1, 1, "scale=0.25"},
                {1, 0.25, 1, "scale=0.25"},
                {0.5, 0.5, 1, "scale=0.25"},
                {1, 1, 0.25, "scale=0.25"}};
  for (const auto& c : kCases) {
    Builder b;
    const Parts p(b);
    const auto scaled = [&](ValueId x, float by) {
      return by == 1 ? x : b.Op("Mul", {x, b.Scalar(by)});
    };
    const ValueId scores =
        b.Op("MatMul", {scaled(p.q, c.on_q), scaled(Swapped(b, p.k), c.on_k)});
    const ValueId y =
        b.Op("MatMul", {Softmax(b, scaled(scores, c.on_scores)), p.v});
    EXPECT_EQ(Fused(b, y), std::string("%0, %1 = Attention(q, k, v) {causal=0, "
                                       "interleaved=0, ") +
                               c.scale + "}\n%2 = Relu(%0)\noutput %2\n");
  }
}

// CUDA has no kernel for them.
TEST(FuseAttention, LeavesWideHeadsAlone) {
  for (const auto& [width, value_width] :
       {std::pair<int64_t, int64_t>{257, 3}, {4, 257}, {256, 256}}) {
    Builder b;
    const ValueId q = b.Input("q", {2, kLength, width});
    const ValueId k = b.Input("k", {2, width, kLength});
    const ValueId v = b.Input("v", {2, kLength, value_width});
    const std::string fused =
        Fused(b, b.Op("MatMul", {Softmax(b, b.Op("MatMul", {q, k})), v}));
    EXPECT_EQ(fused.find("Attention") == std::string::npos,
              width > 256 || value_width > 256);
  }
}

TEST(FuseAttention, DividesByARootAndReadsFlagsForTransposes) {
  Builder b;
  const Parts p(b);
  const ValueId scores =
      b.Op("Div", {b.Op("MatMul", {p.q, p.k}, {{"trans_b", 1}}), b.Scalar(2)});
  EXPECT_THAT(Fused(b, b.Op("MatMul", {Softmax(b, scores), p.v})),
              HasSubstr("Attention(q, k, v) {causal=0, interleaved=0, "
                        "scale=0.5}"));
}

TEST(FuseAttention, TransposesKeysThatLieTheOtherWay) {
  Builder b;
  const ValueId q = b.Input("q", {2, kLength, 4});
  const ValueId k = b.Input("k", {2, 4, kLength});
  const ValueId v = b.Input("v", {2, kLength, 3});
  EXPECT_EQ(Fused(b, b.Op("MatMul", {Softmax(b, b.Op("MatMul", {q, k})), v})),
            "%0 = Transpose(k) {perm=[0,2,1]}\n%1, %2 = Attention(q, %0, v) "
            "{causal=0, interleaved=0, scale=1}\n%3 = Relu(%1)\noutput %3\n");
}

// Heads as exporters split them from [batch, sequence, heads * width]. The
// second transposition of k is either one Transpose or, with `folded`, three
// nodes with the heads merged into the batch.
ValueId Heads(Builder& b, bool folded) {
  const auto cut = [&](const char* name) {
    return b.Op("Reshape", {b.Input(name, {2, kLength, 12})},
                {{"shape", Ints{2, kLength, 3, 4}}});
  };
  const auto head = [&](ValueId x, Ints perm = {0, 2, 1, 3}) {
    return b.Op("Transpose", {x}, {{"perm", std::move(perm)}});
  };
  const ValueId q = head(cut("q"));
  const ValueId cut_k = cut("k");
  ValueId k;
  if (folded) {
    const ValueId fold =
        b.Op("Reshape", {head(cut_k)}, {{"shape", Ints{6, kLength, 4}}});
    k = b.Op("Reshape", {head(fold, {0, 2, 1})},
             {{"shape", Ints{2, 3, 4, kLength}}});
  } else {
    k = head(cut_k, {0, 2, 3, 1});
  }
  const ValueId v = head(cut("v"));
  const ValueId p = b.Op("Softmax", {b.Op("MatMul", {q, k})}, {{"axis", 3}});
  return head(b.Op("MatMul", {p, v}));
}

TEST(FuseAttention, ReadsHeadsWhereTheyLie) {
  for (const bool folded : {false, true}) {
    Builder b;
    EXPECT_EQ(Fused(b, Heads(b, folded)),
              "%0 = Reshape(q) {shape=[2,5,3,4]}\n"
              "%1 = Reshape(k) {shape=[2,5,3,4]}\n"
              "%2 = Reshape(v) {shape=[2,5,3,4]}\n"
              "%3, %4 = Attention(%0, %1, %2) {causal=0, interleaved=1, "
              "scale=1}\n%5 = Relu(%3)\noutput %5\n");
  }
}

TEST(FuseAttention, LeavesWhatItCannotReplace) {
  using Form = ValueId (*)(Builder&, const Parts&);
  const Form forms[] = {
      // The probabilities are an output.
      [](Builder& b, const Parts& p) {
        const ValueId soft = Softmax(b, b.Op("MatMul", {p.q, Swapped(b, p.k)}));
        b.Output(soft);
        return b.Op("MatMul", {soft, p.v});
      },
      // The scores have another reader.
      [](Builder& b, const Parts& p) {
        const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
        b.Output(b.Op("Exp", {scores}));
        return b.Op("MatMul", {Softmax(b, scores), p.v});
      },
      // The mask is a parameter.
      [](Builder& b, const Parts& p) {
        const ValueId bias = b.Parameter("bias", {kLength, kLength});
        const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
        return b.Op(
            "MatMul",
            {Softmax(b, b.Op("Add", {scores, b.Op("Neg", {bias})})), p.v});
      },
      // Softmax over the queries.
      [](Builder& b, const Parts& p) {
        const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
        return b.Op("MatMul", {b.Op("Softmax", {scores}, {{"axis", 1}}), p.v});
      },
      // A scale is applied after a mask that is not causal.
      [](Builder& b, const Parts& p) {
        const ValueId mask = b.Input("mask", {kLength});
        const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
        const ValueId masked = b.Op("Add", {scores, mask});
        return b.Op("MatMul",
                    {Softmax(b, b.Op("Mul", {masked, b.Scalar(2)})), p.v});
      },
      // The replacement of masked scores is too large to mask.
      [](Builder& b, const Parts& p) {
        const ValueId scores = b.Op("MatMul", {p.q, Swapped(b, p.k)});
        const ValueId masked =
            b.Op("Where", {CausalCondition(b, true), scores, b.Scalar(-3)});
        return b.Op("MatMul", {Softmax(b, masked), p.v});
      },
      // All heads share one head of keys.
      [](Builder& b, const Parts& p) {
        const ValueId k = b.Input("one", {1, 4, kLength});
        return b.Op("MatMul", {Softmax(b, b.Op("MatMul", {p.q, k})), p.v});
      }};
  for (const Form form : forms) {
    Builder b;
    const Parts p(b);
    EXPECT_THAT(Fused(b, form(b, p)), Not(HasSubstr("Attention")));
  }
}

TEST(FuseAttention, FindsNothingOnceThereAreGradients) {
  Builder b;
  const ValueId w = b.Parameter("w", {4, 4});
  const Parts p(b);
  const ValueId scores =
      b.Op("MatMul", {b.Op("MatMul", {p.q, w}), Swapped(b, p.k)});
  const ValueId y = b.Op("MatMul", {Softmax(b, scores), p.v});
  const ValueId loss = b.Op("ReduceSum", {y}, {{"keepdims", 0}});
  b.Output(loss);
  ASSERT_TRUE(AddGradients(b.graph, loss).ok());
  const size_t nodes = b.graph.nodes.size();
  ASSERT_TRUE(FuseAttention(b.graph).ok());
  EXPECT_THAT(Describe(b.graph), Not(HasSubstr("Attention")));
  EXPECT_LE(b.graph.nodes.size(), nodes);
}

}  // namespace
}  // namespace loadline::passes
