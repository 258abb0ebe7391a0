// Operators of ai.onnx.preview.training: which nodes they become, and what is
// refused. tests/conformance/onnx_training_test.cc has their numbers.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/import.h"
#include "models/onnx/inference_form.h"
#include "onnx/checker.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::ModelProto TrainingModel(const std::string& body) {
  onnx::ModelProto model = ModelFromText(body);
  auto* import = model.add_opset_import();
  import->set_domain("ai.onnx.preview.training");
  import->set_version(1);
  return model;
}

absl::StatusOr<Imported> ImportBody(const std::string& body) {
  return ImportOnnxBytes(Bytes(TrainingModel(body)), {});
}

std::string Error(const std::string& body) {
  return ImportBody(body).status().ToString();
}

TEST(ImportGradient, StopsAtIndependentValuesAndAtWhatIsHeld) {
  // m is independent too, so da is only that of the last product.
  auto both = ImportBody(
      "g (float[3] a) => (float[3] da, float[3] dm, float[3] y1) {"
      " m = Exp(a) p = Mul(m, a)"
      " y1 = Identity(p)"
      " one = Constant<value_ints=[0]>()"
      " y = ReduceSum<keepdims=0>(p, one)"
      " da, dm = ai.onnx.preview.training.Gradient<xs=[\"a\",\"m\"],"
      " y=\"y\">(a, m) }");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(Count(both->graph, "Mul"), 3);  // p, and its two gradients
  EXPECT_EQ(Count(both->graph, "Exp"), 1);
  auto held = ImportBody(
      "g (float[3] a) => (float[3] da) {"
      " m = Exp(a) p = Mul(m, a)"
      " one = Constant<value_ints=[0]>()"
      " y = ReduceSum<keepdims=0>(p, one)"
      " da = ai.onnx.preview.training.Gradient<xs=[\"a\"], zs=[\"m\"],"
      " y=\"y\">(a, m) }");
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(Count(held->graph, "Mul"), 2);
  auto whole = ImportBody(
      "g (float[3] a) => (float[3] da) {"
      " m = Exp(a) p = Mul(m, a)"
      " one = Constant<value_ints=[0]>()"
      " y = ReduceSum<keepdims=0>(p, one)"
      " da = ai.onnx.preview.training.Gradient<xs=[\"a\"], y=\"y\">(a) }");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(Count(whole->graph, "Mul"), 4);
  for (const Node& node : whole->graph.nodes) {
    EXPECT_EQ(node.phase, Phase::kForward);
  }
}

TEST(ImportGradient, IsZeroWhereNothingDepends) {
  auto imported = ImportBody(
      "g (float[2] a, float b) => (float[2] da, float db) {"
      " y = Exp(b)"
      " da, db = ai.onnx.preview.training.Gradient<xs=[\"a\",\"b\"],"
      " y=\"y\">(a, b) }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Value& da = imported->graph.value(imported->graph.outputs[0]);
  EXPECT_EQ(da.type.ToString(), "f32[2]");
  EXPECT_THAT(da.initial->as<float>(), ElementsAre(0, 0));
}

TEST(ImportGradient, RefusesWhatItCannotDifferentiate) {
  const std::string gradient = " d = ai.onnx.preview.training.Gradient";
  const std::string one = "g (float[1] a, float[1] b) => (float[1] d) {";
  EXPECT_THAT(Error("g (float[2] a) => (float[2] d) { y = Exp(a)" + gradient +
                    "<xs=[\"a\"], y=\"y\">(a) }"),
              HasSubstr("must be one f32 number"));
  EXPECT_THAT(
      Error(one + "y = Exp(a)" + gradient + "<xs=[\"a\"], y=\"y\">(b) }"),
      HasSubstr("at 'b', not at what xs and zs name"));
  EXPECT_THAT(
      Error(one + "y = Exp(a)" + gradient + "<xs=[\"a\",\"b\"], y=\"y\">(a) }"),
      HasSubstr("an input for each"));
  EXPECT_THAT(
      Error(one + "y = Exp(a)" + gradient + "<xs=[\"a\"], y=\"z\">(a) }"),
      HasSubstr("reads 'z', which nothing before it makes"));
  EXPECT_THAT(
      Error(one + "y = Exp(a)" + gradient + "<xs=[\"a\"], y=\"\">(a) }"),
      HasSubstr("it needs y"));
  EXPECT_THAT(Error(one + "y = Constant<value_floats=[1.0]>()" + gradient +
                    "<xs=[\"a\"], y=\"y\">(a) }"),
              HasSubstr("which no input or weight changes"));
  EXPECT_THAT(Error(one + "c = Constant<value_floats=[1.0]>() y = Mul(c, a)" +
                    gradient + "<xs=[\"c\"], y=\"y\">(c) }"),
              HasSubstr("which is a constant"));
}

TEST(ImportOptimizers, GroupTensorsAsOnnxDoes) {
  auto imported = ImportBody(
      "g (float r, int64 t, float[1] x1, float[2] x2, float[1] g1, float[2] g2,"
      " float[1] h1, float[2] h2) => (float[1] a, float[2] b, float[1] c,"
      " float[2] d) {"
      " a, b, c, d = ai.onnx.preview.training.Adagrad<epsilon=0.5>"
      "(r, t, x1, x2, g1, g2, h1, h2) }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Ops(imported->graph), ElementsAre("Cast", "Adagrad", "Adagrad"));
  const Node& second = imported->graph.nodes[2];
  EXPECT_EQ(imported->graph.value(second.inputs[0]).name, "x2");
  EXPECT_EQ(imported->graph.value(second.inputs[1]).name, "g2");
  EXPECT_EQ(imported->graph.value(second.inputs[2]).name, "h2");
  EXPECT_EQ(second.outputs[0], imported->graph.outputs[1]);
  EXPECT_EQ(second.outputs[1], imported->graph.outputs[3]);
}

TEST(ImportOptimizers, RefuseOtherModesAndHalfGroups) {
  const std::string inputs =
      "g (float r, int64 t, float[2] x, float[2] g, float[2] v) =>"
      " (float[2] a, float[2] b) { a, b = ai.onnx.preview.training.";
  EXPECT_THAT(Error(inputs + "Momentum<alpha=0.5, beta=1.0, mode=\"other\","
                             " norm_coefficient=0.0>(r, t, x, g, v) }"),
              HasSubstr("neither standard nor nesterov"));
  EXPECT_THAT(Error(inputs + "Adagrad(r, t, x, g, v, x) }"),
              HasSubstr("whole groups"));
}

TEST(ImportOnnx, SaysThatTrainingInfoIsNotRead) {
  onnx::ModelProto model =
      TrainingModel("g (float[2] a) => (float[2] y) { y = Exp(a) }");
  model.add_training_info();
  auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->warnings, Contains(HasSubstr("TrainingInfo")));
}

// Exports for inference: an Identity has no mask.
TEST(UseInferenceForm, KeepsADropoutWhoseMaskIsRead) {
  onnx::ModelProto model = ModelFromText(
      "g (float[4] x) => (float[4] z, float[4] u) {"
      " r = Constant<value_float=0.5>() t = Constant<value_int=1>()"
      " on = Cast<to=9>(t) y, m = Dropout(x, r, on) z = Where(m, y, x)"
      " u, unread = Dropout(x, r, on) }");
  onnx_internal::UseInferenceForm(model.mutable_graph());
  EXPECT_NO_THROW(onnx::checker::check_model(model, true));
  std::vector<std::string> ops;
  for (const auto& node : model.graph().node()) ops.push_back(node.op_type());
  EXPECT_THAT(ops, ElementsAre("Constant", "Constant", "Cast", "Dropout",
                               "Where", "Identity"));
  EXPECT_EQ(model.graph().node(3).input_size(), 2);
}

}  // namespace
}  // namespace loadline::models
