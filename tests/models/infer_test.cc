// Inference of every operator: one table of what is accepted, one of what is
// refused and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "models/ops/operator.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {
namespace {

using ::testing::HasSubstr;
using Types = std::vector<TensorType>;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

absl::StatusOr<Types> Infer(const char* op, const Types& inputs,
                            const Attributes& attributes) {
  Node node;
  node.op = op;
  node.name = "n";
  node.attributes = attributes;
  std::vector<const TensorType*> pointers;
  for (const TensorType& type : inputs) pointers.push_back(&type);
  NormalizeAxes(&node, pointers);
  return InferTypes(node, pointers);
}

Attributes With(Attributes attributes, const char* name, Attribute value) {
  attributes.Set(name, std::move(value));
  return attributes;
}

struct Accepted {
  const char* op;
  Types inputs;
  Attributes attributes;
  Types outputs;
};

const TensorType kX = F32({2, 4, 8, 8});
const TensorType kC = F32({4});
const Attributes kPool2{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
const Attributes kSame3{{"kernel_shape", Ints{3, 3}},
                        {"pads", Ints{1, 1, 1, 1}}};
const Attributes kSlice{{"starts", Ints{1, 0}},
                        {"ends", Ints{8, 3}},
                        {"axes", Ints{1, 0}},
                        {"steps", Ints{3, 1}}};
const Attributes kAdam{{"beta1", 0.9},
                       {"beta2", 0.999},
                       {"epsilon", 1e-8},
                       {"weight_decay", 0.01}};

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
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
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

TEST(InferTypes, GivesTheTypesOfEveryOperator) {
  std::set<std::string> seen;
  for (const Accepted& c : AcceptedCases()) {
    seen.insert(c.op);
    const absl::StatusOr<Types> types = Infer(c.op, c.inputs, c.attributes);
    ASSERT_TRUE(types.ok()) << types.status();
    EXPECT_EQ(*types, c.outputs) << c.op;
  }
  for (const Operator* op : AllOperators()) {
    EXPECT_EQ(seen.count(std::string(op->name)), 1u) << op->name;
  }
}

struct Refused {
  const char* op;
  Types inputs;
  Attributes attributes;
  const char* message;
};

const Refused kRefused[] = {
    {"Relu", {}, {}, "has 0 inputs"},
    {"Relu", {kX, kX}, {}, "has 2 inputs"},
    {"Relu", {I64({2})}, {}, "input 0 is i64[2], not f32"},
    {"Relu", {kX}, {{"axis", 1}}, "unknown attribute axis"},
    {"Gelu", {kX}, {{"approximate", "erf"}}, "approximate is \"erf\""},
    {"Gelu", {kX}, {{"approximate", 1}}, "not a string"},
    {"ReluGrad", {kX, kC}, {}, "input 1 is f32[4], not f32[2,4,8,8]"},
    {"Not", {kX}, {}, "not bool"},
    {"Cast", {kX}, {}, "attribute to is missing"},
    {"Cast", {kX}, {{"to", "f16"}}, "attribute to is \"f16\""},
    {"Cast", {kX}, {{"to", "float"}}, "attribute to is \"float\""},
    {"Add", {F32({2}), F32({3})}, {}, "[2] and [3] do not broadcast"},
    {"Add", {F32({0}), F32({2})}, {}, "do not broadcast"},
    {"Add", {F32({2}), I64({2})}, {}, "element types differ"},
    {"Add", {Bool({2}), Bool({2})}, {}, "not f32 or bf16 or i64 or i32"},
    {"Add",
     {F32({int64_t{1} << 31, 1}), F32({int64_t{1} << 31})},
     {},
     "more bytes than int64"},
    {"Pow", {I64({2}), I64({2})}, {}, "not f32"},
    {"And", {Bool({2}), F32({2})}, {}, "not bool"},
    {"Where", {F32({2}), kC, kC}, {}, "input 0"},
    {"Where", {Bool({2}), kC, kC}, {}, "do not broadcast"},
    {"Where", {Bool({4}), kC, I64({4})}, {}, "element types differ"},
    {"ReduceSum", {kX}, {{"axes", Ints{4}}}, "axes has 4"},
    {"ReduceSum", {kX}, {{"axes", Ints{-5}}}, "axes has -5"},
    {"ReduceSum", {kX}, {{"axes", Ints{1, -3}}}, "axes has 1 twice"},
    {"ReduceMean", {F32({0, 2})}, {{"axes", Ints{0}}}, "mean of no elements"},
    {"Reshape", {kX}, {{"shape", Ints{2, -1}}}, "negative dimension"},
    {"Reshape", {kX}, {{"shape", Ints{2, 3}}}, "makes f32[2,3] of"},
    {"Reshape", {kX}, {{"shape", Ints{kHuge, kHuge, 0}}}, "more bytes"},
    {"Transpose", {kX}, {{"perm", Ints{0, 1, 2}}}, "not a permutation"},
    {"Transpose", {kX}, {{"perm", Ints{0, 1, 2, 2}}}, "not a permutation"},
    {"Transpose", {kX}, {{"perm", Ints{0, 1, 2, 4}}}, "not a permutation"},
    {"Transpose", {kX}, {{"perm", Ints{0, 1, 2, 3, 3}}}, "not a permutation"},
    {"Concat", {kX}, {{"axis", 4}}, "axis is 4"},
    {"Concat", {kC, F32({4, 1})}, {{"axis", 0}}, "does not join"},
    {"Concat", {kC, I64({4})}, {{"axis", 0}}, "does not join"},
    {"Concat", {F32({2, 3}), F32({3, 3})}, {{"axis", 1}}, "does not join"},
    {"Split", {kC}, {{"axis", 0}, {"sizes", Ints{2, 3}}}, "does not add up"},
    {"Split", {kC}, {{"axis", 0}, {"sizes", Ints{-1, 5}}}, "does not add up"},
    {"Split",
     {kC},
     {{"axis", 0}, {"sizes", Ints{kHuge, kHuge}}},
     "does not add up"},
    {"Split", {F32({0})}, {{"axis", 0}, {"sizes", Ints{}}}, "does not add up"},
    {"Slice",
     {F32({4, 9})},
     With(kSlice, "steps", Ints{0, 1}),
     "is not positive"},
    {"Slice",
     {F32({4, 9})},
     With(kSlice, "axes", Ints{1, 1}),
     "not distinct axes"},
    {"Slice",
     {F32({4, 9})},
     With(kSlice, "axes", Ints{1, -1}),
     "not distinct axes"},
    {"Slice", {kX}, With(kSlice, "ends", Ints{9}), "not of one length"},
    {"Slice", {kX}, kSlice, "leaves axis 1 of 4"},
    {"Slice", {F32({4, 9})}, With(kSlice, "starts", Ints{-1, 0}), "leaves"},
    {"Slice", {F32({4, 9})}, With(kSlice, "starts", Ints{9, 0}), "leaves"},
    {"SliceGrad",
     {F32({3, 4})},
     With(kSlice, "shape", Ints{4, 9}),
     "dy has shape [3,4], not [3,3]"},
    {"Expand", {F32({3})}, {{"shape", Ints{1}}}, "does not broadcast"},
    {"Expand", {F32({3})}, {{"shape", Ints{-3}}}, "negative"},
    {"Gather", {kX, F32({2})}, {{"axis", 0}}, "not i64 or i32"},
    {"Gather", {F32({}), I64({2})}, {{"axis", 0}}, "not an axis of rank 0"},
    {"Gather", {kX, I64({2})}, {}, "attribute axis is missing"},
    {"GatherGrad",
     {kX, I64({2})},
     {{"axis", 0}, {"shape", Ints{7}}},
     "dy has shape"},
    {"MatMul", {F32({2, 3}), F32({2, 3})}, {}, "inner dimensions"},
    {"MatMul", {F32({}), F32({2})}, {}, "input 0 is a scalar"},
    {"MatMul", {F32({2}), F32({2})}, {{"trans_b", 1}}, "cannot be transposed"},
    {"MatMul", {F32({2, 1, 3}), F32({3, 3, 1})}, {}, "do not broadcast"},
    {"MatMul", {I64({2, 3}), I64({3, 2})}, {}, "not f32"},
    {"Gemm", {F32({1, 2, 3}), F32({3, 4})}, {}, "not a matrix"},
    {"Gemm", {F32({2, 3}), F32({3, 4}), F32({3})}, {}, "not broadcast"},
    {"Gemm", {F32({2, 3}), F32({3, 4}), F32({1, 2, 4})}, {}, "not broadcast"},
    {"Gemm", {F32({2, 3}), F32({4, 3})}, {}, "inner dimensions"},
    {"Gemm",
     {F32({2, 3}), F32({3, 4})},
     {{"alpha", std::numeric_limits<double>::infinity()}},
     "not a finite float"},
    {"GemmBiasGrad",
     {F32({2, 3}), F32({3, 4})},
     {{"dy", std::string("c")}},
     "not \"a\" or \"b\""},
    {"GemmGeluGrad", {F32({2, 3}), F32({3, 4}), F32({2, 3})}, {}, "input 2"},
    {"Conv", {kC, kC}, {}, "of rank neither 3 nor 4"},
    {"Conv", {kX, F32({6, 4, 3})}, {}, "ranks differ"},
    {"Conv", {kX, F32({6, 3, 3, 3})}, {}, "do not fit 1 groups"},
    {"Conv", {kX, F32({6, 4, 3, 3})}, {{"group", 0}}, "do not fit 0 groups"},
    {"Conv", {kX, F32({5, 2, 3, 3})}, {{"group", 2}}, "do not fit 2 groups"},
    {"Conv", {kX, F32({6, 4, 3, 3})}, kPool2, "kernel_shape is [2, 2]"},
    {"Conv", {kX, F32({6, 4, 3, 3})}, {{"strides", Ints{0, 1}}}, "strides"},
    {"Conv", {kX, F32({6, 4, 3, 3})}, {{"strides", Ints{1}}}, "strides has 1"},
    {"Conv", {kX, F32({6, 4, 3, 3})}, {{"pads", Ints{1, 1}}}, "pads has 2"},
    {"Conv", {kX, F32({6, 4, 3, 3})}, {{"pads", Ints{-1, 0, 0, 0}}}, "pads"},
    {"Conv",
     {kX, F32({6, 4, 3, 3})},
     {{"dilations", Ints{kHuge, 1}}},
     "dilations has"},
    {"Conv", {kX, F32({6, 4, 9, 3})}, {}, "a window of 9 does not fit"},
    {"Conv", {kX, F32({6, 4, 0, 3})}, {}, "kernel_shape has 0"},
    {"Conv", {kX, F32({6, 4, 3, 3}), F32({4})}, {}, "b has shape"},
    {"ConvInputGrad",
     {kX, F32({6, 4, 3, 3})},
     With(kSame3, "shape", kX.dims),
     "dy has shape"},
    {"ConvWeightGrad",
     {kX, kX},
     With(kSame3, "shape", Ints{6, 4, 3, 3}),
     "dy has shape"},
    {"BatchNormalization",
     {kC, kC, kC, kC, kC},
     {{"epsilon", 1e-5}},
     "without a channel axis"},
    {"BatchNormalization",
     {kX, kC, kC, kC, F32({8})},
     {{"epsilon", 1e-5}},
     "input 4 has shape [8], not [4]"},
    {"BatchNormTraining", {kX, kC, kC}, {{"epsilon", -1.0}}, "negative"},
    {"BatchNormTraining",
     {F32({0, 4}), kC, kC},
     {{"epsilon", 0.0}},
     "no elements"},
    {"BatchNormGrad", {kX, F32({2, 4}), kC, kC, kC}, {}, "input 1"},
    {"RunningStatsUpdate",
     {kC, kC, kC, kC},
     {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", 1}},
     "count"},
    {"RunningStatsUpdate",
     {kC, kC, kC, kC},
     {{"momentum", 1.5}, {"epsilon", 1e-5}, {"count", 8}},
     "momentum"},
    {"RunningStatsUpdate",
     {kC, kC, kC, F32({5})},
     {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", 8}},
     "input 3"},
    {"LayerNormalization",
     {kX, F32({8})},
     {{"axis", 2}, {"epsilon", 1e-5}},
     "input 1 is f32[8], not f32[8,8]"},
    {"LayerNormalization",
     {F32({2, 0}), F32({0})},
     {{"axis", 1}, {"epsilon", 1e-5}},
     "no elements"},
    {"LayerNormGrad",
     {kX, kX, F32({8}), F32({2, 4}), F32({2, 4})},
     {{"axis", 3}},
     "input 3"},
    {"Softmax", {kX}, {{"axis", -5}}, "axis is -5"},
    {"SoftmaxGrad", {kX, kC}, {{"axis", 1}}, "input 1"},
    {"MaxPool", {kX}, {}, "kernel_shape is missing"},
    {"MaxPool", {kX}, {{"kernel_shape", Ints{2}}}, "kernel_shape has 1"},
    {"MaxPool", {kC}, {{"kernel_shape", Ints{}}}, "without spatial"},
    {"MaxPool",
     {F32({1, 1, 2, 2, 2})},
     {{"kernel_shape", Ints{1, 1, 1}}},
     "only 1 and 2 are supported"},
    {"MaxPool",
     {kX},
     With(kPool2, "pads", Ints{2, 0, 0, 0}),
     "nothing but padding"},
    {"MaxPool",
     {kX},
     With(kPool2, "pads", Ints{0, 0, 0, 2}),
     "nothing but padding"},
    // Taps at -1 and 1, elements at 0 only.
    {"MaxPool",
     {F32({1, 1, 1})},
     {{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}, {"pads", Ints{1, 1}}},
     "nothing but padding"},
    {"MaxPool", {F32({1, 1, 0, 8})}, kPool2, "does not fit"},
    {"MaxPool", {F32({0, 1, 1 << 16, 1 << 16})}, kPool2, "i32 argmax"},
    {"MaxPoolGrad",
     {kX, I64({2, 4, 8, 8})},
     With(kPool2, "shape", kX.dims),
     "input 1"},
    {"MaxPoolGrad",
     {kX, I32({2, 4, 8, 8})},
     With(kPool2, "shape", kX.dims),
     "dy has shape"},
    {"AveragePoolGrad", {kX}, With(kPool2, "shape", kX.dims), "dy has shape"},
    {"Dropout", {kX}, {{"ratio", 1.0}, {"salt", 1}}, "ratio is 1"},
    {"Dropout", {kX}, {{"ratio", 0.5}}, "salt is missing"},
    {"Attention", {kC, kC, kC}, {{"scale", 1.0}}, "not of 2 or more"},
    {"Attention",
     {F32({2, 3, 4}), F32({2, 3, 4}), F32({2, 3, 4})},
     {{"scale", 1.0}, {"interleaved", 1}},
     "not of 4 dimensions"},
    {"Attention",
     {F32({2, 3, 4}), F32({2, 5, 3}), F32({2, 5, 4})},
     {{"scale", 1.0}},
     "k has shape [2,5,3], not [2,5,4]"},
    {"Attention",
     {F32({3, 4}), F32({5, 4}), F32({6, 4})},
     {{"scale", 1.0}},
     "v has shape [6,4], not [5,4]"},
    {"Attention",
     {F32({3, 4}), F32({0, 4}), F32({0, 4})},
     {{"scale", 1.0}},
     "attention of nothing"},
    {"Attention",
     {F32({3, 4}), F32({5, 4}), F32({5, 4}), F32({5, 3})},
     {{"scale", 1.0}},
     "does not broadcast"},
    {"Attention",
     {F32({3, 4}), F32({5, 4}), F32({5, 4})},
     {{"scale", 1.0}, {"ratio", 1.0}},
     "ratio is 1"},
    {"AttentionGrad",
     {F32({3, 4}), F32({3, 4}), F32({5, 4}), F32({5, 4}), F32({3, 4}),
      F32({5})},
     {{"scale", 1.0}},
     "input 5"},
    {"SoftmaxCrossEntropy",
     {F32({2, 5}), I64({5})},
     {{"class_axis", 1}},
     "target has shape [5], not [2]"},
    {"SoftmaxCrossEntropy",
     {F32({2, 5}), F32({2})},
     {{"class_axis", 1}},
     "not i64 or i32"},
    {"SoftmaxCrossEntropy",
     {F32({0, 5}), I64({0})},
     {{"class_axis", 1}},
     "without any"},
    {"SoftmaxCrossEntropyGrad",
     {F32({}), F32({2, 5}), I64({2}), F32({3})},
     {{"class_axis", 1}},
     "input 3"},
    {"SoftmaxCrossEntropyGrad",
     {F32({}), F32({2, 5}), I64({2}), F32({2})},
     {{"class_axis", -1}},
     "class_axis is -1"},
    {"CountCorrect", {F32({2, 5}), I64({2})}, {{"class_axis", 2}}, "is 2"},
    {"MseLoss", {kC, kX}, {}, "input 1"},
    {"MseLoss", {F32({0}), F32({0})}, {}, "no elements"},
    {"MseLossGrad", {F32({1}), kC, kC}, {}, "input 0"},
    {"Sgd", {kC, kC}, {{"momentum", 0.9}}, "no momentum buffer"},
    {"Sgd", {kC, kC}, {{"nesterov", 1}}, "nesterov needs"},
    {"Sgd", {kC, kX}, {}, "input 1"},
    {"Sgd", {kC, kC}, {{"weight_decay", -0.1}}, "negative"},
    {"AdamW", {kC, kC, kC}, kAdam, "has 3 inputs"},
    {"AdamW", {kC, kC, kC, kC}, With(kAdam, "beta2", 1.0), "beta2 is 1"},
    {"AdamW", {kC, kC, kC, kC}, With(kAdam, "epsilon", -1.0), "negative"},
};

TEST(InferTypes, RefusesWhatDoesNotFitAndSaysWhy) {
  for (const Refused& c : kRefused) {
    const absl::Status status = Infer(c.op, c.inputs, c.attributes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << c.op << ": " << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.op));
  }
}

TEST(InferTypes, RefusesMissingInputs) {
  Node node;
  node.op = "Add";
  node.name = "sum";
  const TensorType type = F32({2});
  EXPECT_THAT(
      std::string(InferTypes(node, {&type, nullptr}).status().message()),
      HasSubstr("input 1 is missing"));
  node.op = "Gemm";
  const TensorType matrix = F32({2, 2});
  EXPECT_TRUE(InferTypes(node, {&matrix, &matrix, nullptr}).ok());
  node.op = "Concat";
  node.attributes.Set("axis", int64_t{0});
  EXPECT_FALSE(InferTypes(node, {&type, nullptr}).ok());
}

}  // namespace
}  // namespace loadline::models
