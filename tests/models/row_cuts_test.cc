// What the table says about cutting an operator into parts of its rows.
#include "models/ops/row_cuts.h"

#include <gtest/gtest.h>

namespace loadline::models {
namespace {

using Lead = std::vector<int>;
constexpr int kWhole = RowCut::kWhole;
constexpr int kAdded = RowCut::kAdded;

struct Case {
  const char* op;
  std::vector<TensorType> inputs;
  Attributes attributes;
};

std::vector<RowCut> Cuts(const Case& c, int64_t rows) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const TensorType& type : c.inputs) {
    inputs.push_back(graph.AddInput("x", type));
  }
  EXPECT_TRUE(graph.AddNode(c.op, "node", inputs, c.attributes).ok()) << c.op;
  return RowCutsOf(graph, graph.nodes.at(0), rows);
}

// The only way to cut it, and the attributes that the parts change.
void ExpectCut(const Case& c, int64_t rows, const Lead& inputs,
               const Lead& outputs, const Attributes& changed = {}) {
  SCOPED_TRACE(c.op);
  const std::vector<RowCut> cuts = Cuts(c, rows);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].inputs, inputs);
  EXPECT_EQ(cuts[0].outputs, outputs);
  for (const auto& [name, value] : changed.map()) {
    EXPECT_EQ(AttributeToText(cuts[0].attributes.map().at(name)),
              AttributeToText(value));
  }
}

TensorType F(std::vector<int64_t> dims) { return {DType::kF32, dims}; }

TEST(RowDims, AreTheFirstWhoseProductIsTheRows) {
  EXPECT_EQ(RowDims(F({8, 4, 3}), 8), 1);
  EXPECT_EQ(RowDims(F({8, 4, 3}), 32), 2);
  EXPECT_EQ(RowDims(F({1, 32, 3}), 32), 2);
  EXPECT_EQ(RowDims(F({8, 4, 3}), 4), 1) << "two to each row";
  EXPECT_EQ(RowDims(F({6, 6, 3}), 4), 2);
  EXPECT_EQ(RowDims(F({8, 4, 3}), 5), -1);
  EXPECT_EQ(RowDims(F({0, 4}), 4), -1);
}

TEST(RowCuts, ProductsCutRowsExamplesOrTheInnerDimension) {
  ExpectCut({"MatMul", {F({8, 4, 3}), F({3, 5})}}, 32, {2, kWhole}, {2});
  ExpectCut({"MatMul", {F({8, 2, 4, 3}), F({8, 2, 3, 5})}}, 16, {2, 2}, {2});
  ExpectCut({"MatMul", {F({32, 3}), F({32, 5})}, {{"trans_a", int64_t{1}}}}, 32,
            {1, 1}, {kAdded});
  ExpectCut({"MatMul", {F({8, 4}), F({4, 5})}}, 4, {1, kWhole}, {1});
  EXPECT_TRUE(Cuts({"MatMul", {F({6, 4}), F({4, 5})}}, 4).empty());
  EXPECT_TRUE(Cuts({"MatMul", {F({8, 2, 4, 3}), F({2, 3, 5})}}, 16).empty())
      << "b broadcasts over the rows";
}

TEST(RowCuts, ASquareProductCanBeReadInTwoWays) {
  const auto cuts =
      Cuts({"MatMul", {F({4, 4}), F({4, 4})}, {{"trans_a", int64_t{1}}}}, 4);
  ASSERT_EQ(cuts.size(), 1u) << "transposed rows are no leading dimension";
  EXPECT_EQ(cuts[0].outputs, Lead{kAdded});
}

TEST(RowCuts, GemmsCutTheirAddendOnlyIfItHasRows) {
  ExpectCut({"Gemm", {F({8, 3}), F({3, 5}), F({5})}}, 8, {1, kWhole, kWhole},
            {1});
  ExpectCut({"Gemm", {F({8, 3}), F({3, 5}), F({8, 5})}}, 8, {1, kWhole, 1},
            {1});
  ExpectCut({"Gemm", {F({8, 3}), F({3, 5}), F({1, 5})}}, 8, {1, kWhole, kWhole},
            {1});
  ExpectCut({"GemmBiasGrad",
             {F({8, 3}), F({8, 5})},
             {{"transA", int64_t{1}}, {"dy", std::string("a")}}},
            8, {1, 1}, {kAdded, kAdded});
}

TEST(RowCuts, PointwiseOperatorsReadOperandsWithoutRowsWhole) {
  ExpectCut({"Add", {F({8, 4, 3}), F({3})}}, 32, {2, kWhole}, {2});
  ExpectCut({"Add", {F({8, 4, 3}), F({4, 3})}}, 8, {1, kWhole}, {1});
  ExpectCut({"Add", {F({8, 4, 3}), F({8, 4, 1})}}, 32, {2, 2}, {2});
  EXPECT_TRUE(Cuts({"Add", {F({8, 4, 3}), F({4, 3})}}, 32).empty());
  EXPECT_TRUE(Cuts({"Add", {F({8, 4, 3}), F({8, 1, 3})}}, 32).empty());
  EXPECT_TRUE(
      Cuts({"Dropout", {F({8, 4})}, {{"ratio", 0.5}, {"salt", int64_t{1}}}}, 8)
          .empty())
      << "the mask depends on the position";
}

TEST(RowCuts, MoveAxesToWhereTheyAreInAPart) {
  ExpectCut({"Softmax", {F({8, 4, 3})}, {{"axis", int64_t{2}}}}, 32, {2}, {2},
            {{"axis", int64_t{1}}});
  ExpectCut({"Transpose", {F({8, 4, 3, 5})}, {{"perm", Ints{0, 1, 3, 2}}}}, 32,
            {2}, {2}, {{"perm", Ints{0, 2, 1}}});
  ExpectCut({"ReduceSum",
             {F({8, 4, 3})},
             {{"axes", Ints{2}}, {"keepdims", int64_t{0}}}},
            32, {2}, {2}, {{"axes", Ints{1}}});
  ExpectCut({"ReduceSum",
             {F({8, 4, 3, 5})},
             {{"axes", Ints{0, 1, 3}}, {"keepdims", int64_t{0}}}},
            32, {2}, {kAdded}, {{"axes", Ints{0, 2}}});
  ExpectCut({"LayerNormalization",
             {F({8, 4, 3}), F({3}), F({3})},
             {{"axis", int64_t{2}}, {"epsilon", 1e-5}}},
            32, {2, kWhole, kWhole}, {2, 2, 2}, {{"axis", int64_t{1}}});
  ExpectCut({"CrossEntropyRows",
             {F({8, 4, 3}), {DType::kI64, {8, 4}}},
             {{"class_axis", int64_t{2}}}},
            32, {2, 2}, {2, 2}, {{"class_axis", int64_t{1}}});
  EXPECT_TRUE(
      Cuts({"Softmax", {F({8, 4, 3})}, {{"axis", int64_t{1}}}}, 32).empty());
  EXPECT_TRUE(Cuts({"Transpose", {F({8, 4, 3})}, {{"perm", Ints{1, 0, 2}}}}, 32)
                  .empty());
  EXPECT_TRUE(Cuts({"ReduceSum",
                    {F({8, 4, 3})},
                    {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}},
                   32)
                  .empty());
}

TEST(RowCuts, AttentionIsCutByHeadsOrByExamplesIfTheyAreInterleaved) {
  const Attributes plain = {{"scale", 1.0}};
  const Attributes woven = {{"scale", 1.0}, {"interleaved", int64_t{1}}};
  const std::vector<TensorType> by_heads(3, F({2, 6, 5, 4}));
  ExpectCut({"Attention", by_heads, plain}, 12, {2, 2, 2}, {2, 2});
  ExpectCut({"Attention", by_heads, plain}, 2, {1, 1, 1}, {1, 1});
  ExpectCut({"Attention", by_heads, woven}, 2, {1, 1, 1}, {1, 1});
  EXPECT_TRUE(Cuts({"Attention", by_heads, woven}, 12).empty());
  EXPECT_TRUE(Cuts({"Attention", by_heads, plain}, 60).empty());
  const Attributes dropped = {
      {"scale", 1.0}, {"ratio", 0.1}, {"salt", int64_t{1}}};
  EXPECT_TRUE(Cuts({"Attention", by_heads, dropped}, 2).empty());
}

TEST(RowCuts, ConvolutionsAreCutByExamples) {
  const Attributes three = {{"kernel_shape", Ints{3, 3}},
                            {"pads", Ints{1, 1, 1, 1}}};
  ExpectCut({"Conv", {F({6, 2, 8, 8}), F({4, 2, 3, 3}), F({4})}, three}, 6,
            {1, kWhole, kWhole}, {1});
  Attributes of_weights = three;
  of_weights.Set("shape", Ints{4, 2, 3, 3});
  ExpectCut({"ConvWeightGrad", {F({6, 4, 8, 8}), F({6, 2, 8, 8})}, of_weights},
            6, {1, 1}, {kAdded});
  EXPECT_TRUE(Cuts({"BatchNormTraining",
                    {F({6, 2, 8, 8}), F({2}), F({2})},
                    {{"epsilon", 1e-5}}},
                   6)
                  .empty())
      << "statistics are those of all examples";
}

}  // namespace
}  // namespace loadline::models
