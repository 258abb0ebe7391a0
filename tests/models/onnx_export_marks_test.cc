// Marks as torch 2.15 writes them, and what they decide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/differentiate.h"
#include "models/onnx/export_marks.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kKind[] = "pkg.torch.export.graph_signature.InputSpec.kind";

template <typename Proto>
void Write(Proto* proto, const std::string& key, const std::string& value) {
  auto* entry = proto->add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}

// The call of PyTorch, such as "amax.default](args = (%x, [1])", from which the
// newer exporter made the first node.
void WriteCall(onnx::ModelProto* model, const std::string& call) {
  Write(
      model->mutable_graph()->mutable_node(0), "pkg.torch.onnx.fx_node",
      absl::StrCat("%y : [num_users=1] = call_function[target=torch.ops.aten.",
                   call, ", kwargs = {})"));
}

void WriteAt(onnx::GraphProto* graph, const std::string& name,
             const std::string& key, const std::string& value) {
  auto* info = graph->add_value_info();
  info->set_name(name);
  info->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  Write(info, key, value);
}

// A module with a buffer and a parameter in the same places.
onnx::ModelProto Model() {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,2] x) => (float[2,2] y)"
      " <float[2] a = {1,2}, float[2,2] p = {1,2,3,4}, float[2] c = {3,4},"
      "  float[2,2] val_1 = {1,2,3,4}> {"
      " t = Mul(x, a) u = MatMul(t, p) v = Add(u, c) y = MatMul(v, val_1) }");
  Write(model.mutable_graph(),
        "pkg.torch.export.ExportedProgram.graph_signature",
        "\n# inputs\np_a: PARAMETER target='a'\n"
        "p_fc_weight: PARAMETER target='fc.weight'\n"
        "b_p: BUFFER target='p' persistent=True\n"
        "b_c: BUFFER target='c' persistent=True\n"
        "x: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
  auto* graph = model.mutable_graph();
  WriteAt(graph, "a", kKind, "PARAMETER");
  WriteAt(graph, "p", kKind, "BUFFER");
  WriteAt(graph, "c", kKind, "BUFFER");
  WriteAt(graph, "val_1", "pkg.onnxscript.optimizer.folded_from",
          "['fc.weight']");
  return model;
}

TEST(ExportMarks, NoGradientFlowsThroughWhatWasDetached) {
  for (const bool marked : {true, false}) {
    onnx::ModelProto model = ModelFromText(
        "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {"
        " t = MatMul(x, w) u = Identity(t) y = Mul(t, u) }");
    if (marked) {
      Write(model.mutable_graph()->mutable_node(1), "pkg.torch.onnx.fx_node",
            "%detach : [num_users=1] = "
            "call_function[target=torch.ops.aten.detach.default]"
            "(args = (%mm,), kwargs = {})");
    }
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Graph& graph = imported->graph;
    ASSERT_EQ(graph.nodes.size(), marked ? 3u : 2u);
    if (!marked) continue;
    const std::vector<bool> active =
        ActiveValues(graph, {*graph.Find("w")}, {});
    EXPECT_TRUE(active[Index(graph.nodes[0].outputs[0])]);
    EXPECT_FALSE(active[Index(graph.nodes[1].outputs[0])]);
    EXPECT_TRUE(active[Index(graph.outputs[0])]);
  }
}

TEST(ExportMarks, SayWhichRowOfAnEmbeddingGetsNoGradient) {
  // padding_idx, as the exporter writes it, and the row; -1: none.
  const std::pair<const char*, int64_t> cases[] = {
      {", 2), kwargs = {})", 2},
      {", 0, False, False), kwargs = {})", 0},
      {", -1, True), kwargs = {})", -1},
      {"), kwargs = {})", -1}};
  for (const auto& [written, row] : cases) {
    onnx::ModelProto model = ModelFromText(
        "g (int64[2] i) => (float[2,2] y) "
        "<float[3,2] table = {1,2,3,4,5,6}> { y = Gather(table, i) }");
    Write(model.mutable_graph()->mutable_node(0), "pkg.torch.onnx.fx_node",
          absl::StrCat("%embedding : [num_users=1] = "
                       "call_function[target=torch.ops.aten.embedding.default]"
                       "(args = (%p_table, %i",
                       written));
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->graph.nodes[0].attributes.Int("padding_row", -1), row)
        << written;
  }
}

// At a bound, PyTorch's gradient is 0 for a number and half for a tensor.
TEST(ExportMarks, ClampsBetweenNumbersAreClips) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"Max", "%x, %scalar_tensor_default", "Clip"},
      {"Max", "%x, %scalar_tensor_default_3, %upper", "Clip"},
      {"Max", "%x, %lower, %scalar_tensor_default", "Max"},
      {"Min", "%x, None, %scalar_tensor_default", "Clip"},
      {"Min", "%x, %scalar_tensor_default, %upper", "Min"}};
  for (const auto& [op, arguments, expected] : cases) {
    onnx::ModelProto model = ModelFromText(absl::StrCat(
        "g (float[2] x) => (float[2] y) <float bound = {1.0}> { y = ", op,
        "(x, bound) }"));
    WriteCall(&model, absl::StrCat("clamp.Tensor](args = (", arguments, ")"));
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Node& node = imported->graph.nodes[0];
    EXPECT_EQ(node.op, expected) << arguments;
    if (node.op != "Clip") continue;
    EXPECT_EQ(
        node.attributes.Float(op == std::string("Max") ? "min" : "max", 0),
        1.0);
  }
}

TEST(ExportMarks, MaxOverADimensionGivesItsGradientToTheFirstOfEqualElements) {
  const std::tuple<const char*, const char*, int64_t> cases[] = {
      {"ReduceMax", "max.dim](args = (%x, 1)", 1},
      {"ReduceMin", "min.dim](args = (%x, 1, True)", 1},
      {"ReduceMax", "amax.default](args = (%x, [1])", 0},
      {"ReduceMax", "max.default](args = (%x,)", 0}};
  for (const auto& [op, call, expected] : cases) {
    onnx::ModelProto model = ModelFromText(
        absl::StrCat("g (float[2,3] x) => (float[2,1] y) <int64[1] axes = {1}>"
                     " { y = ",
                     op, "(x, axes) }"));
    WriteCall(&model, call);
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Node& node = imported->graph.nodes[0];
    EXPECT_EQ(node.op, op);
    EXPECT_EQ(node.attributes.Int("first", 0), expected) << call;
  }
}

// The older exporter writes no padding_idx.
TEST(ExportMarks, TakeTheOnlyRowOfZerosForPadding) {
  struct Case {
    const char* producer;
    const char* table;
    int64_t row;
  };
  for (const Case& c :
       {Case{"pytorch", "1,2,3,4,0,0", 2}, Case{"pytorch", "1,2,0,0,0,0", -1},
        Case{"pytorch", "1,2,0,4,5,6", -1}, Case{"", "1,2,3,4,0,0", -1}}) {
    onnx::ModelProto model = ModelFromText(
        absl::StrCat("g (int64[2] i) => (float[2,2] y) <float[3,2] table = {",
                     c.table, "}> { y = Gather(table, i) }"));
    model.set_producer_name(c.producer);
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->graph.nodes[0].attributes.Int("padding_row", -1),
              c.row);
    EXPECT_EQ(absl::StrContains(absl::StrJoin(imported->warnings, " "),
                                "row 2 of table is all zeros"),
              c.row == 2);
  }
}

TEST(ExportMarks, WarnOfLabelSmoothingThatIsLeftOut) {
  for (const char* smoothing : {", 1, -100, 0.1", ", 1, -100, 0.0", ""}) {
    onnx::ModelProto model = ModelFromText(
        "g (float[2,3] x, int64[2] t) => (float y) {"
        " y = SoftmaxCrossEntropyLoss(x, t) }");
    Write(model.mutable_graph()->mutable_node(0), "pkg.torch.onnx.fx_node",
          absl::StrCat("%cross_entropy_loss : [num_users=1] = call_function["
                       "target=torch.ops.aten.cross_entropy_loss.default]"
                       "(args = (%x, %t, None",
                       smoothing, "), kwargs = {})"));
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    if (absl::string_view(smoothing) == ", 1, -100, 0.1") {
      ASSERT_FALSE(imported->warnings.empty());
      EXPECT_THAT(imported->warnings[0], HasSubstr("label_smoothing=0.1"));
    } else {
      EXPECT_THAT(imported->warnings, IsEmpty());
    }
  }
}

TEST(ExportMarks, WarnOfDivisorsAndMeansThatAreLeftOut) {
  const auto warnings = [](const std::string& body, const std::string& call) {
    onnx::ModelProto model = ModelFromText(body);
    for (auto& node : *model.mutable_graph()->mutable_node()) {
      Write(&node, "pkg.torch.onnx.fx_node",
            "%y : [num_users=1] = call_function[target=torch.ops.aten." + call +
                ", kwargs = {})");
    }
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? imported->warnings : std::vector<std::string>();
  };
  const std::string pool =
      "g (float[1,1,4,4] x) => (float[1,1,2,2] y) {"
      " y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(x) }";
  const std::string pool_call =
      "avg_pool2d.default](args = (%x, [2, 2], [2, 2], [0, 0], False, True";
  EXPECT_THAT(warnings(pool, pool_call + ", 3)"),
              ElementsAre(HasSubstr("of 'y': divisor_override=3;")));
  EXPECT_THAT(warnings(pool, pool_call + ")"), IsEmpty());
  const std::string scatter =
      "g (float[2,3] x, int64[2,3] i, float[2,3] u) => (float[2,3] y) {"
      " a = ScatterElements<axis=1>(x, i, u)"
      " y = ScatterElements<axis=1>(a, i, u) }";
  const std::string scatter_call =
      "scatter_reduce.two](args = (%x, 1, %i, %u, ";
  EXPECT_THAT(warnings(scatter, scatter_call + "mean)"),
              ElementsAre(HasSubstr("reduce='mean'")));
  EXPECT_THAT(warnings(scatter, scatter_call + "sum)"), IsEmpty());
}

TEST(ExportMarks, WarnOfBuffersThatForwardChanges) {
  onnx::ModelProto model = ModelFromText(
      "g (float[2,2] x) => (float[2,2] y)"
      " <float[2,2] w = {1,2,3,4}, float[2] book = {1,2}, float[2] scale = "
      "{1,1}, float[2] bias = {0,0}, float[2] mean = {0,0}, float[2] var = "
      "{1,1}, float[2] half = {1,1}> {"
      " u = MatMul(x, w) m = Cast<to=1>(mean)"
      " n = BatchNormalization(u, scale, bias, m, var)"
      " v = Add(n, book) y = Mul(v, half) }");
  const auto left_out = [&] {
    return onnx_internal::ReadExportMarks(model.graph()).left_out;
  };
  EXPECT_THAT(left_out(), IsEmpty());
  Write(model.mutable_graph(),
        "pkg.torch.export.ExportedProgram.graph_signature",
        "\n# inputs\np_w: PARAMETER target='w'\n"
        "b_book: BUFFER target='book' persistent=True\n"
        "x: USER_INPUT\n\n# outputs\n"
        "add: BUFFER_MUTATION target='book'\n"
        "add_1: BUFFER_MUTATION target='mean'\n"
        "add_2: BUFFER_MUTATION target='var'\n"
        "add_3: BUFFER_MUTATION target='count'\n"
        "add_4: BUFFER_MUTATION target='gone'\n"
        "y: USER_OUTPUT\n");
  EXPECT_THAT(left_out(), ElementsAre(HasSubstr("changes book in its")));
  WriteAt(model.mutable_graph(), "half", "pkg.onnxscript.optimizer.folded_from",
          "['count']");
  EXPECT_THAT(left_out(), ElementsAre(HasSubstr("changes book, count in its")));
}

// Its shapes do not fit, of which the user can learn nothing.
TEST(ExportMarks, NameAnLstmWithProjections) {
  onnx::ModelProto model = ModelFromText(
      "g (float[3,2,4] x) => (float[3,1,2,6] y) {"
      " w = ConstantOfShape(s) r = ConstantOfShape(t)"
      " [lstm] y = LSTM<hidden_size=6>(x, w, r) }");
  for (const auto& [name, last] :
       std::vector<std::pair<std::string, int64_t>>{{"s", 4}, {"t", 3}}) {
    onnx::TensorProto* shape = model.mutable_graph()->add_initializer();
    shape->set_name(name);
    shape->set_data_type(onnx::TensorProto::INT64);
    shape->add_dims(3);
    for (const int64_t dim : {int64_t{1}, int64_t{24}, last}) {
      shape->add_int64_data(dim);
    }
  }
  Write(model.mutable_graph(),
        "pkg.torch.export.ExportedProgram.graph_signature",
        "\n# inputs\np_r_w: PARAMETER target='r.weight_hr_l0'\n");
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
  EXPECT_THAT(
      std::string(imported.status().message()),
      HasSubstr(
          "LSTM (with proj_size, which ONNX's LSTM does not have) x1: lstm"));
}

TEST(ExportMarks, DecideAgainstUseAndName) {
  const auto imported = ImportOnnxBytes(Bytes(Model()), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Names(imported->graph, ValueKind::kParameter),
              ElementsAre("a", "val_1"));
  EXPECT_THAT(imported->warnings, IsEmpty());
}

TEST(ExportMarks, WarnOfAParameterThatIsComputedBeforehand) {
  onnx::ModelProto model = Model();
  auto* info = model.mutable_graph()->mutable_value_info(3);
  info->mutable_metadata_props(0)->set_value("['fc.weight', 'a', 'val_0']");
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->warnings,
              ElementsAre(HasSubstr("computed 'val_1' from fc.weight, a, ")));
}

// Of one tensor that is a weight of a layer afterwards: a masked or scaled one.
TEST(ExportMarks, WarnOfAWeightThatIsComputedBeforehand) {
  for (const char* sources : {"['fc.weight', 'p']", "['fc.weight', 'exp']"}) {
    onnx::ModelProto model = Model();
    auto* info = model.mutable_graph()->mutable_value_info(3);
    info->mutable_metadata_props(0)->set_value(sources);
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(imported->warnings,
                ElementsAre(HasSubstr("computed 'val_1' from fc.weight, and")));
  }
}

TEST(ExportMarks, WarnOfTensorsMergedWithAParameter) {
  onnx::ModelProto model = Model();
  auto* graph = model.mutable_graph();
  // The node reads the buffer b in PyTorch, and the parameter a in the file.
  auto* signature = graph->mutable_metadata_props(0)->mutable_value();
  signature->insert(signature->find("x: USER"), "b_b: BUFFER target='b'\n");
  Write(graph->mutable_node(0), "pkg.torch.onnx.fx_node",
        "%t : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor]"
        "(args = (%x, %b_b), kwargs = {})");
  EXPECT_THAT(onnx_internal::ReadExportMarks(*graph).merged, ElementsAre("b"));
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->warnings,
              ElementsAre(AllOf(HasSubstr("merged"), HasSubstr(": b;"))));
}

TEST(ExportMarks, WarnOfOperatorsThatWereRewritten) {
  onnx::ModelProto model = Model();
  auto* graph = model.mutable_graph();
  auto* signature = graph->mutable_metadata_props(0)->mutable_value();
  signature->insert(signature->find("x: USER"),
                    "p_bn: PARAMETER target='bn.weight'\n");
  auto* node = graph->mutable_node(0);
  Write(node, "pkg.torch.onnx.fx_node", "%t = batch_norm(%conv, %p_bn)");
  Write(node, "pkg.onnxscript.rewriter.rule_name", "FuseBatchNormIntoConv");
  EXPECT_THAT(onnx_internal::ReadExportMarks(*graph).merged, IsEmpty());
  const auto imported = ImportOnnxBytes(Bytes(model), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->warnings,
              ElementsAre(AllOf(HasSubstr("rewrote"), HasSubstr("bn.weight"))));
}

TEST(ExportMarks, ANodeThatReadsItsOwnParameterWarnsOfNothing) {
  onnx::ModelProto model = Model();
  auto* graph = model.mutable_graph();
  auto* signature = graph->mutable_metadata_props(0)->mutable_value();
  signature->insert(signature->find("x: USER"), "b_b: BUFFER target='b'\n");
  Write(graph->mutable_node(0), "pkg.torch.onnx.fx_node",
        "%t : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor]"
        "(args = (%x, %p_a, %b_b2), kwargs = {})");
  EXPECT_THAT(onnx_internal::ReadExportMarks(*graph).merged, IsEmpty());
}

}  // namespace
}  // namespace loadline::models
