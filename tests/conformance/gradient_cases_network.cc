// Gradient cases of matrix products, convolutions, normalizations, attention,
// pooling and losses.
#include "tests/conformance/gradient_cases.h"

namespace loadline::executor {

using models::Attributes;
using models::Ints;
using models::ValueId;

namespace {

GradientCase Product(const std::string& special, Ints a, Ints b,
                     Attributes attributes, const std::string& op = "MatMul") {
  return {op + special, [=](GradientGraph& builder) -> std::vector<ValueId> {
            return {builder.Op(op, {builder.Parameter(a), builder.Parameter(b)},
                               attributes)};
          }};
}

GradientCase Convolution(const std::string& special, Ints x, Ints w, bool bias,
                         Ints strides, Ints pads, Ints dilations,
                         int64_t group) {
  return {"Conv" + special, [=](GradientGraph& b) -> std::vector<ValueId> {
            std::vector<ValueId> inputs = {b.Parameter(x), b.Parameter(w)};
            if (bias) inputs.push_back(b.Parameter({w[0]}));
            return {b.Op("Conv", inputs,
                         {{"kernel_shape", Ints(w.begin() + 2, w.end())},
                          {"strides", strides},
                          {"pads", pads},
                          {"dilations", dilations},
                          {"group", group}})};
          }};
}

// ConvInputGrad, from the Conv's output of shape `y` to its input of shape `x`.
GradientCase TransposedConvolution(const std::string& special, Ints y, Ints w,
                                   Ints x, Ints strides, Ints pads,
                                   Ints dilations, int64_t group) {
  return {"ConvInputGrad" + special,
          [=](GradientGraph& b) -> std::vector<ValueId> {
            return {b.Op("ConvInputGrad", {b.Parameter(y), b.Parameter(w)},
                         {{"kernel_shape", Ints(w.begin() + 2, w.end())},
                          {"strides", strides},
                          {"pads", pads},
                          {"dilations", dilations},
                          {"group", group},
                          {"shape", x}})};
          }};
}

}  // namespace

std::vector<GradientCase> ProductGradientCases() {
  const int64_t on = 1;
  return {
      Product("", {3, 4}, {4, 5}, {}),
      Product(" trans_a", {4, 3}, {4, 5}, {{"trans_a", on}}),
      Product(" trans_b", {3, 4}, {5, 4}, {{"trans_b", on}}),
      Product(" both", {4, 3}, {5, 4}, {{"trans_a", on}, {"trans_b", on}}),
      Product(" batched", {2, 2, 3, 4}, {2, 2, 4, 5}, {}),
      Product(" batched trans_b", {2, 2, 3, 4}, {2, 2, 5, 4},
              {{"trans_b", on}}),
      Product(" batched trans_a", {2, 4, 3}, {2, 4, 5}, {{"trans_a", on}}),
      Product(" shared right side", {2, 3, 4}, {4, 5}, {}),
      Product(" shared right side trans_b", {2, 3, 4}, {5, 4},
              {{"trans_b", on}}),
      Product(" shared left side", {3, 4}, {2, 4, 5}, {}),
      Product(" broadcast batches", {2, 1, 3, 4}, {3, 4, 2}, {}),
      Product(" vector left", {4}, {4, 5}, {}),
      Product(" vector right", {3, 4}, {4}, {}),
      Product(" two vectors", {4}, {4}, {}),
      Product("", {3, 4}, {4, 5}, {{"alpha", 0.5}}, "Gemm"),
      Product(" transA", {4, 3}, {4, 5}, {{"transA", on}}, "Gemm"),
      Product(" both", {4, 3}, {5, 4}, {{"transA", on}, {"transB", on}},
              "Gemm"),
      {"Gemm with bias",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {
             b.Op("Gemm",
                  {b.Parameter({3, 4}), b.Parameter({5, 4}), b.Parameter({5})},
                  {{"transB", int64_t{1}}, {"beta", 0.5}})};
       }},
      Convolution("", {2, 3, 5, 5}, {4, 3, 3, 3}, false, {1, 1}, {1, 1, 1, 1},
                  {1, 1}, 1),
      Convolution(" bias, stride 2", {2, 3, 6, 5}, {4, 3, 3, 3}, true, {2, 2},
                  {1, 1, 1, 1}, {1, 1}, 1),
      Convolution(" groups", {1, 4, 4, 4}, {6, 2, 3, 3}, true, {1, 1},
                  {0, 0, 0, 0}, {1, 1}, 2),
      Convolution(" dilated, uneven pads", {1, 2, 7, 6}, {2, 2, 3, 2}, false,
                  {1, 2}, {2, 0, 1, 1}, {2, 1}, 1),
      Convolution(" 1d", {2, 3, 8}, {4, 3, 3}, true, {1}, {1, 1}, {1}, 1),
      TransposedConvolution(" stride 2", {2, 3, 2, 3}, {3, 2, 2, 2},
                            {2, 2, 5, 6}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1),
      TransposedConvolution(" groups, pads", {1, 4, 3, 3}, {4, 1, 3, 3},
                            {1, 2, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2),
  };
}

std::vector<GradientCase> NormalizationAndPoolingGradientCases() {
  const Attributes pool = {{"kernel_shape", Ints{3, 3}},
                           {"strides", Ints{2, 2}},
                           {"pads", Ints{1, 1, 1, 1}},
                           {"ceil_mode", int64_t{0}}};
  const auto average = [pool](int64_t count_include_pad) {
    return [=](GradientGraph& b) -> std::vector<ValueId> {
      Attributes attributes = pool;
      attributes.Set("count_include_pad", count_include_pad);
      return {b.Op("AveragePool", {b.Parameter({1, 2, 5, 5})}, attributes)};
    };
  };
  return {
      {"BatchNormTraining",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op(
             "BatchNormTraining",
             {b.Parameter({2, 3, 2, 3}), b.Parameter({3}), b.Parameter({3})},
             {{"epsilon", 1e-2}})};
       }},
      {"BatchNormTraining of a matrix",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("BatchNormTraining",
                      {b.Parameter({8, 3}), b.Parameter({3}), b.Parameter({3})},
                      {{"epsilon", 1e-2}})};
       }},
      {"BatchNormalization",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {
             b.Op("BatchNormalization",
                  {b.Parameter({2, 3, 2, 3}), b.Parameter({3}),
                   b.Parameter({3}), b.Constant({3}), b.Constant({3}, 0.5, 2)},
                  {{"epsilon", 1e-5}})};
       }},
      {"LayerNormalization",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {
             b.Op("LayerNormalization",
                  {b.Parameter({2, 3, 8}), b.Parameter({8}), b.Parameter({8})},
                  {{"axis", int64_t{2}}, {"epsilon", 1e-2}})};
       }},
      {"LayerNormalization without bias over two axes",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("LayerNormalization",
                      {b.Parameter({3, 2, 4}), b.Parameter({2, 4})},
                      {{"axis", int64_t{1}}, {"epsilon", 1e-2}})};
       }},
      UnaryCase("Softmax", -2, 2, {{"axis", int64_t{1}}}),
      UnaryCase("Softmax", -2, 2, {{"axis", int64_t{0}}}, " first axis"),
      UnaryCase("LogSoftmax", -2, 2, {{"axis", int64_t{1}}}),
      {"Attention with a mask and dropout",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Ops("Attention",
                       {b.Parameter({2, 3, 4}), b.Parameter({2, 5, 4}),
                        b.Parameter({2, 5, 3}), b.Constant({2, 1, 5})},
                       {{"scale", 0.5}, {"ratio", 0.3}, {"salt", 7}})[0]};
       }},
      {"Attention causal, heads interleaved",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Ops("Attention",
                       {b.Parameter({2, 4, 2, 3}), b.Parameter({2, 4, 2, 3}),
                        b.Parameter({2, 4, 2, 3})},
                       {{"scale", 0.7}, {"causal", 1}, {"interleaved", 1}})[0]};
       }},
      {"MaxPool",
       [pool](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("MaxPool", {b.Parameter({1, 2, 5, 5})}, pool)};
       }},
      {"AveragePool", average(0)},
      {"AveragePool counting pads", average(1)},
      {"SoftmaxCrossEntropy",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("SoftmaxCrossEntropy",
                      {b.Parameter({5, 4}, -2, 2), b.Indices({5}, 4)},
                      {{"class_axis", int64_t{1}}})};
       }},
      {"SoftmaxCrossEntropy classes second of three",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("SoftmaxCrossEntropy",
                      {b.Parameter({2, 4, 3}, -2, 2), b.Indices({2, 3}, 4)},
                      {{"class_axis", int64_t{1}}})};
       }},
      {"MseLoss",
       [](GradientGraph& b) -> std::vector<ValueId> {
         return {b.Op("MseLoss", {b.Parameter({3, 4}), b.Constant({3, 4})})};
       }},
  };
}

}  // namespace loadline::executor
