// What shape inference accepts.
#include "models/ops/curves.h"
#include "tests/models/infer_cases.h"

namespace loadline::models {

std::vector<Accepted> AcceptedCases() {
  std::vector<Accepted> cases;
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Neg",
                         "Abs", "Erf", "Reciprocal", "Gelu"}) {
    cases.push_back({op, {F32({2, 0})}, {}, {F32({2, 0})}});
  }
  for (const char* op :
       {"ReluGrad", "SigmoidGrad", "TanhGrad", "GeluGrad", "ErfGrad"}) {
    cases.push_back({op, {kX, kX}, {}, {kX}});
  }
  ForEachCurve(Curves(), [&cases](auto curve) {
    Attributes attributes;
    for (const CurveAttribute& a : curve.kFacts.attributes) {
      if (!a.name.empty()) attributes.Set(a.name, a.fallback);
    }
    cases.push_back(
        {curve.kFacts.name.data(), {F32({2, 0})}, attributes, {F32({2, 0})}});
    cases.push_back({curve.kFacts.gradient.data(), {kX, kX}, attributes, {kX}});
  });
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    cases.push_back({op, {F32({3, 1}), F32({4})}, {}, {F32({3, 4})}});
    cases.push_back({op, {I64({}), I64({2})}, {}, {I64({2})}});
  }
  for (const char* op :
       {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    cases.push_back({op, {I32({3, 1}), I32({4})}, {}, {Bool({3, 4})}});
  }
  const Attributes axis{{"axis", -1}};
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    cases.push_back({op, {kX}, axis, {kX}});
  }
  for (const char* op : {"SoftmaxGrad", "LogSoftmaxGrad"}) {
    cases.push_back({op, {kX, kX}, axis, {kX}});
  }
  const std::vector<Accepted> rest = {
      {"Gelu", {kX}, {{"approximate", "tanh"}}, {kX}},
      {"Not", {Bool({2})}, {}, {Bool({2})}},
      {"Cast", {I64({2})}, {{"to", "f32"}}, {F32({2})}},
      {"Pow", {F32({2}), F32({})}, {}, {F32({2})}},
      {"And", {Bool({2, 1}), Bool({3})}, {}, {Bool({2, 3})}},
      {"Or", {Bool({0}), Bool({1})}, {}, {Bool({0})}},
      {"Where", {Bool({3, 1}), I64({2, 1, 1}), I64({5})}, {}, {I64({2, 3, 5})}},
      {"ReduceSum", {kX}, {}, {F32({1, 1, 1, 1})}},
      {"ReduceSum", {kX}, {{"keepdims", 0}}, {F32({})}},
      {"ReduceSum", {kX}, {{"axes", Ints{}}}, {kX}},
      {"ReduceSum",
       {F32({0, 3})},
       {{"axes", Ints{0}}, {"keepdims", 0}},
       {F32({3})}},
      {"ReduceMean",
       {kX},
       {{"axes", Ints{-1, 2}}, {"keepdims", 0}},
       {F32({2, 4})}},
      {"Reshape", {I64({6})}, {{"shape", Ints{2, 3}}}, {I64({2, 3})}},
      {"Reshape", {F32({1})}, {{"shape", Ints{}}}, {F32({})}},
      {"Transpose",
       {Bool({2, 3, 4})},
       {{"perm", Ints{2, 0, 1}}},
       {Bool({4, 2, 3})}},
      {"Concat", {I64({2, 1}), I64({2, 0}), I64({2, 5})}, axis, {I64({2, 6})}},
      {"Split",
       {F32({2, 6})},
       {{"axis", 1}, {"sizes", Ints{1, 0, 5}}},
       {F32({2, 1}), F32({2, 0}), F32({2, 5})}},
      {"Slice", {I32({4, 9})}, kSlice, {I32({3, 3})}},
      {"SliceGrad",
       {F32({3, 3})},
       With(kSlice, "shape", Ints{4, 9}),
       {F32({4, 9})}},
      {"Expand", {F32({3, 1})}, {{"shape", Ints{2, 3, 4}}}, {F32({2, 3, 4})}},
      {"Gather", {F32({7, 5}), I64({2, 3})}, {{"axis", 0}}, {F32({2, 3, 5})}},
      {"Gather", {I64({7, 5}), I32({})}, axis, {I64({7})}},
      {"GatherGrad",
       {F32({2, 3, 5}), I64({2, 3})},
       {{"axis", 0}, {"shape", Ints{7, 5}}},
       {F32({7, 5})}},
      {"Scatter", {F32({7, 5}), I64({3}), F32({3, 5})}, {}, {F32({7, 5})}},
      {"Scatter", {I64({7}), I32({9}), I64({9})}, {}, {I64({7})}},
      {"ReduceMax", {F32({7, 5})}, {{"axis", -1}}, {F32({7, 1})}},
      {"ReduceMin", {I32({7, 5})}, {{"axis", 0}}, {I32({1, 5})}},
      {"CumSum", {I64({7, 5})}, axis, {I64({7, 5})}},
      {"TopK", {F32({7, 5})}, {{"axis", 1}, {"k", 3}}, {I64({7, 3})}},
      {"MatMul", {F32({2, 3}), F32({3, 4})}, {}, {F32({2, 4})}},
      {"MatMul", {F32({3}), F32({3})}, {}, {F32({})}},
      {"MatMul", {F32({3}), F32({5, 3, 4})}, {}, {F32({5, 4})}},
      {"MatMul", {F32({5, 2, 3}), F32({3})}, {}, {F32({5, 2})}},
      {"MatMul",
       {F32({6, 1, 3, 2}), F32({5, 4, 3})},
       {{"trans_a", 1}, {"trans_b", 1}},
       {F32({6, 5, 2, 4})}},
      {"Gemm",
       {F32({3, 2}), F32({4, 3}), F32({4})},
       {{"transA", 1}, {"transB", 1}, {"alpha", 0.5}},
       {F32({2, 4})}},
      {"Gemm", {F32({2, 3}), F32({3, 4}), F32({2, 1})}, {}, {F32({2, 4})}},
      {"GemmBiasGrad",
       {F32({3, 2}), F32({3, 4})},
       {{"transA", 1}, {"dy", std::string("a")}},
       {F32({2, 4}), F32({2})}},
      {"GemmBiasGrad",
       {F32({3, 2}), F32({3, 4})},
       {{"transA", 1}, {"dy", std::string("b")}},
       {F32({2, 4}), F32({4})}},
      {"GemmSum",
       {F32({3, 2}), F32({3, 4}), F32({2, 4})},
       {{"transA", 1}},
       {F32({2, 4})}},
      {"GemmSum",
       {{DType::kBF16, {2, 3}}, {DType::kBF16, {3, 4}}},
       {},
       {F32({2, 4})}},
      {"RowsView",
       {F32({5, 64})},
       {{"start", 64}, {"shape", Ints{2, 8, 8}}},
       {F32({2, 8, 8})}},
      {"WriteRows",
       {F32({2, 6}), F32({5, 2, 3})},
       {{"start", 18}, {"shape", Ints{5, 2, 3}}},
       {F32({5, 2, 3})}},
      {"CrossEntropyRows",
       {F32({2, 3, 10}), I64({2, 3})},
       {{"class_axis", 2}},
       {F32({2, 3}), F32({2, 3})}},
      {"CrossEntropyMean",
       {F32({2, 3}), F32({2, 3}), I64({2, 3})},
       {},
       {F32({})}},
      {"CountTargets", {I64({2, 3})}, {}, {F32({})}},
      {"GemmGeluGrad",
       {F32({2, 3}), F32({4, 3}), F32({2, 4})},
       {{"transB", 1}, {"approximate", std::string("tanh")}},
       {F32({2, 4})}},
      {"Conv", {kX, F32({6, 4, 3, 3}), F32({6})}, kSame3, {F32({2, 6, 8, 8})}},
      {"Conv",
       {F32({2, 4, 9}), F32({4, 1, 3})},
       {{"group", 4}, {"strides", Ints{2}}, {"dilations", Ints{2}}},
       {F32({2, 4, 3})}},
      {"ConvInputGrad",
       {F32({2, 6, 8, 8}), F32({6, 4, 3, 3})},
       With(kSame3, "shape", kX.dims),
       {kX}},
      {"ConvWeightGrad",
       {F32({2, 6, 8, 8}), kX},
       With(kSame3, "shape", Ints{6, 4, 3, 3}),
       {F32({6, 4, 3, 3})}},
      {"BatchNormalization", {kX, kC, kC, kC, kC}, {{"epsilon", 1e-5}}, {kX}},
      {"BatchNormTraining", {kX, kC, kC}, {{"epsilon", 1e-5}}, {kX, kC, kC}},
      {"BatchNormGrad", {kX, kX, kC, kC, kC}, {}, {kX, kC, kC}},
      {"RunningStatsUpdate",
       {kC, kC, kC, kC},
       {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", 128}},
       {kC, kC}},
      {"LayerNormalization",
       {kX, F32({8, 8}), F32({8, 8})},
       {{"axis", 2}, {"epsilon", 1e-5}},
       {kX, F32({2, 4}), F32({2, 4})}},
      {"LayerNormGrad",
       {kX, kX, F32({8}), F32({2, 4, 8}), F32({2, 4, 8})},
       axis,
       {kX, F32({8}), F32({8})}},
      {"MaxPool", {kX}, kPool2, {F32({2, 4, 4, 4}), I32({2, 4, 4, 4})}},
      // ceil((7 - 2) / 2) + 1 = 4: the last window starts inside.
      {"MaxPool",
       {F32({1, 1, 7})},
       {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", 1}},
       {F32({1, 1, 4}), I32({1, 1, 4})}},
      // (4 + 2 - 2) / 3: a third window would start in the padding after.
      {"AveragePool",
       {F32({1, 1, 4})},
       {{"kernel_shape", Ints{2}},
        {"strides", Ints{3}},
        {"pads", Ints{1, 1}},
        {"ceil_mode", 1}},
       {F32({1, 1, 2})}},
      {"MaxPoolGrad",
       {F32({2, 4, 4, 4}), I32({2, 4, 4, 4})},
       With(kPool2, "shape", kX.dims),
       {kX}},
      {"AveragePool", {kX}, kPool2, {F32({2, 4, 4, 4})}},
      {"AveragePoolGrad",
       {F32({2, 4, 4, 4})},
       With(kPool2, "shape", kX.dims),
       {kX}},
      {"Dropout", {kX}, {{"ratio", 0.1}, {"salt", 3}}, {kX}},
      {"RandomUniform",
       {F32({})},
       {{"shape", Ints{2, 3}}, {"salt", 3}},
       {F32({2, 3})}},
      {"Attention",
       {F32({2, 6, 4}), F32({2, 7, 4}), F32({2, 7, 3}), F32({6, 1})},
       {{"scale", 0.5}},
       {F32({2, 6, 3}), F32({2, 6})}},
      {"Attention",
       {F32({2, 6, 5, 4}), F32({2, 7, 5, 4}), F32({2, 7, 5, 3})},
       {{"scale", 0.5}, {"interleaved", 1}, {"causal", 1}},
       {F32({2, 6, 5, 3}), F32({2, 5, 6})}},
      {"AttentionGrad",
       {F32({6, 3}), F32({6, 4}), F32({7, 4}), F32({7, 3}), F32({6, 3}),
        F32({6}), F32({7})},
       {{"scale", 0.5}, {"ratio", 0.1}, {"salt", 3}},
       {F32({6, 4}), F32({7, 4}), F32({7, 3})}},
      {"SoftmaxCrossEntropy",
       {F32({2, 5, 7}), I64({2, 7})},
       {{"class_axis", -2}},
       {F32({}), F32({2, 7})}},
      {"SoftmaxCrossEntropy",
       {{DType::kBF16, {2, 5}}, I64({2})},
       {{"class_axis", 1}},
       {F32({}), F32({2})}},
      {"SoftmaxCrossEntropyGrad",
       {F32({}), F32({2, 5}), I32({2}), F32({2})},
       {{"class_axis", 1}},
       {F32({2, 5})}},
      {"MseLoss", {kC, kC}, {}, {F32({})}},
      {"MseLossGrad", {F32({}), kC, kC}, {}, {kC}},
      {"CountCorrect", {F32({2, 5}), I64({2})}, {{"class_axis", 1}}, {I64({})}},
      {"Sgd", {kC, kC}, {}, {kC}},
      {"Sgd", {kC, kC, kC}, {{"momentum", 0.9}, {"nesterov", 1}}, {kC, kC}},
      {"AdamW", {kC, kC, kC, kC}, kAdam, {kC, kC, kC}},
  };
  cases.insert(cases.end(), rest.begin(), rest.end());
  return cases;
}

}  // namespace loadline::models
