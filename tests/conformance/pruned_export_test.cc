// Pruned models written as ONNX: what is read back is the pruned model. The
// export compares that itself, so the tests look at the file: sizes that the
// file names, open axes, and models whose shapes are computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/compare_graphs.h"
#include "models/onnx/export_pruned.h"
#include "models/onnx/import.h"
#include "models/onnx/model_file.h"
#include "models/onnx/widen_floats.h"
#include "onnx/checker.h"
#include "passes/compress/prune_graph.h"
#include "passes/compress/prune_groups.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/prune_cases.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::conformance {
namespace {

using models::Graph;
using models::ImportOptions;
using ::testing::HasSubstr;

// Every second channel of every group that may be pruned goes.
passes::PrunedGraph Halved(const Graph& graph) {
  const auto groups = passes::FindPruneGroups(graph);
  EXPECT_TRUE(groups.ok()) << groups.status();
  std::vector<std::vector<int64_t>> removed;
  for (const passes::PruneGroup& group : *groups) {
    std::vector<int64_t>& channels = removed.emplace_back();
    if (!group.frozen.empty()) continue;
    for (int64_t c = 0; c < group.width / 2; ++c) channels.push_back(2 * c);
  }
  auto pruned = passes::PruneGraph(graph, *groups, removed);
  EXPECT_TRUE(pruned.ok()) << pruned.status();
  return pruned.ok() ? *std::move(pruned) : passes::PrunedGraph{};
}

std::map<std::string, std::vector<int64_t>> Shapes(
    const onnx::ModelProto& model) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& tensor : model.graph().initializer()) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT) continue;
    shapes[tensor.name()] = {tensor.dims().begin(), tensor.dims().end()};
  }
  return shapes;
}

class PrunedExport : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = models::TempFolder(); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string In() const { return folder_ + "/in.onnx"; }
  std::string Out() const { return folder_ + "/out.onnx"; }

  // Prunes the model by half, exports it and returns the file, which must be
  // the pruned model when it is read with other sizes too.
  onnx::ModelProto Export(const std::string& path, const ImportOptions& options,
                          const std::vector<ImportOptions>& others = {}) {
    onnx::ModelProto result;
    auto imported = models::ImportOnnx(path, options);
    EXPECT_TRUE(imported.ok()) << imported.status();
    if (!imported.ok()) return result;
    const absl::Status status = models::ExportPruned(
        path, options, Halved(imported->graph).graph, {}, Out());
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return result;
    for (const ImportOptions& other : others) {
      const auto whole = models::ImportOnnx(path, other);
      const auto small = models::ImportOnnx(Out(), other);
      EXPECT_TRUE(small.ok()) << small.status();
      if (!whole.ok() || !small.ok()) continue;
      const absl::Status same =
          models::CompareGraphs(Halved(whole->graph).graph, small->graph);
      EXPECT_TRUE(same.ok()) << same;
    }
    auto file = models::onnx_internal::ReadModelFile(Out(), 1 << 28);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : result;
  }

  std::string folder_;
};

TEST_F(PrunedExport, HasTheShapesOfTheModelBuiltSmall) {
  for (const PruneCase& c : PruneCases()) {
    SCOPED_TRACE(c.name);
    models::WriteFile(In(), models::Bytes(PruneModel(c, Width::kWide)));
    ImportOptions options;
    options.train = c.train;
    const onnx::ModelProto file = Export(In(), options);
    EXPECT_EQ(Shapes(file), Shapes(PruneModel(c, Width::kNarrow)));
    EXPECT_NO_THROW(onnx::checker::check_model(file, true));
  }
}

// As at the second change of phase: the graph is pruned again, the file is
// still the first one.
TEST_F(PrunedExport, OfAModelPrunedTwice) {
  for (const PruneCase& c : PruneCases()) {
    SCOPED_TRACE(c.name);
    models::WriteFile(In(), models::Bytes(PruneModel(c, Width::kWide)));
    ImportOptions options;
    options.train = c.train;
    const auto imported = models::ImportOnnx(In(), options);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Graph once = Halved(imported->graph).graph;
    const Graph twice = Halved(once).graph;
    EXPECT_FALSE(models::CompareGraphs(once, twice).ok());
    const absl::Status status =
        models::ExportPruned(In(), options, twice, {}, Out());
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(PrunedExport, TheZoo) {
  for (const char* name :
       {"mlp", "unet", "gpt", "gpt-torchscript", "resnet18"}) {
    SCOPED_TRACE(name);
    ImportOptions two, three;
    two.batch = 2;
    three.batch = 3;
    const std::string path =
        std::string(LOADLINE_SOURCE_DIR "/models/zoo/") + name + ".onnx";
    Export(path, two, {three});
  }
}

// As PyTorch exports an LSTM: its first state is zeros for the batch.
TEST_F(PrunedExport, ShortensTheFirstStateOfALayer) {
  const std::string body =
      "g (float[3,b,6] x, float[1,32,6] w, float[1,32,8] r,"
      "   float[1,64] bias, float[8,5] w2) => (float[3,b,5] y)"
      " <int64[1] one = {1}, int64[1] hidden = {8}, int64 i1 = {1}> {"
      " shape = Shape(x)"
      " batch0 = Gather(shape, i1)"
      " none = Constant<value_ints = [0]>()"
      " batch = Unsqueeze(batch0, none)"
      " dims = Concat<axis=0>(one, batch, hidden)"
      " zero = ConstantOfShape(dims)"
      " h, last, cell = LSTM<hidden_size=8>(x, w, r, bias, , zero, zero)"
      " s = Squeeze(h, one)"
      " y = MatMul(s, w2) }";
  PruneCase c{"", body, {}, {}};
  models::WriteFile(In(), models::Bytes(PruneModel(c, Width::kWide)));
  ImportOptions two, three;
  two.dims = {{"b", 2}};
  three.dims = {{"b", 3}};
  const onnx::ModelProto file = Export(In(), two, {three});
  EXPECT_EQ(Shapes(file)["r"], (std::vector<int64_t>{1, 16, 4}));
}

// The shape of a Reshape is computed at run time, with heads and width as
// numbers: these change, batch and sequence stay open.
TEST_F(PrunedExport, LeavesOpenAxesOpen) {
  std::string body =
      "g (float[b,s,6] x, float[6,24] wq, float[6,24] wk, float[24,5] wo)"
      "  => (float[b,s,5] y)"
      " <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] heads = {8},"
      "  int64[1] rest = {-1}> {"
      " shape = Shape(x)"
      " batch = Gather(shape, i0)"
      " length = Gather(shape, i1)"
      " q0 = MatMul(x, wq)"
      " k0 = MatMul(x, wk)"
      " qshape = Shape(q0)"
      " two = Constant<value_ints = [2]>()"
      " width = Gather(qshape, two)"
      " size = Div(width, heads)"
      " split = Concat<axis=0>(batch, length, heads, size)"
      " joined = Concat<axis=0>(batch, length, rest)"
      " q1 = Reshape(q0, split)"
      " k1 = Reshape(k0, split)"
      " q = Transpose<perm=[0,2,1,3]>(q1)"
      " k = Transpose<perm=[0,2,3,1]>(k1)"
      " a = MatMul(q, k)"
      " p = Softmax<axis=-1>(a)"
      " o = MatMul(p, q)"
      " t = Transpose<perm=[0,2,1,3]>(o)"
      " u = Reshape(t, joined)"
      " y = MatMul(u, wo) }";
  PruneCase c{"", body, {}, {}};
  models::WriteFile(In(), models::Bytes(PruneModel(c, Width::kWide)));
  ImportOptions one, other;
  one.dims = {{"b", 2}, {"s", 4}};
  other.dims = {{"b", 5}, {"s", 7}};
  const onnx::ModelProto file = Export(In(), one, {other});
  EXPECT_EQ(Shapes(file)["wq"], (std::vector<int64_t>{6, 12}));
}

TEST_F(PrunedExport, WritesTrainedContents) {
  const PruneCase& c = PruneCases()[0];
  models::WriteFile(In(), models::Bytes(PruneModel(c, Width::kWide)));
  const auto imported = models::ImportOnnx(In(), {});
  ASSERT_TRUE(imported.ok());
  const Graph pruned = Halved(imported->graph).graph;
  const std::vector<float> bias = {1, 2, 3, 4};
  const std::map<std::string, models::Tensor> trained = {
      {"b1", models::MakeTensor({models::DType::kF32, {4}}, bias.data())}};
  ASSERT_TRUE(models::ExportPruned(In(), {}, pruned, trained, Out()).ok());
  const auto read = models::ImportOnnx(Out(), {});
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->graph.value(*read->graph.Find("b1")).initial->as<float>(),
              ::testing::ElementsAreArray(bias));
}

// The import computes in f32; the file stays in f16, and has what f16 can hold.
TEST_F(PrunedExport, KeepsTheFloatTypeOfTheFile) {
  onnx::ModelProto half = PruneModel(PruneCases()[0], Width::kWide);
  for (onnx::TensorProto& tensor :
       *half.mutable_graph()->mutable_initializer()) {
    int64_t budget_bytes = 1 << 20;
    const auto read =
        models::onnx_internal::ReadTensor(tensor, "", &budget_bytes);
    ASSERT_TRUE(read.ok());
    const auto narrow =
        models::onnx_internal::FromF32(*read, models::DType::kF16);
    ASSERT_TRUE(narrow.ok()) << narrow.status();
    tensor.set_data_type(onnx::TensorProto::FLOAT16);
    models::onnx_internal::WriteTensor(*narrow, &tensor);
  }
  const auto set_type = [](onnx::ValueInfoProto* info) {
    info->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::FLOAT16);
  };
  set_type(half.mutable_graph()->mutable_input(0));
  set_type(half.mutable_graph()->mutable_output(0));
  models::WriteFile(In(), models::Bytes(half));
  const auto imported = models::ImportOnnx(In(), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Graph pruned = Halved(imported->graph).graph;
  const std::vector<float> bias = {1, 1 + 1e-5f, 3, 4};
  const absl::Status status = models::ExportPruned(
      In(), {}, pruned,
      {{"b1", models::MakeTensor({models::DType::kF32, {4}}, bias.data())}},
      Out());
  ASSERT_TRUE(status.ok()) << status;
  const auto file = models::onnx_internal::ReadModelFile(Out(), 1 << 20);
  ASSERT_TRUE(file.ok());
  for (const auto& tensor : file->graph().initializer()) {
    EXPECT_EQ(tensor.data_type(), onnx::TensorProto::FLOAT16);
  }
  const auto read = models::ImportOnnx(Out(), {});
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->graph.value(*read->graph.Find("b1")).initial->as<float>(),
              ::testing::ElementsAre(1, 1, 3, 4));
}

TEST_F(PrunedExport, RefusesWhatDoesNotBelongTogether) {
  const PruneCase& c = PruneCases()[0];
  models::WriteFile(In(), models::Bytes(PruneModel(c, Width::kWide)));
  const auto imported = models::ImportOnnx(In(), {});
  ASSERT_TRUE(imported.ok());
  const auto expect = [&](const Graph& pruned,
                          std::map<std::string, models::Tensor> trained,
                          absl::StatusCode code, const std::string& says) {
    const absl::Status status =
        models::ExportPruned(In(), {}, pruned, std::move(trained), Out());
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says));
    EXPECT_FALSE(std::filesystem::exists(Out()));
  };
  const Graph pruned = Halved(imported->graph).graph;
  const models::Tensor four = models::ZeroTensor({models::DType::kF32, {8}});
  expect(pruned, {{"b1", four}}, absl::StatusCode::kInvalidArgument,
         "'b1' is f32[8], not f32[4]");
  expect(pruned, {{"b9", four}}, absl::StatusCode::kInvalidArgument, "'b9'");
  expect(Graph{}, {}, absl::StatusCode::kInvalidArgument, "not made of");
  // A change that no rule knows: the file would compute something else.
  Graph changed = pruned;
  for (models::Node& node : changed.nodes) {
    if (node.op == "Relu") node.op = "Tanh";
  }
  expect(changed, {}, absl::StatusCode::kUnimplemented,
         "is Relu {} instead of Tanh");
  // Before training that shows already.
  EXPECT_TRUE(models::CheckPrunedExport(In(), {}, pruned).ok());
  EXPECT_EQ(models::CheckPrunedExport(In(), {}, changed).code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace loadline::conformance
