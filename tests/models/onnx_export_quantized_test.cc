// The nodes and numbers of a quantized export; tests/onnxruntime runs such
// models.
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/export_quantized.h"
#include "models/onnx/import.h"
#include "models/onnx/model_file.h"
#include "onnx/checker.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A Conv of two 1x1 filters, its normalization, Relu, Dropout, and a Gemm.
constexpr char kModel[] = R"(
g (float[n,1,2,2] x) => (float[n,2] y)
<float[2,1,1,1] w = {0.5, -1.0}, float[2] b = {0.25, 0.0},
 float[2] scale = {2.0, -1.0}, float[2] shift = {0.0, 0.5},
 float[2] mean = {0.0, 0.0}, float[2] var = {1.0, 4.0},
 float[2,8] w2 = {1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5,
                  0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
 float[2] b2 = {0.1, 3.0}> {
  c = Conv(x, w, b)
  bn, m1, v1 = BatchNormalization<training_mode = 1, epsilon = 0.0>(
      c, scale, shift, mean, var)
  r = Relu(bn)
  d = Dropout(r)
  f = Flatten(d)
  y = Gemm<transB = 1>(f, w2, b2)
})";

QuantizedModel Grids() {
  QuantizedModel quantized;
  quantized.activations = {{{"x"}, 0.1f, 3},
                           {{"d", "r"}, 0.2f, 0},
                           {{"f"}, 0.2f, 0},
                           {{"y"}, 0.5f, 100}};
  quantized.weights = {{"w", 0, 8, true, {0.5f / 127, 1.0f / 127}, {0, 0}},
                       {"w2", 0, 8, true, {1.0f / 127, 1.0f}, {0, 0}}};
  return quantized;
}

class ExportQuantizedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = TempFolder();
    WriteFile(folder_ + "/in.onnx", Bytes(ModelFromText(kModel, 17)));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Exports, checks with ONNX, and keeps the result.
  void Export(QuantizedModel quantized) {
    const absl::Status status = ExportQuantized(
        folder_ + "/in.onnx", std::move(quantized), folder_ + "/out.onnx");
    ASSERT_TRUE(status.ok()) << status;
    auto model = onnx_internal::ReadModelFile(folder_ + "/out.onnx", 1 << 20);
    ASSERT_TRUE(model.ok());
    EXPECT_NO_THROW(onnx::checker::check_model(*model, true));
    graph_ = model->graph();
  }

  template <typename T>
  std::vector<T> Numbers(const std::string& name) const {
    for (const onnx::TensorProto& proto : graph_.initializer()) {
      if (proto.name() != name) continue;
      int64_t budget_bytes = 1 << 20;
      const auto tensor = onnx_internal::ReadTensor(proto, "", &budget_bytes);
      EXPECT_TRUE(tensor.ok());
      const absl::Span<const T> numbers = tensor->as<T>();
      return {numbers.begin(), numbers.end()};
    }
    ADD_FAILURE() << "no initializer " << name;
    return {};
  }

  int CountOf(const std::string& op) const {
    int count = 0;
    for (const onnx::NodeProto& node : graph_.node()) {
      count += node.op_type() == op;
    }
    return count;
  }

  const onnx::NodeProto& NodeOf(const std::string& op) const {
    for (const onnx::NodeProto& node : graph_.node()) {
      if (node.op_type() == op) return node;
    }
    ADD_FAILURE() << "no " << op;
    return graph_.node(0);
  }

  const onnx::NodeProto* Maker(const std::string& name) const {
    for (const onnx::NodeProto& node : graph_.node()) {
      for (const std::string& output : node.output()) {
        if (output == name) return &node;
      }
    }
    return nullptr;
  }

  std::string folder_;
  onnx::GraphProto graph_;
};

TEST_F(ExportQuantizedTest, PutsEveryOperatorBetweenIntegers) {
  Export(Grids());
  EXPECT_EQ(CountOf("QuantizeLinear"), 4);
  EXPECT_EQ(CountOf("DequantizeLinear"), 4 + 2 + 2);
  for (const char* op : {"Conv", "Gemm"}) {
    for (const std::string& input : NodeOf(op).input()) {
      ASSERT_NE(Maker(input), nullptr) << input;
      EXPECT_EQ(Maker(input)->op_type(), "DequantizeLinear") << input;
    }
  }
  EXPECT_EQ(graph_.output(0).name(), "y");
  EXPECT_EQ(Maker("y")->op_type(), "DequantizeLinear");
  EXPECT_EQ(CountOf("BatchNormalization"), 0);
  EXPECT_EQ(CountOf("Dropout"), 0);
}

// ONNX Runtime does not load a weight whose zero point two nodes read, with
// session.x64quantprecision: a tied embedding's, for instance.
TEST_F(ExportQuantizedTest, GivesEachReaderOfAWeightItsOwnZeroPoint) {
  WriteFile(folder_ + "/in.onnx", Bytes(ModelFromText(R"(
g (float[n,2] x, int64[n] i) => (float[n,3] y, float[n,2] z, float[n,2] s)
<float[3,2] w = {0.5, -1.0, 0.25, 0.0, 1.0, 1.0}> {
  z = Gather(w, i)
  t = Transpose(w)
  y = MatMul(x, t)
  s = Gather(w, i)
})",
                                                      17)));
  QuantizedModel quantized;
  quantized.weights = {
      {"w", 0, 8, true, {1.0f / 127, 0.25f / 127, 1.0f / 127}, {0, 0, 0}}};
  Export(quantized);
  EXPECT_EQ(CountOf("DequantizeLinear"), 3);
  std::set<std::string> zeros, codes;
  for (const onnx::NodeProto& node : graph_.node()) {
    if (node.op_type() != "DequantizeLinear") continue;
    codes.insert(node.input(0));
    zeros.insert(node.input(2));
    EXPECT_EQ(Numbers<int8_t>(node.input(2)), (std::vector<int8_t>{0, 0, 0}));
  }
  EXPECT_EQ(zeros.size(), 3u);
  EXPECT_EQ(codes.size(), 1u);
}

// Biases and statistics in float have become integers and factors.
TEST_F(ExportQuantizedTest, HasNoInitializerThatNothingReads) {
  Export(Grids());
  std::set<std::string> read;
  for (const onnx::NodeProto& node : graph_.node()) {
    read.insert(node.input().begin(), node.input().end());
  }
  for (const onnx::TensorProto& proto : graph_.initializer()) {
    EXPECT_TRUE(read.contains(proto.name())) << proto.name();
  }
}

TEST_F(ExportQuantizedTest, SaysThatItIsForInference) {
  Export(Grids());
  ImportOptions options;
  options.batch = 2;
  const auto imported = ImportOnnx(folder_ + "/out.onnx", options);
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("is for inference and is evaluated in ONNX Runtime"));
}

TEST_F(ExportQuantizedTest, FoldsTheNormIntoScalesAndSigns) {
  Export(Grids());
  // Factors: 2 / 1 and -1 / 2.
  EXPECT_THAT(Numbers<int8_t>("w_quantized"), ElementsAre(127, 127));
  const std::vector<float> scales = Numbers<float>("w_scale");
  EXPECT_FLOAT_EQ(scales[0], 1.0f / 127);
  EXPECT_FLOAT_EQ(scales[1], 0.5f / 127);
  // Biases 0.25 * 2 and 0.5 in steps of 0.1 times these.
  const std::vector<int32_t> bias = Numbers<int32_t>("w_bn_bias_quantized");
  EXPECT_THAT(bias, ElementsAre(635, 1270));
}

TEST_F(ExportQuantizedTest, GivesADeadChannelScaleOne) {
  QuantizedModel quantized = Grids();
  quantized.weights[1].scales[1] = 1e-30f;
  Export(std::move(quantized));
  EXPECT_EQ(Numbers<float>("w2_scale")[1], 1.0f);
  EXPECT_EQ(Numbers<int32_t>("w2_y_bias_quantized").size(), 2u);
}

TEST_F(ExportQuantizedTest, ClipsNarrowActivations) {
  QuantizedModel quantized = Grids();
  quantized.activations[1].bits = 4;
  Export(std::move(quantized));
  EXPECT_EQ(CountOf("Clip"), 1);
  EXPECT_EQ(Numbers<float>("r_low")[0], 0);
  EXPECT_FLOAT_EQ(Numbers<float>("r_high")[0], 15 * 0.2f);
}

TEST_F(ExportQuantizedTest, WritesCodebooksAsGather) {
  QuantizedModel quantized = Grids();
  quantized.weights.pop_back();
  const float entries[2] = {0, 0.75};
  int32_t codes[16] = {1};
  quantized.codebooks = {{"w2", MakeTensor({DType::kF32, {2}}, entries),
                          MakeTensor({DType::kI32, {2, 8}}, codes)}};
  Export(quantized);
  EXPECT_EQ(Maker("w2")->op_type(), "Gather");
  EXPECT_EQ(Numbers<uint8_t>("w2_codes")[0], 1);
  EXPECT_THAT(Numbers<float>("w2_codebook"), ElementsAre(0, 0.75));
  codes[3] = 2;
  quantized.codebooks[0].codes = MakeTensor({DType::kI32, {2, 8}}, codes);
  EXPECT_THAT(
      ExportQuantized(folder_ + "/in.onnx", quantized, folder_ + "/out.onnx")
          .message(),
      HasSubstr("the code 2"));
}

TEST_F(ExportQuantizedTest, RefusesWhatTheFileLacks) {
  QuantizedModel quantized = Grids();
  quantized.activations[0].tensors = {"nowhere"};
  EXPECT_THAT(
      ExportQuantized(folder_ + "/in.onnx", quantized, folder_ + "/out.onnx")
          .message(),
      HasSubstr("'nowhere'"));
  quantized = Grids();
  quantized.weights[0].initializer = "nothing";
  EXPECT_THAT(
      ExportQuantized(folder_ + "/in.onnx", quantized, folder_ + "/out.onnx")
          .message(),
      HasSubstr("'nothing'"));
  quantized = Grids();
  quantized.weights[0].scales.pop_back();
  EXPECT_EQ(
      ExportQuantized(folder_ + "/in.onnx", quantized, folder_ + "/out.onnx")
          .code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckQuantizedExport(folder_ + "/in.onnx", quantized).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CheckQuantizedExport(folder_ + "/in.onnx", Grids()).ok());
  WriteFile(folder_ + "/old.onnx", Bytes(ModelFromText(kModel, 12)));
  EXPECT_EQ(
      ExportQuantized(folder_ + "/old.onnx", Grids(), folder_ + "/out.onnx")
          .code(),
      absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CheckQuantizedExport(folder_ + "/old.onnx", Grids()).code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace loadline::models
