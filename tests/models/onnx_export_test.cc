// The exported model is the original with other numbers: read, compared,
// checked.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/export.h"
#include "models/onnx/model_file.h"
#include "onnx/checker.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::HasSubstr;

class ExportTrainedTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = TempFolder(); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string out() const { return folder_ + "/out.onnx"; }
  // Number of files in the folder.
  int64_t Files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }
  std::string folder_;
};

std::map<std::string, Tensor> NewBias() {
  const float values[4] = {1.5f, -2.0f, 0.25f, 9.0f};
  return {{"net.3.bias", MakeTensor({DType::kF32, {4}}, values)}};
}

TEST_F(ExportTrainedTest, ReplacesNumbersAndNothingElse) {
  const std::string original = DataPath("mlp_torchscript.onnx");
  const absl::Status status = ExportTrained(original, NewBias(), out());
  ASSERT_TRUE(status.ok()) << status;
  auto before = onnx_internal::ReadModelFile(original, 1 << 20);
  auto after = onnx_internal::ReadModelFile(out(), 1 << 20);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_NO_THROW(onnx::checker::check_model(*after, true));
  for (int i = 0; i < after->graph().initializer_size(); ++i) {
    auto* tensor = after->mutable_graph()->mutable_initializer(i);
    if (tensor->name() != "net.3.bias") continue;
    int64_t budget_bytes = 1 << 20;
    const auto read = onnx_internal::ReadTensor(*tensor, "", &budget_bytes);
    ASSERT_TRUE(read.ok());
    EXPECT_THAT(read->as<float>(),
                ::testing::ElementsAre(1.5f, -2.0f, 0.25f, 9.0f));
    tensor->set_raw_data(before->graph().initializer(i).raw_data());
  }
  EXPECT_EQ(after->SerializeAsString(), before->SerializeAsString());
  EXPECT_EQ(Files(), 1);
}

TEST_F(ExportTrainedTest, WeightsInConstantNodesBecomeInitializers) {
  const std::string body = R"(
g (float[2, 2] x) => (float[2, 2] y) {
  shift = Constant<value = float[2] {5, 6}>()
  weight = Constant<value = float[2, 2] {1, 2, 3, 4}>()
  moved = Add(x, shift)
  y = MatMul(moved, weight)
})";
  onnx::ModelProto model = ModelFromText(body);
  const std::string original = folder_ + "/model.onnx";
  WriteFile(original, Bytes(model));
  const auto imported = ImportOnnx(original, {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kParameter),
              ::testing::ElementsAre("weight"));
  const float numbers[] = {4, 3, 2, 1};
  const absl::Status status = ExportTrained(
      original, {{"weight", MakeTensor({DType::kF32, {2, 2}}, numbers)}},
      out());
  ASSERT_TRUE(status.ok()) << status;
  const auto after = ImportOnnx(out(), {});
  ASSERT_TRUE(after.ok()) << after.status();
  const auto weight = after->graph.Find("weight");
  ASSERT_TRUE(weight.has_value());
  EXPECT_THAT(after->graph.value(*weight).initial->as<float>(),
              ::testing::ElementsAre(4, 3, 2, 1));
  // There they are numbers of the model's code.
  model.set_producer_name("pytorch");
  const auto of_torch = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(of_torch.ok()) << of_torch.status();
  EXPECT_TRUE(Names(of_torch->graph, ValueKind::kParameter).empty());
}

// Scales and biases of all normalizations too.
TEST_F(ExportTrainedTest, NormalizationsInConstantNodesAreTrained) {
  const std::map<std::string, std::vector<std::string>> trained_of = {
      {"InstanceNormalization(x, scale, bias)", {"bias", "scale"}},
      {"GroupNormalization<num_groups = 2>(x, scale, bias)", {"bias", "scale"}},
      {"BatchNormalization(x, scale, bias, mean, variance)", {"bias", "scale"}},
      {"LayerNormalization(x, row, row_bias)", {"row", "row_bias"}},
      {"RMSNormalization(x, row)", {"row"}}};
  for (const auto& [norm, trained] : trained_of) {
    const auto imported = ImportText(
        "g (float[2, 2, 3] x) => (float[2, 2, 3] y) {"
        " scale = Constant<value = float[2] {1.5, 2}>()"
        " bias = Constant<value = float[2] {0.5, 3}>()"
        " mean = Constant<value = float[2] {0.25, 3}>()"
        " variance = Constant<value = float[2] {1.25, 3}>()"
        " row = Constant<value = float[3] {1, 2, 0.5}>()"
        " row_bias = Constant<value = float[3] {0, 1, -0.5}>()"
        " y = " +
            norm + " }",
        {}, 23);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(Names(imported->graph, ValueKind::kParameter),
                ::testing::UnorderedElementsAreArray(trained))
        << norm;
  }
}

TEST_F(ExportTrainedTest, EveryParameterOfAnImportCanBeExported) {
  for (const char* name : {"mlp_torchscript.onnx", "cnn_torchscript.onnx",
                           "gpt_torchscript_17.onnx", "gpt_dynamo.onnx",
                           "gpt_dynamo_unoptimized.onnx"}) {
    ImportOptions options;
    options.batch = 2;
    const auto imported = ImportOnnx(DataPath(name), options);
    ASSERT_TRUE(imported.ok()) << imported.status();
    std::map<std::string, Tensor> trained;
    for (const Value& value : imported->graph.values) {
      if (value.kind == ValueKind::kParameter ||
          value.kind == ValueKind::kState) {
        trained.emplace(value.name, *value.initial);
      }
    }
    EXPECT_GE(trained.size(), 4u);
    const absl::Status status = ExportTrained(DataPath(name), trained, out());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(ImportOnnx(out(), options).ok());
  }
}

TEST_F(ExportTrainedTest, EmbedsExternalData) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] v = {3,4}>"
      " { u = Add(x, w) y = Add(u, v) }");
  const float numbers[2] = {7, 8};
  WriteFile(folder_ + "/v.data",
            std::string(reinterpret_cast<const char*>(numbers), 8));
  auto* v = model.mutable_graph()->mutable_initializer(1);
  v->clear_float_data();
  v->clear_raw_data();
  v->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = v->add_external_data();
  entry->set_key("location");
  entry->set_value("v.data");
  WriteFile(folder_ + "/m.onnx", Bytes(model));
  const absl::Status status = ExportTrained(folder_ + "/m.onnx", {}, out());
  ASSERT_TRUE(status.ok()) << status;
  ImportOptions options;
  options.train = {"v"};
  const auto imported = ImportOnnxBytes(ReadFile(out()), options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(
      imported->graph.value(imported->value_of.at("v")).initial->as<float>(),
      ::testing::ElementsAre(7, 8));
}

TEST_F(ExportTrainedTest, RefusesUnknownNamesAndOtherShapes) {
  const std::string original = DataPath("mlp_torchscript.onnx");
  EXPECT_THAT(
      std::string(ExportTrained(original, {{"ghost", ScalarTensor(1)}}, out())
                      .message()),
      HasSubstr("no initializer named 'ghost'"));
  EXPECT_THAT(
      std::string(
          ExportTrained(original, {{"net.3.bias", ScalarTensor(1)}}, out())
              .message()),
      HasSubstr("is f32[4], not f32[]"));
  EXPECT_TRUE(
      absl::IsNotFound(ExportTrained(folder_ + "/none.onnx", {}, out())));
  EXPECT_EQ(Files(), 0);
}

TEST_F(ExportTrainedTest, AFailedWriteLeavesTheOlderFile) {
  WriteFile(out(), "older");
  // A size limit of 100 bytes simulates a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old_limit, small_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  small_limit = old_limit;
  small_limit.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small_limit), 0);
  const absl::Status status =
      ExportTrained(DataPath("mlp_torchscript.onnx"), NewBias(), out());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ReadFile(out()), "older");
  EXPECT_EQ(Files(), 1);
}

TEST_F(ExportTrainedTest, SaysWhereItCannotWrite) {
  const absl::Status status = ExportTrained(DataPath("mlp_torchscript.onnx"),
                                            {}, folder_ + "/no/out.onnx");
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/out.onnx"));
}

}  // namespace
}  // namespace loadline::models
