// Real PyTorch 2.15 exports, by both exporters, through the whole import.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/import.h"
#include "models/onnx/model_file.h"
#include "models/onnx/prepare.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr const char* kExports[] = {"mlp_torchscript.onnx",
                                    "mlp_dynamo.onnx",
                                    "cnn_torchscript.onnx",
                                    "cnn_dynamo.onnx",
                                    "cnn_dynamo_unoptimized.onnx",
                                    "gpt_torchscript_17.onnx",
                                    "gpt_torchscript_20.onnx",
                                    "gpt_mask_torchscript_17.onnx",
                                    "gpt_dynamo.onnx",
                                    "gpt_dynamo_unoptimized.onnx",
                                    "gpt_dynamo_23.onnx",
                                    "gpt_mask_dynamo.onnx"};

TEST(ImportOnnx, TakesEveryRealExport) {
  for (const char* name : kExports) {
    const Imported imported = ImportExport(name);
    EXPECT_TRUE(VerifyGraph(imported.graph).ok()) << name;
    EXPECT_EQ(imported.graph.outputs.size(), 1u) << name;
  }
}

TEST(ImportOnnx, AgreesWithOnnxShapeInference) {
  int compared = 0;
  for (const char* name : kExports) {
    const Imported imported = ImportExport(name);
    auto proto = onnx_internal::ReadModelFile(DataPath(name), 1 << 20);
    ASSERT_TRUE(proto.ok());
    auto prepared =
        onnx_internal::PrepareModel(*std::move(proto), "", Batch(5));
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    for (const auto& info : prepared->proto.graph().value_info()) {
      auto it = imported.value_of.find(info.name());
      if (it == imported.value_of.end()) continue;
      const TensorType& ours = imported.graph.value(it->second).type;
      const auto& theirs = info.type().tensor_type();
      EXPECT_EQ(onnx_internal::DTypeToOnnx(ours.dtype), theirs.elem_type());
      if (!theirs.has_shape()) continue;
      ASSERT_EQ(ours.rank(), theirs.shape().dim_size()) << info.name();
      for (int i = 0; i < theirs.shape().dim_size(); ++i) {
        if (!theirs.shape().dim(i).has_dim_value()) continue;
        EXPECT_EQ(ours.dims[static_cast<size_t>(i)],
                  theirs.shape().dim(i).dim_value())
            << name << " " << info.name();
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 400);
}

TEST(ImportOnnx, KeepsTheNamesOfParameters) {
  const Imported mlp = ImportExport("mlp_torchscript.onnx");
  EXPECT_THAT(
      Names(mlp.graph, ValueKind::kParameter),
      ElementsAre("net.0.weight", "net.0.bias", "net.3.weight", "net.3.bias"));
  EXPECT_THAT(Ops(mlp.graph), ElementsAre("Gemm", "Relu", "Dropout", "Gemm"));
  EXPECT_EQ(mlp.graph.value(mlp.graph.outputs[0]).type.ToString(), "f32[5,4]");
  EXPECT_EQ(NodeWith(mlp.graph, "Dropout").attributes.Float("ratio", 0), 0.1);
  EXPECT_THAT(mlp.warnings, IsEmpty());
}

TEST(ImportOnnx, WarnsOfMergedAndDuplicatedWeights) {
  const Imported gpt = ImportExport("gpt_dynamo.onnx");
  EXPECT_THAT(gpt.warnings,
              IsSupersetOf({HasSubstr("scale of several normalizations"),
                            HasSubstr("is a copy of 'head.weight'")}));
}

TEST(ImportOnnx, UnoptimizedDynamoExportIsWholeAgain) {
  const Imported gpt = ImportExport("gpt_dynamo_unoptimized.onnx");
  EXPECT_EQ(Names(gpt.graph, ValueKind::kParameter).size(), 16u);
  EXPECT_EQ(NodeWith(gpt.graph, "Split").outputs.size(), 3u);
  EXPECT_EQ(Count(gpt.graph, "Cast") + Count(gpt.graph, "Sqrt"), 0);
  EXPECT_THAT(gpt.warnings, ElementsAre(HasSubstr("first axis is fixed")));
}

TEST(ImportOnnx, SaysWhichAxisIsOpen) {
  const auto imported =
      ImportOnnx(DataPath("mlp_torchscript.onnx"), ImportOptions{});
  EXPECT_TRUE(absl::IsInvalidArgument(imported.status()));
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("'x': axis 0 ('batch') is open"));
}

TEST(ImportOnnx, TakesAxesByNameAndWholeShapes) {
  ImportOptions options;
  options.dims["batch"] = 7;
  EXPECT_EQ(ImportExport("mlp_torchscript.onnx", options)
                .graph.values[0]
                .type.ToString(),
            "f32[7,8]");
  options.dims["bach"] = 7;
  EXPECT_THAT(std::string(ImportOnnx(DataPath("mlp_torchscript.onnx"), options)
                              .status()
                              .message()),
              HasSubstr("'bach', which no input has; axes with a name: batch"));
  options.dims.clear();
  options.input_shapes["x"] = {9, 8};
  EXPECT_EQ(ImportExport("mlp_torchscript.onnx", options)
                .graph.values[0]
                .type.ToString(),
            "f32[9,8]");
  options.input_shapes["x"] = {9, 6};
  EXPECT_THAT(std::string(ImportOnnx(DataPath("mlp_torchscript.onnx"), options)
                              .status()
                              .message()),
              HasSubstr("axis 1 is fixed to 8"));
}

TEST(ImportOnnx, ListsEveryUnsupportedOperator) {
  const auto imported = ImportText(
      "g (float[2,3,8,8] x) => (float[2,3,4,4] y) {"
      " [a] u = Det(x) [b] v = Det(x) [c] w = Unique(u)"
      " [d] z = NonMaxSuppression(x, v) [e] y = Add(w, z) }");
  EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
  const std::string text(imported.status().message());
  EXPECT_THAT(text, HasSubstr("Det x2: a, b"));
  EXPECT_THAT(text, HasSubstr("Unique x1: c"));
  EXPECT_THAT(text, HasSubstr("NonMaxSuppression x1: d"));
  EXPECT_THAT(text, HasSubstr("operators.md"));
  const auto listed = UnsupportedOperators(imported.status());
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0].name, "Det");
  EXPECT_EQ(listed[0].why, "");
  EXPECT_THAT(listed[0].nodes, ElementsAre("a", "b"));
  EXPECT_THAT(UnsupportedOperators(absl::UnimplementedError("x")), IsEmpty());
}

TEST(ImportOnnx, NamesOutputsThatNeedNoUnsupportedOperator) {
  const auto advice = [](const std::string& outputs) {
    const absl::Status status =
        ImportText("g (float[2,3,8,8] x) => (" + outputs +
                   ") { a = Relu(x) b = Relu(a) c = Det(a) d = Neg(c) }")
            .status();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(UnsupportedAdvice(status)));
    return UnsupportedAdvice(status);
  };
  EXPECT_THAT(advice("float a, float[2,3] d, float b, float[2,3] c"),
              EndsWith("need none of them: a, b"));
  EXPECT_THAT(advice("float[2,3] d"), Not(HasSubstr("none of them")));
  EXPECT_THAT(UnsupportedAdvice(absl::UnimplementedError("x")), IsEmpty());
}

TEST(ImportOnnx, AsksForANewerOpsetWhereOperatorsAreOld) {
  const absl::Status status =
      ImportText("g (float[2,3] x) => (float[2,3] y) { y = Hardmax(x) }", {},
                 /*opset=*/11)
          .status();
  EXPECT_EQ(UnsupportedAdvice(status),
            "export the model again with opset 17 to 22");
}

// transformers' Cohere: the file of dynamo=False has a 2 for a -1.
TEST(ImportOnnx, NamesTheExporterThatIsKnownToWriteWrongShapes) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,6] x) => (float[a,b] y) {"
      " s = Constant<value_ints=[2,2]>() y = Reshape(x, s) }");
  const auto message = [&model] {
    return std::string(ImportOnnxBytes(Bytes(model), {}).status().message());
  };
  constexpr char kMisfit[] = "cannot reshape [2,6] to [2,2]";
  constexpr char kAdvice[] = "dynamo=True";
  EXPECT_THAT(message(), AllOf(HasSubstr(kMisfit), Not(HasSubstr(kAdvice))));
  model.set_producer_name("pytorch");
  EXPECT_THAT(message(), AllOf(HasSubstr(kMisfit), HasSubstr(kAdvice)));
  model.mutable_graph()->mutable_node(0)->add_metadata_props()->set_key(
      "namespace");
  EXPECT_THAT(message(), AllOf(HasSubstr(kMisfit), Not(HasSubstr(kAdvice))));
}

TEST(ImportOnnx, UnknownDomainsAreUnsupportedOperators) {
  onnx::ModelProto model =
      ModelFromText("g (float[2] x) => (float[2] y) { [a] y = Relu(x) }");
  model.mutable_graph()->mutable_node(0)->set_domain("com.example");
  auto* import = model.add_opset_import();
  import->set_domain("com.example");
  import->set_version(1);
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("com.example::Relu x1: a"));
}

TEST(ImportOnnx, OperatorsOfOnnxRuntimesOptimizerSaySo) {
  onnx::ModelProto model =
      ModelFromText("g (float[2] x) => (float[2] y) { [a] y = Relu(x) }");
  model.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
  auto* import = model.add_opset_import();
  import->set_domain("com.microsoft");
  import->set_version(1);
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("ONNX Runtime's optimizer"));
}

// Which ONNX's library would call invalid.
TEST(ImportOnnx, AnOperatorOfOnnxRuntimeInOnnxDomainSaysSo) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2] x, float[2] w) => (float[2] y) { [a] y = Mul(x, w) }");
  model.mutable_graph()->mutable_node(0)->set_op_type(
      "SimplifiedLayerNormalization");
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
  EXPECT_THAT(std::string(imported.status().message()),
              AllOf(HasSubstr("SimplifiedLayerNormalization (ONNX Runtime's "
                              "own) x1: a"),
                    HasSubstr("ORT_ENABLE_BASIC")));
}

TEST(ImportOnnx, LeavesOutInputsAndStringsThatNoNodeReads) {
  auto imported = ImportText(
      "g (float[n,k] aside, string[n] text, float[n,4] x) => (float[n,3] y)"
      " <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12},"
      "  string[2] labels = {\"a\", \"b\"}>"
      " { z = Neg(aside) y = MatMul(x, w) }",
      Batch(5));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kInput), ElementsAre("x"));
  EXPECT_THAT(imported->warnings, IsEmpty());
}

TEST(ImportOnnx, KeepsInputsWhereNoneIsRead) {
  auto imported = ImportText(
      "g (float[n,4] x) => (float[3] y) <float[3] w = {1,2,3}>"
      " { y = Neg(w) }",
      Batch(5));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kInput), ElementsAre("x"));
}

TEST(ImportOnnx, UnreadInputsOfOtherFloatTypesChangeNoTypes) {
  const auto cast = ImportText(
      "g (float[2,3] x, bfloat16[3] like) => (bfloat16[2,3] y) {"
      " y = Cast<to=16>(x) }");
  ASSERT_TRUE(cast.ok()) << cast.status();
  EXPECT_EQ(cast->graph.value(cast->graph.outputs[0]).type.ToString(),
            "bf16[2,3]");
}

TEST(ImportOnnx, ShapesOfUnreadInputsAreNoMistake) {
  ImportOptions options = Batch(5);
  options.input_shapes["aside"] = {5, 7};
  options.dims["k"] = 7;
  auto imported = ImportText(
      "g (float[n,k] aside, float[n,4] x) => (float[n,4] y) { y = Neg(x) }",
      options);
  EXPECT_TRUE(imported.ok()) << imported.status();
}

TEST(ImportOnnx, InlinesTheModelsFunctions) {
  onnx::ModelProto model =
      ModelFromText("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  auto* import = model.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  auto* function = model.add_functions();
  function->set_domain("local");
  function->set_name("Twice");
  function->add_input("a");
  function->add_output("b");
  *function->add_opset_import() = model.opset_import(0);
  auto* add = function->add_node();
  add->set_op_type("Add");
  add->add_input("a");
  add->add_input("a");
  add->add_output("b");
  auto* call = model.mutable_graph()->mutable_node(0);
  call->set_op_type("Twice");
  call->set_domain("local");
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Ops(imported->graph), ElementsAre("Add"));
}

// Two functions, one of which calls the other: a call that leaves an attribute
// out gets the function's default, also where the operator's own is another.
TEST(ImportOnnx, CallsTakeTheDefaultsOfTheModelsFunctions) {
  onnx::ModelProto model =
      ModelFromText("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  auto* import = model.add_opset_import();
  import->set_domain("local");
  import->set_version(1);
  for (const char* name : {"Inner", "Outer"}) {
    auto* function = model.add_functions();
    function->set_domain("local");
    function->set_name(name);
    function->add_input("a");
    function->add_output("b");
    *function->mutable_opset_import() = model.opset_import();
    auto* node = function->add_node();
    node->add_input("a");
    node->add_output("b");
    if (name == std::string("Outer")) {
      node->set_domain("local");
      node->set_op_type("Inner");
      continue;
    }
    node->set_op_type("LeakyRelu");
    auto* alpha = node->add_attribute();
    alpha->set_name("alpha");
    alpha->set_type(onnx::AttributeProto::FLOAT);
    alpha->set_ref_attr_name("slope");
    auto* fallback = function->add_attribute_proto();
    fallback->set_name("slope");
    fallback->set_type(onnx::AttributeProto::FLOAT);
    fallback->set_f(0.5f);
  }
  auto* call = model.mutable_graph()->mutable_node(0);
  call->set_domain("local");
  call->set_op_type("Outer");
  auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(NodeWith(imported->graph, "LeakyRelu").attributes.Float("alpha", 0),
            0.5);
  call->set_op_type("Inner");
  auto* slope = call->add_attribute();
  slope->set_name("slope");
  slope->set_type(onnx::AttributeProto::FLOAT);
  slope->set_f(0.25f);
  imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(NodeWith(imported->graph, "LeakyRelu").attributes.Float("alpha", 0),
            0.25);
}

}  // namespace
}  // namespace loadline::models
