#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/constant_weights.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models::onnx_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> TrainedIn(const std::string& body) {
  const auto imported = ImportText(body);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? Names(imported->graph, ValueKind::kParameter)
                       : std::vector<std::string>();
}

TEST(ConstantWeights, BiasesThatAreAddedAreTrained) {
  EXPECT_THAT(TrainedIn("g (float[2,2] x) => (float[2,2] y) {"
                        " w = Constant<value = float[2,2] {1,2,3,4}>()"
                        " b = Constant<value = float[2] {1,2}>()"
                        " shift = Constant<value = float {1}>()"
                        " p = MatMul(x, w) q = Add(p, b) y = Add(q, shift) }"),
              ElementsAre("w", "b"));
}

TEST(ConstantWeights, ThoseOfLoopsAndBranchesAreTrained) {
  EXPECT_THAT(
      TrainedIn("g (float[2,2] x) => (float[2,2] y) <int64 turns = {3}> {"
                " more = Constant<value = bool {1}>()"
                " y = Loop(turns, more, x) <body = body (int64 i, bool c, "
                "float[2,2] h)"
                "   => (bool d, float[2,2] next)"
                "   <float[2,2] u = {5,6,7,8}> {"
                "   w = Constant<value = float[2,2] {1,2,3,4}>()"
                "   b = Constant<value = float[2] {1,2}>()"
                "   d = Identity(c) p = MatMul(h, w) q = Add(p, b)"
                "   next = MatMul(q, u) }> }"),
      ElementsAre("w", "b", "u"));
}

// As spox names them.
TEST(ConstantWeights, TheWordConstantInAnInventedNameSaysNothing) {
  EXPECT_THAT(
      TrainedIn("g (float[2,2] x) => (float[2,2] y) {"
                " Constant_0_output = Constant<value = float[2,2] {1,2,3,4}>()"
                " body__Constant_1_output = Constant<value = float[2] {1,2}>()"
                " p = MatMul(x, Constant_0_output)"
                " y = Add(p, body__Constant_1_output) }"),
      ElementsAre("Constant_0_output", "body__Constant_1_output"));
}

// Branches may use one name for two tensors.
TEST(ConstantWeights, EqualNamesStayTwoTensors) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,2] x, bool which) => (float[2,2] y) {"
      " y = If(which) <then_branch = a () => (float[2,2] p) {"
      "   w = Constant<value = float[2,2] {1,2,3,4}>() p = MatMul(x, w) },"
      " else_branch = b () => (float[2,2] q) {"
      "   w = Constant<value = float[2,2] {5,6,7,8}>() q = MatMul(x, w) }> }");
  MakeInitializersOfConstants(&model);
  const onnx::GraphProto& graph = model.graph();
  ASSERT_EQ(graph.initializer_size(), 2);
  EXPECT_EQ(graph.initializer(0).name(), "w");
  EXPECT_EQ(graph.initializer(1).name(), "w_1");
  EXPECT_EQ(graph.initializer(0).float_data(0), 1);
  EXPECT_EQ(graph.initializer(1).float_data(0), 5);
  std::vector<std::string> read;
  for (const auto& attribute : graph.node(0).attribute()) {
    ASSERT_EQ(attribute.g().node_size(), 1);
    read.push_back(attribute.g().node(0).input(1));
  }
  EXPECT_THAT(read, ElementsAre("w", "w_1"));
}

TEST(ConstantWeights, ANameOfAnotherBranchIsNotTaken) {
  const auto imported = ImportText(
      "g (float[2,2] x) => (float[2,2] y) <bool which = {1}> {"
      " y = If(which) <then_branch = a () => (float[2,2] p) {"
      "   w = Constant<value = float[2,2] {1,2,3,4}>() p = MatMul(x, w) },"
      " else_branch = b () => (float[2,2] q) { w = Relu(x) q = Neg(w) }> }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kParameter),
              ElementsAre("w_1"));
}

TEST(ConstantWeights, WhatABodyHandsOutStaysInIt) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2] x, bool which) => (float[2] y) {"
      " y = If(which) <then_branch = a () => (float[2] p) {"
      "   p = Constant<value = float[2] {1,2}>() },"
      " else_branch = b () => (float[2] q) { q = Identity(x) }> }");
  MakeInitializersOfConstants(&model);
  EXPECT_EQ(model.graph().initializer_size(), 0);
}

TEST(ConstantWeights, IntegersNumbersAndPyTorchsFilesStay) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,2] x) => (float[2,2] y) {"
      " shape = Constant<value = int64[2] {2,2}>()"
      " w = Constant<value = float[2,2] {1,2,3,4}>()"
      " two = Constant<value_float = 2.0>()"
      " a = Reshape(x, shape) b = MatMul(a, w) y = Mul(b, two) }");
  onnx::ModelProto of_torch = model;
  of_torch.set_producer_name("pytorch");
  MakeInitializersOfConstants(&of_torch);
  EXPECT_EQ(of_torch.graph().initializer_size(), 0);
  MakeInitializersOfConstants(&model);
  ASSERT_EQ(model.graph().initializer_size(), 1);
  EXPECT_EQ(model.graph().initializer(0).name(), "w");
  EXPECT_EQ(model.graph().node_size(), 5);
}

TEST(ConstantWeights, ScalesOfAResizeGiveNoWarning) {
  const auto imported = ImportText(
      "g (float[1,1,2,2] x) => (float[1,1,4,4] y) {"
      " scales = Constant<value = float[4] {1,1,2,2}>()"
      " y = Resize<mode = \"nearest\">(x, , scales) }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->warnings, IsEmpty());
}

}  // namespace
}  // namespace loadline::models::onnx_internal
