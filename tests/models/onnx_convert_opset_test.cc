// Conversion to the importer's opset, compared with the onnx library's.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/compare_graphs.h"
#include "models/onnx/convert_opset.h"
#include "models/onnx/model_file.h"
#include "models/onnx/prepare.h"
#include "onnx/version_converter/convert.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models::onnx_internal {
namespace {

std::string TextOf(const onnx::GraphProto& graph) {
  std::string text;
  for (const auto& node : graph.node()) {
    onnx::NodeProto plain = node;
    plain.clear_attribute();
    plain.clear_doc_string();
    plain.clear_metadata_props();
    std::map<std::string, std::string> attributes;
    for (onnx::AttributeProto attribute : node.attribute()) {
      attribute.clear_doc_string();
      attributes[attribute.name()] = attribute.SerializeAsString();
    }
    text += plain.SerializeAsString();
    for (const auto& [name, bytes] : attributes) text += name + bytes;
  }
  return text;
}

std::vector<std::string> Models() {
  std::vector<std::string> paths;
  for (const std::string& folder :
       {DataPath(""), std::string(LOADLINE_SOURCE_DIR "/models/zoo")}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(ConvertOpset, SkipsOnlyConversionsThatKeepEveryNode) {
  int kept = 0, changed = 0;
  for (const std::string& path : Models()) {
    auto proto = ReadModelFile(path, int64_t{1} << 30);
    ASSERT_TRUE(proto.ok()) << proto.status();
    const int opset = static_cast<int>(proto->opset_import(0).version());
    if (opset >= kOpset || proto->functions_size() > 0) continue;
    if (!ConversionKeepsNodes(proto->graph(), opset, kOpset)) {
      ++changed;
      continue;
    }
    ++kept;
    const onnx::ModelProto converted =
        onnx::version_conversion::ConvertVersion(*proto, kOpset);
    EXPECT_TRUE(TextOf(converted.graph()) == TextOf(proto->graph())) << path;
  }
  std::printf("%d kept, %d converted\n", kept, changed);
  EXPECT_GE(kept, 5);
}

TEST(ConvertOpset, KnowsWhatChangesAndWhatDoesNot) {
  struct Case {
    const char* call;
    int from;
    bool keeps;
  };
  for (const Case& c :
       {Case{"y = Relu(x)", 13, true}, Case{"y = Cast<to=1>(x)", 18, true},
        Case{"y = Add(x, x)", 6, false}, Case{"y = Softmax(x)", 12, false},
        Case{"y = Softmax(x)", 13, true},
        Case{"y = ReduceMean<axes=[0]>(x)", 17, false}}) {
    const onnx::ModelProto model = ModelFromText(
        std::string("g (float[2,3] x) => (float[a,b] y) {") + c.call + "}",
        c.from);
    EXPECT_EQ(ConversionKeepsNodes(model.graph(), c.from, kOpset), c.keeps)
        << c.call << " " << c.from;
  }
}

// Exports with training=TRAINING below opset 14 have five outputs.
TEST(ConvertOpset, KeepsBatchNormalizationOfOldOpsetsInTrainingForm) {
  const std::string inputs =
      "g (float[4,3,2,2] x) => (float[4,3,2,2] y)"
      " <float[3] s = {1,1,1}, float[3] b = {0,0,0},"
      " float[3] m = {0,0,0}, float[3] v = {1,1,1}> {";
  for (const int opset : {9, 13}) {
    const auto training = ImportText(
        inputs + " y, m1, v1, m2, v2 = BatchNormalization(x, s, b, m, v) }", {},
        opset);
    ASSERT_TRUE(training.ok()) << training.status();
    EXPECT_EQ(Count(training->graph, "BatchNormTraining"), 1);
    EXPECT_EQ(training->graph.updates.size(), 2u);
    EXPECT_EQ(training->forms.batch_norms_restored, 0);
    const auto inference = ImportText(
        inputs + " y = BatchNormalization(x, s, b, m, v) }", {}, opset);
    ASSERT_TRUE(inference.ok()) << inference.status();
    EXPECT_EQ(inference->forms.batch_norms_restored, 1);
  }
}

TEST(ConvertOpset, OmittedOutputsAreNoTrainingForm) {
  onnx::ModelProto model = ModelFromText(
      "g (float[4,3,2,2] x, float[3] s, float[3] b, float[3] m, float[3] v)"
      " => (float[4,3,2,2] y) {"
      " y, m1, v1, m2, v2 = BatchNormalization(x, s, b, m, v) }",
      13);
  onnx::NodeProto* node = model.mutable_graph()->mutable_node(0);
  for (int i = 1; i < 5; ++i) node->set_output(i, "");
  SetTrainingMode(model.mutable_graph());
  EXPECT_EQ(node->output_size(), 1);
  EXPECT_EQ(node->attribute_size(), 0);
}

// The same graph as from today's operators, of which ONNX's tests have values.
TEST(ConvertOpset, KeepsTheMeaningOfOldOperators) {
  const std::string ends = "g (float[2,3,4] x) => (float[a,b,c] y) { ";
  const std::string new_resize =
      "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\">"
      "(x,,r) }";
  const std::string scales = "r = Constant<value = float[3] {1.0,1.5,2.0}>() ";
  struct Case {
    std::string old_text;
    int opset;
    std::string new_text;
  };
  for (const Case& c : std::vector<Case>{
           {"y = Pad<pads=[0,1,0,0,0,2], value=0.5>(x) }", 9,
            "p = Constant<value = int64[6] {0,1,0,0,0,2}>()"
            " v = Constant<value = float {0.5}>() y = Pad(x, p, v) }"},
           {"y = Pad<pads=[0,1,0,0,0,2]>(x) }", 2,
            "p = Constant<value = int64[6] {0,1,0,0,0,2}>() y = Pad(x, p) }"},
           {"y = Pad<pads=[0,1,0,0,0,2], mode=\"reflect\">(x) }", 10,
            "p = Constant<value = int64[6] {0,1,0,0,0,2}>()"
            " y = Pad<mode=\"reflect\">(x, p) }"},
           {"y = Upsample<scales=[1.0,1.5,2.0]>(x) }", 7,
            scales + "y = Resize<" + new_resize},
           {"y = Upsample<scales=[1.0,1.5,2.0], mode=\"linear\">(x) }", 8,
            scales + "y = Resize<mode=\"linear\", " + new_resize},
           {scales + "y = Upsample(x, r) }", 9,
            scales + "y = Resize<" + new_resize},
           {scales + "y = Resize(x, r) }", 10,
            scales + "y = Resize<" + new_resize},
           {scales + "y = Resize<mode=\"linear\">(x, r) }", 10,
            scales + "y = Resize<mode=\"linear\", " + new_resize}}) {
    const auto was = ImportText(ends + c.old_text, {}, c.opset);
    ASSERT_TRUE(was.ok()) << c.old_text << ": " << was.status();
    const auto is = ImportText(ends + c.new_text);
    ASSERT_TRUE(is.ok()) << c.new_text << ": " << is.status();
    EXPECT_TRUE(CompareGraphs(is->graph, was->graph).ok())
        << c.old_text << ": " << CompareGraphs(is->graph, was->graph);
  }
}

// The conversion goes on behind them: opset 9's Softmax is over all axes.
TEST(ConvertOpset, ConvertsWhatFollowsAnOldOperator) {
  const auto imported = ImportText(
      "g (float[2,3,4] x, float[2,18] t) => (float[2,18] y) {"
      " p = Pad<pads=[0,1,0,0,0,2]>(x) s = Softmax<axis=1>(p)"
      " f = Flatten(s) c = Slice<axes=[1], starts=[0], ends=[18]>(f)"
      " y = Mul(c, t) }",
      {}, 9);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(
      imported->graph.value(NodeWith(imported->graph, "Softmax").inputs[0])
          .type.dims,
      (std::vector<int64_t>{2, 24}));
}

}  // namespace
}  // namespace loadline::models::onnx_internal
