// Files in which torch's older exporter has a tied weight twice.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/export.h"
#include "models/onnx/model_file.h"
#include "models/onnx/tied_copies.h"
#include "models/onnx/write_model.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kCopy[] = "onnx::MatMul_7";
constexpr int64_t kRows = 16, kColumns = 5;

// A head of the table's own weights, as `copy`.
onnx::ModelProto LanguageModel(const std::string& copy) {
  onnx::ModelProto model = ModelFromText(absl::StrCat(
      "g (int64[2,3] x) => (float[2,3,16] y)"
      " <float[16,5] \"wte.weight\" = {0}, float[5,16] \"",
      copy, "\" = {0}> { h = Gather(\"wte.weight\", x) y = MatMul(h, \"", copy,
      "\") }"));
  model.set_producer_name("pytorch");
  std::vector<float> table, transposed(kRows * kColumns);
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    table.push_back(static_cast<float>((i * 37) % 101) / 16);
    const int64_t row = i / kColumns, column = i % kColumns;
    transposed[static_cast<size_t>(column * kRows + row)] = table.back();
  }
  onnx_internal::WriteTensor(
      MakeTensor({DType::kF32, {kRows, kColumns}}, table.data()),
      model.mutable_graph()->mutable_initializer(0));
  onnx_internal::WriteTensor(
      MakeTensor({DType::kF32, {kColumns, kRows}}, transposed.data()),
      model.mutable_graph()->mutable_initializer(1));
  return model;
}

std::vector<std::string> Parameters(const onnx::ModelProto& model) {
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return {};
  return Names(imported->graph, ValueKind::kParameter);
}

TEST(TiedCopies, AreTrainedAsOneTensor) {
  const auto imported = ImportOnnxBytes(Bytes(LanguageModel(kCopy)), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kParameter),
              ElementsAre("wte.weight"));
  EXPECT_THAT(imported->warnings, ElementsAre(HasSubstr("as a tied weight")));
}

TEST(TiedCopies, AreTheOlderExportersOwnOnly) {
  EXPECT_THAT(Parameters(LanguageModel("head.weight")),
              ElementsAre("wte.weight", "head.weight"));
  onnx::ModelProto of_others = LanguageModel(kCopy);
  of_others.clear_producer_name();
  EXPECT_THAT(Parameters(of_others), ElementsAre("wte.weight", kCopy));
}

TEST(TiedCopies, DifferInNoElement) {
  onnx::ModelProto model = LanguageModel(kCopy);
  std::string* bytes =
      model.mutable_graph()->mutable_initializer(1)->mutable_raw_data();
  bytes->back() = static_cast<char>(bytes->back() ^ 1);
  EXPECT_THAT(Parameters(model), ElementsAre("wte.weight", kCopy));
  // Two matrices of zeros are no sign of anything.
  for (onnx::TensorProto& tensor :
       *model.mutable_graph()->mutable_initializer()) {
    tensor.set_raw_data(std::string(tensor.raw_data().size(), '\0'));
  }
  EXPECT_THAT(onnx_internal::FindTiedCopies(model, ""), IsEmpty());
}

TEST(TiedCopies, HaveTheTrainedContentsInTheExportedModel) {
  const std::string folder = ::testing::TempDir();
  const std::string in = absl::StrCat(folder, "/tied_copies_in.onnx");
  const std::string out = absl::StrCat(folder, "/tied_copies_out.onnx");
  ASSERT_TRUE(onnx_internal::WriteModel(LanguageModel(kCopy), in).ok());
  std::vector<float> trained(kRows * kColumns);
  for (size_t i = 0; i < trained.size(); ++i)
    trained[i] = static_cast<float>(i);
  const auto status = ExportTrained(
      in,
      {{"wte.weight",
        MakeTensor({DType::kF32, {kRows, kColumns}}, trained.data())}},
      out);
  ASSERT_TRUE(status.ok()) << status;
  const auto model = onnx_internal::ReadModelFile(out, 1 << 20);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto copies = onnx_internal::FindTiedCopies(*model, folder);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].copy, kCopy);
  EXPECT_EQ(copies[0].original, "wte.weight");
  std::filesystem::remove(in);
  std::filesystem::remove(out);
}

}  // namespace
}  // namespace loadline::models
