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

  // As the model that is read, with weights of the shapes in `body`.
  void WriteModel(const std::string& body) const {
    const PruneCase c{"", body, {}, {}};
    models::WriteFile(In(), models::Bytes(PruneModel(c, Width::kWide)));
  }

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
  WriteModel(body);
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
  WriteModel(body);
  ImportOptions one, other;
  one.dims = {{"b", 2}, {"s", 4}};
  other.dims = {{"b", 5}, {"s", 7}};
  const onnx::ModelProto file = Export(In(), one, {other});
  EXPECT_EQ(Shapes(file)["wq"], (std::vector<int64_t>{6, 12}));
}

// Numbers that the file computes out of the batch and of widths together: the
// older exporter's attention, whose scale and shapes are read off a tensor.
TEST_F(PrunedExport, FoldsWhatTheFileComputesFromPrunedSizes) {
  const std::string body =
      "g (float[b,s,6] x, float[6,16] w1, float[16,24] wq, float[24,5] wo)"
      "  => (float[b,s,5] y)"
      " <int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64 heads = {4},"
      "  int64 zero = {0}, float half = {0.5}, int64[1] first = {0},"
      "  int64[1] last = {-1}, int64[1] one = {1}> {"
      " h = MatMul(x, w1)"
      " hshape = Shape(h)"
      " width = Gather(hshape, i2)"
      " wide = Cast<to=1>(width)"
      " scale = Pow(wide, half)"
      " scaled = Div(h, scale)"
      " q0 = MatMul(scaled, wq)"
      " qshape = Shape(q0)"
      " batch = Gather(qshape, i0)"
      " length = Gather(qshape, i1)"
      " all = Gather(qshape, i2)"
      " size = Div(all, heads)"
      " many = Mul(batch, heads)"
      " b1 = Unsqueeze(batch, first)"
      " l1 = Unsqueeze(length, first)"
      " h1 = Unsqueeze(heads, first)"
      " s1 = Unsqueeze(size, first)"
      " m1 = Unsqueeze(many, first)"
      " split = Concat<axis=0>(b1, l1, h1, s1)"
      " merged = Concat<axis=0>(m1, l1, s1)"
      " back = Concat<axis=0>(b1, h1, l1, s1)"
      " q1 = Reshape(q0, split)"
      " q2 = Transpose<perm=[0,2,1,3]>(q1)"
      " q = Reshape(q2, merged)"
      " k = Transpose<perm=[0,2,1]>(q)"
      " a = MatMul(q, k)"
      " p = Softmax<axis=-1>(a)"
      " o = MatMul(p, q)"
      " t = Reshape(o, back)"
      " u = Transpose<perm=[0,2,1,3]>(t)"
      " a1 = Unsqueeze(all, first)"
      " flat = Concat<axis=0>(b1, l1, a1)"
      " v = Reshape(u, flat)"
      " y = MatMul(v, wo) }";
  WriteModel(body);
  ImportOptions one, other;
  one.dims = {{"b", 2}, {"s", 3}};
  other.dims = {{"b", 5}, {"s", 7}};
  const onnx::ModelProto file = Export(In(), one, {other});
  EXPECT_EQ(Shapes(file)["w1"], (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(Shapes(file)["wq"], (std::vector<int64_t>{8, 12}));
}

// The middle of a Slice is computed from the width of its input, whose halves
// lose the same number of channels or none.
TEST_F(PrunedExport, KeepsTheBoundsOfASliceThatTheFileComputes) {
  const std::string body =
      "g (float[b,6] x, float[6,8] w1, float[6,8] w2, float[8,8] w3,"
      "   float[8,5] wo)"
      "  => (float[b,5] y)"
      " <int64 i1 = {1}, int64[1] first = {0}, int64[1] one = {1},"
      "  int64 two = {2}, int64[1] end = {1000}> {"
      " h = MatMul(x, w1)"
      " g = MatMul(x, w2)"
      " r = Relu(g)"
      " joined = Concat<axis=1>(h, r)"
      " shape = Shape(joined)"
      " width = Gather(shape, i1)"
      " half = Div(width, two)"
      " middle = Unsqueeze(half, first)"
      " left = Slice(joined, first, middle, one)"
      " right = Slice(joined, middle, end, one)"
      " m = MatMul(right, w3)"
      " sum = Add(left, m)"
      " y = MatMul(sum, wo) }";
  WriteModel(body);
  ImportOptions two, three;
  two.dims = {{"b", 2}};
  three.dims = {{"b", 3}};
  // Only the right half shrinks: the middle stays where it was.
  const auto imported = models::ImportOnnx(In(), two);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto groups = passes::FindPruneGroups(imported->graph);
  ASSERT_TRUE(groups.ok());
  std::vector<std::vector<int64_t>> removed;
  for (const passes::PruneGroup& group : *groups) {
    removed.emplace_back();
    if (group.frozen.empty() && group.name == "r") removed.back() = {0, 1};
    if (group.frozen.empty() && group.name == "g") removed.back() = {0, 1};
  }
  const auto pruned = passes::PruneGraph(imported->graph, *groups, removed);
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  const absl::Status status =
      models::ExportPruned(In(), two, pruned->graph, {}, Out());
  EXPECT_TRUE(status.ok()) << status;
  const auto small = models::ImportOnnx(Out(), three);
  ASSERT_TRUE(small.ok()) << small.status();
  const auto id = small->graph.Find("w2");
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(small->graph.value(*id).type.dims, (std::vector<int64_t>{6, 6}));
}

// Zeros for every head and example, which a bias of positions would be added
// to.
TEST_F(PrunedExport, ShortensAnOperandThatDependsOnTheBatch) {
  const std::string body =
      "g (float[b,6] x, float[6,8] w1, float[8,5] wo) => (float[b,5] y)"
      " <int64[1] width = {8}, int64[1] first = {0}, int64[1] one = {1}> {"
      " h = MatMul(x, w1)"
      " shape = Shape(x)"
      " batch = Slice(shape, first, one)"
      " dims = Concat<axis=0>(batch, width)"
      " ones = ConstantOfShape<value = float[1] {1.0}>(dims)"
      " sum = Add(h, ones)"
      " y = MatMul(sum, wo) }";
  WriteModel(body);
  ImportOptions two, three;
  two.dims = {{"b", 2}};
  three.dims = {{"b", 3}};
  const onnx::ModelProto file = Export(In(), two, {three});
  EXPECT_EQ(Shapes(file)["w1"], (std::vector<int64_t>{6, 4}));
}

// nn.Dropout(inplace=True) as the newer exporter writes it at a fixed batch.
TEST_F(PrunedExport, ShortensAMaskThatIsDrawnInAFixedShape) {
  const std::string body =
      "g (float[4,6] x, float[6,8] w1, float[8,5] wo) => (float[4,5] y)"
      " <float p = {0.75}> {"
      " h = MatMul(x, w1)"
      " like = Constant<value = float[4,8] {"
      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}>()"
      " drawn = RandomUniformLike<high=1.0, low=0.0>(like)"
      " kept = Less(drawn, p)"
      " mask = Cast<to=1>(kept)"
      " scaled = Div(mask, p)"
      " dropped = Mul(h, scaled)"
      " y = MatMul(dropped, wo) }";
  WriteModel(body);
  const onnx::ModelProto file = Export(In(), {});
  EXPECT_EQ(Shapes(file)["w1"], (std::vector<int64_t>{6, 4}));
}

// What the newer exporter says of its initializers: without it the added one
// would be a constant when the file is read again.
TEST_F(PrunedExport, KeepsTheMarksOfParameters) {
  const std::string body =
      "g (float[4,6] x, float[6,8] w1, float[4,8] val_7, float[8,5] wo)"
      "  => (float[4,5] y) {"
      " h = MatMul(x, w1)"
      " s = Add(h, val_7)"
      " y = MatMul(s, wo) }";
  PruneCase c{"", body, {}, {}};
  onnx::ModelProto model = PruneModel(c, Width::kWide);
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    onnx::ValueInfoProto* info = model.mutable_graph()->add_value_info();
    info->set_name(tensor.name());
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(tensor.data_type());
    for (int64_t dim : tensor.dims()) {
      type->mutable_shape()->add_dim()->set_dim_value(dim);
    }
    auto* mark = info->add_metadata_props();
    mark->set_key("pkg.torch.export.graph_signature.InputSpec.kind");
    mark->set_value("PARAMETER");
  }
  models::WriteFile(In(), models::Bytes(model));
  const onnx::ModelProto file = Export(In(), {});
  EXPECT_EQ(Shapes(file)["val_7"], (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(file.graph().value_info_size(), 3);
}

// GatherElements reads columns by their position, so that the file cannot say
// that others are left.
TEST_F(PrunedExport, NamesTheNodeThatRefusesAndTheLayerToExclude) {
  const std::string body =
      "g (float[4,6] x, int64[4,1] xi, float[6,8] w1, float[6,8] w2,"
      "   float[8,5] wo) => (float[4,5] y) <int64[2] shape = {4, 8}> {"
      " h = MatMul(x, w1)"
      " e = Expand(xi, shape)"
      " g = GatherElements<axis=0>(h, e)"
      " z = MatMul(x, w2)"
      " s = Mul(g, z)"
      " y = MatMul(s, wo) }";
  WriteModel(body);
  const auto imported = models::ImportOnnx(In(), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const absl::Status status =
      models::ExportPruned(In(), {}, Halved(imported->graph).graph, {}, Out());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'g'"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("exclude_op_names: [\"z\""));
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
