// Gradient rules of Pow and of matrix products, by the nodes they emit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/ops/operator.h"
#include "tests/models/differentiate.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;

TEST(Gradient, OfPowWithAConstantExponentNeedsNoLogarithm) {
  const struct {
    float exponent;
    std::vector<std::string> ops;
  } kCases[] = {{0, {"Expand"}},
                {1, {}},
                {2, {"Mul", "Mul"}},
                {3, {"Mul", "Mul", "Mul"}},
                {0.5f, {"Mul", "Pow", "Mul"}}};
  for (const auto& c : kCases) {
    DifferentiateOptions options;
    options.constants = {{1, ScalarTensor(c.exponent)}};
    const Differentiated d = Differentiate("Pow", {kX, F32({})}, options);
    EXPECT_EQ(d.Ops(), c.ops) << c.exponent;
  }
}

TEST(Gradient, OfMatMulUsesFlagsInEveryForm) {
  const std::vector<std::pair<Ints, Ints>> shapes = {
      {{2, 3}, {3, 4}},    {{5, 2, 3}, {5, 3, 4}},    {{5, 2, 3}, {3, 4}},
      {{2, 3}, {5, 3, 4}}, {{6, 1, 2, 3}, {5, 3, 4}}, {{1, 2, 3}, {5, 3, 4}}};
  for (const auto& [a, b] : shapes) {
    for (int flags = 0; flags < 4; ++flags) {
      Ints a_dims = a;
      Ints b_dims = b;
      if (flags & 1) std::swap(a_dims.end()[-1], a_dims.end()[-2]);
      if (flags & 2) std::swap(b_dims.end()[-1], b_dims.end()[-2]);
      DifferentiateOptions options;
      options.attributes = {{"trans_a", flags & 1}, {"trans_b", flags >> 1}};
      const Differentiated d =
          Differentiate("MatMul", {F32(a_dims), F32(b_dims)}, options);
      ASSERT_TRUE(d.status.ok());
      for (const std::string& op : d.Ops()) {
        EXPECT_TRUE(op == "MatMul" || op == "Reshape" || op == "ReduceSum")
            << op;
      }
    }
  }
}

TEST(Gradient, OfSharedWeightsIsOneFlatProduct) {
  for (int trans_b : {0, 1}) {
    DifferentiateOptions options;
    options.attributes = {{"trans_b", trans_b}};
    options.wanted = {false, true};
    const Differentiated d = Differentiate(
        "MatMul", {F32({5, 2, 3}), trans_b ? F32({4, 3}) : F32({3, 4})},
        options);
    EXPECT_THAT(d.Ops(), ElementsAre("Reshape", "Reshape", "MatMul"));
  }
}

TEST(Gradient, OfVectorProductsHasTheVectorsShapes) {
  for (const auto& [a, b] :
       std::vector<std::pair<Ints, Ints>>{{{3}, {3}},
                                          {{3}, {3, 4}},
                                          {{2, 3}, {3}},
                                          {{3}, {5, 3, 4}},
                                          {{5, 2, 3}, {3}}}) {
    EXPECT_TRUE(Differentiate("MatMul", {F32(a), F32(b)}).status.ok());
  }
}

TEST(Gradient, OfGemmKeepsAlphaAndBeta) {
  for (int flags = 0; flags < 4; ++flags) {
    DifferentiateOptions options;
    options.attributes = {{"transA", flags & 1},
                          {"transB", flags >> 1},
                          {"alpha", 0.5},
                          {"beta", 2.0}};
    const Differentiated d =
        Differentiate("Gemm",
                      {flags & 1 ? F32({3, 2}) : F32({2, 3}),
                       flags & 2 ? F32({4, 3}) : F32({3, 4}), F32({4})},
                      options);
    EXPECT_THAT(d.Ops(), ElementsAre("Gemm", "Gemm", "ReduceSum", "Mul"));
    EXPECT_EQ(d.graph.nodes[1].attributes.Float("alpha", 0), 0.5);
    EXPECT_EQ(d.graph.nodes[2].attributes.Float("alpha", 0), 0.5);
  }
  EXPECT_THAT(Differentiate("Gemm", {F32({2, 3}), F32({3, 4})}).Ops(),
              ElementsAre("Gemm", "Gemm"));
}

}  // namespace
}  // namespace loadline::models
