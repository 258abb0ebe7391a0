// Normalization, dropout and masks of real PyTorch exports: what trains, what
// is constant, and what the import warns of.
#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/import.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  options.freeze = {"bn.*"};
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

}  // namespace
}  // namespace loadline::models
