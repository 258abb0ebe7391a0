// Conversion to the importer's opset, compared with the onnx library's.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
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

}  // namespace
}  // namespace loadline::models::onnx_internal
