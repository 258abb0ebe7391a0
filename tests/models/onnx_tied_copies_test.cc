// Files in which torch's exporters have a tied weight twice.
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/onnx/export.h"
#include "models/onnx/model_file.h"
#include "models/onnx/overlapping_parts.h"
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

template <typename Proto>
void Write(const std::string& key, const std::string& value, Proto* proto) {
  auto* entry = proto->add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

void SayComputed(const std::string& name, const std::string& sources,
                 onnx::GraphProto* graph) {
  auto* info = graph->add_value_info();
  info->set_name(name);
  info->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  Write("pkg.onnxscript.optimizer.folded_from", sources, info);
}

// w, transposed, and its elements in a row, as the newer exporter has them if
// it optimizes.
onnx::ModelProto Optimized(const std::string& w, const std::string& t,
                           const std::string& row) {
  onnx::ModelProto model = ModelFromText(absl::StrCat(
      "g (float[2,3] x) => (float[1,2,3] z) <float[2,3] w = {", w,
      "}, float[1,3,2] t_1 = {", t, "}, float[6] view = {", row,
      "}> { a = MatMul(x, t_1) b = MatMul(a, w) s = ReduceSum(view)"
      " z = Mul(b, s) }"));
  model.set_producer_name("pytorch");
  auto* graph = model.mutable_graph();
  Write("pkg.torch.export.ExportedProgram.graph_signature",
        "\n# inputs\np_w: PARAMETER target='w'\nx: USER_INPUT\n", graph);
  SayComputed("t_1", "['t', 'unsqueeze', 'w']", graph);
  SayComputed("view", "['w']", graph);
  return model;
}

onnx::ModelProto Optimized() {
  return Optimized("1,2,3,4,5,6", "1,4,2,5,3,6", "1,2,3,4,5,6");
}

TEST(TiedCopies, AreOneTensorWhereTheNewerExporterSaysSo) {
  const auto imported = ImportOnnxBytes(Bytes(Optimized()), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kParameter), ElementsAre("w"));
  EXPECT_THAT(imported->warnings, IsEmpty());
}

TEST(TiedCopies, OfTheNewerExporterHaveTheTrainedContents) {
  const std::string folder = TempFolder();
  const std::string in = absl::StrCat(folder, "/in.onnx");
  const std::string out = absl::StrCat(folder, "/out.onnx");
  ASSERT_TRUE(onnx_internal::WriteModel(Optimized(), in).ok());
  const std::vector<float> trained = {9, 8, 7, 6, 5, 4};
  const auto status = ExportTrained(
      in, {{"w", MakeTensor({DType::kF32, {2, 3}}, trained.data())}}, out);
  ASSERT_TRUE(status.ok()) << status;
  const auto model = onnx_internal::ReadModelFile(out, 1 << 20);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(onnx_internal::FindTiedCopies(*model, folder).size(), 2u);
}

// A linear layer that runs twice.
TEST(TiedCopies, StandForAParameterThatIsGone) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,2] x) => (float[2,2] z)"
      " <float[2,2] val_0 = {1,2,3,4}, float[2,2] val_2 = {1,2,3,4}> {"
      " a = MatMul(x, val_0) z = MatMul(a, val_2) }");
  model.set_producer_name("pytorch");
  auto* graph = model.mutable_graph();
  Write("pkg.torch.export.ExportedProgram.graph_signature",
        "\n# inputs\np_w: PARAMETER target='w'\nx: USER_INPUT\n", graph);
  SayComputed("val_0", "['w']", graph);
  SayComputed("val_2", "['w']", graph);
  EXPECT_THAT(Parameters(model), ElementsAre("val_0"));
}

// Contents that are the same in any order do not say how to tie them.
TEST(TiedCopies, AreLeftApartWithAWarningWhereContentsAreAmbiguous) {
  for (const char* row : {"2,2,2,2,2,2", "1,2,3,4,5,7"}) {
    const auto imported = ImportOnnxBytes(
        Bytes(Optimized("2,2,2,2,2,2", "2,2,2,2,2,2", row)), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(Names(imported->graph, ValueKind::kParameter),
                ::testing::Contains("t_1"));
    EXPECT_THAT(imported->warnings,
                ElementsAre(HasSubstr("has 'w' several times: w, t_1")));
  }
}

// Rows 0 and 1 of w, and what else the file has of it.
std::vector<std::string> WarningsOfParts(const std::string& other,
                                         const std::string& sources,
                                         const std::string& contents) {
  onnx::ModelProto model = ModelFromText(
      absl::StrCat("g (float[2,2] x) => (float[2,2] z)"
                   " <float[2,2] slice_1 = {1.1,2.2,3.3,4.4}, float[2,2] ",
                   other, " = {", contents,
                   "}> { a = MatMul(x, slice_1) z = MatMul(a, ", other, ") }"));
  model.set_producer_name("pytorch");
  auto* graph = model.mutable_graph();
  Write("pkg.torch.export.ExportedProgram.graph_signature",
        "\n# inputs\np_w: PARAMETER target='w'\nx: USER_INPUT\n", graph);
  SayComputed("slice_1", "['w', 'val_0']", graph);
  SayComputed(other, sources, graph);
  return onnx_internal::FindOverlaps(model, "");
}

TEST(TiedCopies, WarnOfPartsOfAParameterThatOverlap) {
  const std::string w = "['w', 'val_0']";
  const auto shares = [](const std::string& other) {
    return ElementsAre(HasSubstr(absl::StrCat(
        "'slice_1' and '", other, "' share elements of w, and are trained")));
  };
  EXPECT_THAT(WarningsOfParts("slice_3", w, "3.3,4.4,5.5,6.6"),
              shares("slice_3"));
  EXPECT_THAT(WarningsOfParts("select", w, "9,8,7,4.4"), shares("select"));
  // Another warning is of the whole.
  EXPECT_THAT(WarningsOfParts("val_5", w, "1.1,3.3,2.2,4.4"), IsEmpty());
  // Apart, or with elements that say nothing.
  EXPECT_THAT(WarningsOfParts("slice_3", w, "5.5,6.6,7.7,8.8"), IsEmpty());
  EXPECT_THAT(WarningsOfParts("slice_3", w, "0,0,2.2,2.2"), IsEmpty());
  EXPECT_THAT(WarningsOfParts("slice_3", "['v']", "1.1,2.2,3.3,4.4"),
              IsEmpty());
}

TEST(TiedCopies, FindOverlapsOfLargeParts) {
  // w[:, 0:450] and w[:, 449:], transposed: one column of 750 is in both.
  onnx::ModelProto model = ModelFromText(
      "g (float[2,450] x) => (float[2,750] z) { a = MatMul(x, slice_1)"
      " b = MatMul(a, slice_3) z = MatMul(b, slice_1) }");
  model.set_producer_name("pytorch");
  auto* graph = model.mutable_graph();
  Write("pkg.torch.export.ExportedProgram.graph_signature",
        "\n# inputs\np_w: PARAMETER target='w'\nx: USER_INPUT\n", graph);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> columns(750 * 899);
  for (float& x : columns) x = normal(random);
  const auto add = [&](const std::string& name, size_t first) {
    auto* tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(450);
    tensor->add_dims(750);
    tensor->set_raw_data(&columns[first * 750], 450 * 750 * sizeof(float));
    SayComputed(name, "['w', 'val_0']", graph);
  };
  add("slice_1", 0);
  add("slice_3", 449);
  EXPECT_EQ(onnx_internal::FindOverlaps(model, "").size(), 1u);
  graph->mutable_initializer()->RemoveLast();
  columns.resize(750 * 900, 0.5f);
  add("slice_3", 450);
  EXPECT_THAT(onnx_internal::FindOverlaps(model, ""), IsEmpty());
}

}  // namespace
}  // namespace loadline::models
