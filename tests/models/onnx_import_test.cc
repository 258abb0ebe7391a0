// Real PyTorch 2.15 exports, by both exporters, through the whole import.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/import.h"
#include "models/onnx/model_file.h"
#include "models/onnx/prepare.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

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

ImportOptions Batch(int64_t batch) {
  ImportOptions options;
  options.batch = batch;
  return options;
}

Imported ImportExport(const std::string& name,
                      const ImportOptions& options = Batch(5)) {
  absl::StatusOr<Imported> imported = ImportOnnx(DataPath(name), options);
  EXPECT_TRUE(imported.ok()) << name << ": " << imported.status();
  return imported.ok() ? *std::move(imported) : Imported{};
}

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

TEST(ImportOnnx, BatchNormalizationTrainsAndUpdatesItsStatistics) {
  const Imported cnn = ImportExport("cnn_torchscript.onnx");
  EXPECT_EQ(Count(cnn.graph, "BatchNormTraining"), 2);
  EXPECT_EQ(Count(cnn.graph, "RunningStatsUpdate"), 2);
  EXPECT_THAT(Names(cnn.graph, ValueKind::kState),
              ElementsAre("bn.running_mean", "bn.running_var",
                          "bn2.running_mean", "bn2.running_var"));
  ASSERT_EQ(cnn.graph.updates.size(), 4u);
  EXPECT_EQ(cnn.graph.value(cnn.graph.updates[0].first).name,
            "bn.running_mean");
  const Attributes& update =
      NodeWith(cnn.graph, "RunningStatsUpdate").attributes;
  EXPECT_EQ(update.Float("momentum", 0), 0.9);
  EXPECT_EQ(update.Float("epsilon", 0), 1e-5);
  EXPECT_EQ(update.Int("count", 0), 5 * 8 * 8);
  EXPECT_THAT(NodeWith(cnn.graph, "ReduceMean").attributes.IntList("axes"),
              ElementsAre(2, 3));
  EXPECT_THAT(cnn.warnings, IsEmpty());
}

TEST(ImportOnnx, RestoresTheTrainingFormAndSaysSo) {
  const Imported cnn = ImportExport("cnn_dynamo_unoptimized.onnx");
  EXPECT_EQ(cnn.forms.batch_norms, 2);
  EXPECT_EQ(cnn.forms.batch_norms_restored, 2);
  EXPECT_EQ(Count(cnn.graph, "BatchNormTraining"), 2);
  EXPECT_EQ(cnn.graph.updates.size(), 4u);
  EXPECT_THAT(cnn.warnings, Contains(HasSubstr("dynamo=False")));
}

TEST(ImportOnnx, WarnsOfAnExportThatLostItsBatchNormalization) {
  const Imported cnn = ImportExport("cnn_dynamo.onnx");
  EXPECT_EQ(Count(cnn.graph, "BatchNormTraining"), 0);
  EXPECT_THAT(cnn.warnings, Contains(HasSubstr("no BatchNormalization")));
}

TEST(ImportOnnx, EvaluationReadsRunningStatistics) {
  ImportOptions options = Batch(5);
  options.training = false;
  const Imported cnn = ImportExport("cnn_torchscript.onnx", options);
  EXPECT_EQ(Count(cnn.graph, "BatchNormalization"), 2);
  EXPECT_EQ(Count(cnn.graph, "BatchNormTraining"), 0);
  EXPECT_THAT(cnn.graph.updates, IsEmpty());
  const Imported gpt = ImportExport("gpt_torchscript_20.onnx", options);
  EXPECT_EQ(Count(gpt.graph, "Dropout"), 0);
}

TEST(ImportOnnx, FrozenStatisticsKeepTheInferenceForm) {
  ImportOptions options = Batch(5);
  options.frozen = {"bn.*"};
  const Imported cnn = ImportExport("cnn_torchscript.onnx", options);
  EXPECT_EQ(Count(cnn.graph, "BatchNormalization"), 1);
  EXPECT_EQ(Count(cnn.graph, "BatchNormTraining"), 1);
  EXPECT_THAT(Names(cnn.graph, ValueKind::kConstant), Contains("bn.weight"));
}

TEST(ImportOnnx, GptKeepsItsHeadTiedAndItsMaskConstant) {
  for (const char* name :
       {"gpt_torchscript_17.onnx", "gpt_torchscript_20.onnx"}) {
    const Imported gpt = ImportExport(name);
    const ValueId tied = gpt.value_of.at("wte.weight");
    const GraphIndex index = IndexGraph(gpt.graph);
    EXPECT_EQ(index.consumers[Index(tied)].size(), 2u) << name;
    EXPECT_EQ(Names(gpt.graph, ValueKind::kParameter).size(), 16u) << name;
    bool mask = false;
    for (const Value& value : gpt.graph.values) {
      if (value.kind != ValueKind::kConstant || value.type.elements() != 144) {
        continue;
      }
      mask = true;
      for (int64_t i = 0; i < 144; ++i) {
        const float m = value.initial->as<float>()[static_cast<size_t>(i)];
        EXPECT_EQ(m, i % 12 > i / 12 ? -INFINITY : 0.0f);
      }
    }
    EXPECT_TRUE(mask) << name;
    EXPECT_EQ(Count(gpt.graph, "Where"), 0) << name;
    EXPECT_EQ(Count(gpt.graph, "Slice"), 0) << name;
    EXPECT_THAT(gpt.warnings, IsEmpty()) << name;
  }
}

TEST(ImportOnnx, FloatMaskBuffersThatOnlyDecideAreConstants) {
  const Imported gpt = ImportExport("gpt_mask_torchscript_17.onnx");
  EXPECT_THAT(Names(gpt.graph, ValueKind::kParameter),
              ::testing::Not(Contains("b.0.a.bias")));
  EXPECT_EQ(Names(gpt.graph, ValueKind::kParameter).size(), 16u);
  EXPECT_EQ(Count(gpt.graph, "Where"), 1);
  EXPECT_EQ(Count(gpt.graph, "Tanh"), 1);
}

TEST(ImportOnnx, DropoutsHaveTheirOwnSaltsAndCanBeSwitchedOff) {
  const Imported gpt = ImportExport("gpt_mask_torchscript_17.onnx");
  std::set<int64_t> salts;
  for (const Node& node : gpt.graph.nodes) {
    if (node.op == "Dropout") salts.insert(node.attributes.Int("salt", -1));
  }
  EXPECT_EQ(salts.size(), 3u);
  ImportOptions options = Batch(5);
  options.dropout = false;
  EXPECT_EQ(Count(ImportExport("gpt_mask_torchscript_17.onnx", options).graph,
                  "Dropout"),
            0);
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
      " [a] u = Det(x) [b] v = Det(x) [c] w = Einsum<equation=\"ij->i\">(u)"
      " [d] z = NonMaxSuppression(x, v) [e] y = Add(w, z) }");
  EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
  const std::string text(imported.status().message());
  EXPECT_THAT(text, HasSubstr("Det x2: a, b"));
  EXPECT_THAT(text, HasSubstr("Einsum x1: c"));
  EXPECT_THAT(text, HasSubstr("NonMaxSuppression x1: d"));
  EXPECT_THAT(text, HasSubstr("operators.md"));
  const auto listed = UnsupportedOperators(imported.status());
  ASSERT_EQ(listed.size(), 3u);
  EXPECT_EQ(listed[0].name, "Det");
  EXPECT_EQ(listed[0].why, "");
  EXPECT_THAT(listed[0].nodes, ElementsAre("a", "b"));
  EXPECT_THAT(UnsupportedOperators(absl::UnimplementedError("x")), IsEmpty());
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

}  // namespace
}  // namespace loadline::models
