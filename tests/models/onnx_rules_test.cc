// One small model per rule: ONNX's various forms become one form of the Graph.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Graph Import(const std::string& body, const ImportOptions& options = {},
             int opset = 22) {
  absl::StatusOr<Imported> imported = ImportText(body, options, opset);
  EXPECT_TRUE(imported.ok()) << body << "\n" << imported.status();
  return imported.ok() ? std::move(imported->graph) : Graph{};
}

std::string ErrorOf(const std::string& body, int opset = 22) {
  const auto imported = ImportText(body, {}, opset);
  EXPECT_FALSE(imported.ok());
  return std::string(imported.status().message());
}

std::string OutputType(const Graph& graph) {
  return graph.outputs.empty() ? ""
                               : graph.value(graph.outputs[0]).type.ToString();
}

TEST(ImportRules, ReshapesOfEveryKindBecomeReshape) {
  for (const char* call :
       {"y = Flatten(x)", "y = Flatten<axis=-2>(x)",
        "s = Constant<value_ints=[0,-1]>() y = Reshape(x, s)",
        "s = Constant<value_ints=[2,12]>() y = Reshape(x, s)"}) {
    const Graph g = Import(
        std::string("g (float[2,3,4] x) => (float[a,b] y) {") + call + "}");
    ASSERT_THAT(Ops(g), ElementsAre("Reshape")) << call;
  }
  const Graph g = Import(
      "g (float[2,1,4] x) => (float[a,b,c] y) {"
      " s = Constant<value_ints=[1]>() u = Squeeze(x, s)"
      " t = Constant<value_ints=[-1]>() y = Unsqueeze(u, t) }");
  EXPECT_THAT(Ops(g), ElementsAre("Reshape", "Reshape"));
  EXPECT_EQ(OutputType(g), "f32[2,4,1]");
}

TEST(ImportRules, WhatChangesNothingDisappears) {
  const Graph g = Import(
      "g (float[2,3] x) => (float[2,3] y) {"
      " a = Identity(x) s = Constant<value_ints=[2,3]>() b = Reshape(a, s)"
      " c = Transpose<perm=[0,1]>(b) d = Cast<to=1>(c) e = Expand(d, s)"
      " y = Relu(e) }");
  EXPECT_THAT(Ops(g), ElementsAre("Relu"));
}

TEST(ImportRules, ShapeArithmeticLeavesNoTrace) {
  ImportOptions options;
  options.dims["N"] = 6;
  const Graph g = Import(
      "g (float[N,4] x) => (float[a,b,c] y) {"
      " s = Shape(x) zero = Constant<value_int=0>()"
      " n = Gather<axis=0>(s, zero) two = Constant<value_int=2>()"
      " h = Div(n, two) ax = Constant<value_ints=[0]>()"
      " hu = Unsqueeze(h, ax) rest = Constant<value_ints=[2,-1]>()"
      " t = Concat<axis=0>(hu, rest) y = Reshape(x, t) }",
      options);
  EXPECT_THAT(Ops(g), ElementsAre("Reshape"));
  EXPECT_EQ(OutputType(g), "f32[3,2,4]");
  EXPECT_THAT(Names(g, ValueKind::kConstant), ElementsAre());
}

TEST(ImportRules, SplitTakesSizesEqualPartsAndSequences) {
  const std::string head = "g (float[2,7] x) => (float[2,n] y) {";
  for (const char* call :
       {"s = Constant<value_ints=[3,3,1]>() y, b, c = Split<axis=1>(x, s) }",
        "y, b, c = Split<axis=-1, num_outputs=3>(x) }",
        "s = Constant<value_int=3>() q = SplitToSequence<axis=1>(x, s)"
        " i = Constant<value_int=-3>() y = SequenceAt(q, i) }"}) {
    const Graph g = Import(head + call);
    const Node& split = NodeWith(g, "Split");
    EXPECT_THAT(split.attributes.IntList("sizes"), ElementsAre(3, 3, 1));
    EXPECT_EQ(split.attributes.Int("axis", -1), 1);
    EXPECT_EQ(OutputType(g), "f32[2,3]");
  }
}

TEST(ImportRules, SliceIsNormalized) {
  const Graph g = Import(
      "g (float[5,8] x) => (float[a,b] y) {"
      " s = Constant<value_ints=[-3,1]>()"
      " e = Constant<value_ints=[9223372036854775807,-1]>()"
      " a = Constant<value_ints=[1,-2]>() p = Constant<value_ints=[2,1]>()"
      " y = Slice(x, s, e, a, p) }");
  const Attributes& attributes = NodeWith(g, "Slice").attributes;
  EXPECT_THAT(attributes.IntList("starts"), ElementsAre(5, 1));
  EXPECT_THAT(attributes.IntList("ends"), ElementsAre(8, 4));
  EXPECT_THAT(attributes.IntList("axes"), ElementsAre(1, 0));
  EXPECT_EQ(OutputType(g), "f32[3,2]");
}

// Of the batch too: PyTorch writes x[:, :, None] with slices of all.
TEST(ImportRules, SliceOfAllIsNoNode) {
  const Graph g = Import(
      "g (float[2,5] x, float[5] w) => (float[2,5] y) {"
      " s = Constant<value_ints=[0]>() e = Constant<value_ints="
      "[9223372036854775807]>() a = Constant<value_ints=[0]>()"
      " b = Constant<value_ints=[1]>() v = Slice(x, s, e, a)"
      " u = Slice(v, s, e, b) y = Mul(u, w) }");
  EXPECT_THAT(Ops(g), ElementsAre("Mul"));
}

TEST(ImportRules, SliceWithANegativeStepIsAGather) {
  const Graph g = Import(
      "g (float[5,8] x) => (float[a,b] y) {"
      " s = Constant<value_ints=[-1,3]>() e = Constant<value_ints=[-9,8]>()"
      " a = Constant<value_ints=[0,1]>() p = Constant<value_ints=[-2,1]>()"
      " y = Slice(x, s, e, a, p) }");
  EXPECT_THAT(Ops(g), ElementsAre("Gather", "Slice"));
  EXPECT_THAT(g.value(NodeWith(g, "Gather").inputs[1]).initial->as<int64_t>(),
              ElementsAre(4, 2, 0));
  EXPECT_THAT(NodeWith(g, "Slice").attributes.IntList("axes"), ElementsAre(1));
  EXPECT_EQ(OutputType(g), "f32[3,5]");
}

TEST(ImportRules, EinsumIsAMatrixProduct) {
  const Graph g = Import(
      "g (float[2,3,4] a, float[2,4,5] b) => (float[x,y,z] y) {"
      " y = Einsum<equation=\"bij,bjk->bik\">(a, b) }");
  EXPECT_THAT(Ops(g), ElementsAre("MatMul"));
  EXPECT_THAT(ErrorOf("g (float[2,3] a) => (float[x,y] y) {"
                      " [bad] y = Einsum<equation=\"ij->ii\">(a) }"),
              HasSubstr("bad"));
}

// The checker counts inputs, and lets each be empty.
// torch's newer exporter writes zeros of shape [C, 2] for the missing bias of a
// 3-d convolution.
TEST(ImportRules, ABiasOfZerosIsNone) {
  const auto imported = ImportText(
      "g (float[1,1,3,3,3] x) => (float[1,2,2,2,2] y)"
      " <float[2,1,2,2,2] w = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}> {"
      " n = Constant<value_ints=[2,2]>() b = ConstantOfShape(n)"
      " y = Conv(x, w, b) }");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(NodeWith(imported->graph, "Conv").inputs.size(), 2u);
}

TEST(ImportRules, EmptyInputsAreErrors) {
  const std::string head =
      "g (float[2,2] x, int64[2,2] i) => (float[a,b] y) { [bad] y = ";
  for (const char* call :
       {"Einsum<equation=\"i,ij->i\">(, x)",
        "Einsum<equation=\"ij,i->i\">(x, )", "GatherElements(x, )",
        "GatherND(, i)", "ScatterND(x, i, )", "GridSample(x, )", "TopK(x, )",
        "ArgMax()", "CumSum(, i)", "GroupNormalization<num_groups=1>(x, , x)",
        "Pow(x, )", "Mod(, i)", "DepthToSpace<blocksize=2>()", "OneHot(i, i, )",
        "Concat<axis=0>(, x)"}) {
    EXPECT_NE(ErrorOf(head + call + " }"), "") << call;
  }
}

TEST(ImportRules, BlocksAndNormsHaveLimits) {
  EXPECT_THAT(ErrorOf("g (float[1,1,0,0] x) => (float[a,b,c,d] y) {"
                      " [bad] y = SpaceToDepth<blocksize=4294967296>(x) }"),
              HasSubstr("its blocks do not divide the image"));
  EXPECT_THAT(ErrorOf("g (float[2,2] x) => (float[a,b] y) {"
                      " [bad] y = LpNormalization<p=3>(x) }"),
              HasSubstr("p is 3, not 1 or 2"));
}

// Indices that are known become positions at import.
TEST(ImportRules, IndicesBecomeFlatPositions) {
  const Graph g = Import(
      "g (float[2,3] x) => (float[a,b] y) <int64[2,1] i = {2, -3}> {"
      " y = GatherElements<axis=1>(x, i) }");
  EXPECT_THAT(Ops(g), ElementsAre("Reshape", "Gather"));
  EXPECT_THAT(g.value(NodeWith(g, "Gather").inputs[1]).initial->as<int64_t>(),
              ElementsAre(2, 3));
  EXPECT_THAT(ErrorOf("g (float[2,3] x, float[1,3] u) => (float[a,b] y)"
                      " <int64[1,1] i = {2}> { [bad]"
                      " y = ScatterND(x, i, u) }"),
              HasSubstr("node 'bad' (ScatterND): index 2 on an axis of 2"));
  EXPECT_THAT(ErrorOf("g (float[2,3] x, float[1,3] u) => (float[a,b] y)"
                      " <int64[1,1] i = {0}> { [bad]"
                      " y = ScatterND<reduction=\"last\">(x, i, u) }"),
              HasSubstr("ScatterND (with reduction last) x1: bad"));
}

TEST(ImportRules, ConstantGatherIndicesAreMadePositive) {
  const Graph g = Import(
      "g (float[5,2] x) => (float[a,b] y) {"
      " i = Constant<value_ints=[-1,0]>() y = Gather(x, i) }");
  const Node& gather = NodeWith(g, "Gather");
  EXPECT_THAT(g.value(gather.inputs[1]).initial->as<int64_t>(),
              ElementsAre(4, 0));
  EXPECT_THAT(ErrorOf("g (float[5,2] x) => (float[a,b] y) {"
                      " i = Constant<value_ints=[5]>() [bad]"
                      " y = Gather(x, i) }"),
              HasSubstr("node 'bad' (Gather): index 5 on an axis of 5"));
}

// In double 0.7f * 10 is below 7, 0.9f * 10 below 9 and 2.3f * 10 below 23.
TEST(ImportRules, ResizeMultipliesSizesInFloat) {
  for (const auto& [scale, size] : std::vector<std::pair<std::string, int64_t>>{
           {"0.7", 7}, {"0.9", 9}, {"2.3", 23}, {"0.3", 3}, {"1.1", 11}}) {
    const auto imported = ImportText(
        "g (float[1,1,10] x) => (float[a,b,c] y) { r = Constant<value_floats="
        "[1.0,1.0," +
        scale + "]>() y = Resize<mode=\"linear\">(x,,r) }");
    ASSERT_TRUE(imported.ok()) << imported.status();
    const Graph& g = imported->graph;
    EXPECT_EQ(g.value(g.outputs[0]).type.dims[2], size) << scale;
  }
}

TEST(ImportRules, VersionsThatConversionWouldChangeAreUnsupported) {
  for (const auto& [node, opset, why] :
       std::vector<std::tuple<std::string, int, std::string>>{
           {"y = GroupNormalization<num_groups=1>(x, r, r)", 18,
            "GroupNormalization (before opset 21) x1: old"},
           {"y = Hardmax(x)", 12, "Hardmax (before opset 13) x1: old"},
           {"y = Pad<paddings=[0,1,0,0]>(x)", 1,
            "Pad (before opset 11) x1: old"},
           // What r is, the file does not say.
           {"y = Resize<mode=\"nearest\">(x, r)", 10,
            "Resize (before opset 11) x1: old"},
           {"c = Constant<value = float[2] {1.0, 0.5}>()"
            " [small] y = Resize<mode=\"nearest\">(x, c)",
            10, "Resize (before opset 11) x1: small"},
           {"y = Upsample<width_scale=2.0, height_scale=1.0>(x)", 1,
            "Upsample (before opset 11) x1: old"}}) {
    onnx::ModelProto model = ModelFromText(
        "g (float[2,3] x, float[2] r) => (float[a,b] y) { [old] " + node +
        " }");
    model.mutable_opset_import(0)->set_version(opset);
    const auto imported = ImportOnnxBytes(Bytes(model), {});
    EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
    EXPECT_THAT(std::string(imported.status().message()), HasSubstr(why));
  }
}

TEST(ImportRules, OperatorsOnTypesTheyLackAreUnsupported) {
  for (const auto& [node, why] :
       std::vector<std::pair<std::string, std::string>>{
           {"y = Pow(i, i)", "Pow (on i64) x1: odd"},
           {"y = Pow(i, x)", "Pow (on i64) x1: odd"},
           {"y = Relu(i)", "Relu (on i64) x1: odd"},
           {"y = MatMul(i, i)", "MatMul (on i64) x1: odd"}}) {
    const auto imported =
        ImportText("g (float[2,2] x, int64[2,2] i) => (int64[a,b] y) { [odd] " +
                   node + " }");
    EXPECT_TRUE(IsUnsupported(imported.status())) << imported.status();
    EXPECT_THAT(std::string(imported.status().message()), HasSubstr(why));
  }
}

TEST(ImportRules, FourierTransformsNameWhatTheyCannot) {
  const std::string x = "g (float[1,8,1] x) => (float[a,b,c] y) ";
  EXPECT_THAT(ErrorOf(x + "{ n = Constant<value_int=900000>()"
                          " [f] y = DFT(x, n) }"),
              HasSubstr("DFT (of so many elements) x1: f"));
  EXPECT_THAT(ErrorOf(x + "{ n = Constant<value_int=0>() [f] y = DFT(x, n) }"),
              HasSubstr("node 'f' (DFT): transforms 8 numbers into a"));
  EXPECT_THAT(ErrorOf("g (float[1,8,1] x, float[4] w) => (float[a,b,c,d] y) {"
                      " s = Constant<value_int=2>()"
                      " [f] y = STFT(x, s, w) }"),
              HasSubstr("STFT (with a window that is computed or trained)"));
  EXPECT_THAT(ErrorOf("g (float[1,8,1] x) => (float[a,b,c,d] y) {"
                      " s = Constant<value_int=2>()"
                      " n = Constant<value_int=9>()"
                      " [f] y = STFT(x, s, , n) }"),
              HasSubstr("cuts frames of 9 every 2 from a signal of 8"));
}

TEST(ImportRules, PadResizeAndConvTransposeNameWhatTheyCannot) {
  const std::string x = "g (float[1,2,4,4] x) => (float[a,b,c,d] y) ";
  EXPECT_THAT(ErrorOf(x + "{ r = Constant<value_floats=[1.0,1.0,2.0,2.0]>()"
                          " [up] y = Resize<coordinate_transformation_mode="
                          "\"tf_crop_and_resize\">(x,,r) }"),
              HasSubstr("Resize (with tf_crop_and_resize) x1: up"));
  EXPECT_THAT(ErrorOf(x + "{ r = Constant<value_floats=[1.0,1.0,1.0e9,1.0]>()"
                          " [up] y = Resize(x,,r) }"),
              HasSubstr("node 'up' (Resize): holds the absurd scale 1e+09"));
  EXPECT_THAT(ErrorOf(x + "{ p = Constant<value_ints=[0,0,-3,0,0,0,-2,0]>()"
                          " [pad] y = Pad(x, p) }"),
              HasSubstr("pads -3 and -2 on an axis of 4"));
  const std::string weight = "<float[2,1,1,1] w = {1, 2}> ";
  EXPECT_THAT(
      ErrorOf(x + weight +
              "{ [t] y = ConvTranspose<output_padding=[1,0]>(x, w) }"),
      HasSubstr("node 't' (ConvTranspose): output_padding 1 is not below"));
  EXPECT_THAT(ErrorOf(x + weight +
                      "{ [t] y = ConvTranspose<output_shape=[9,4]>(x, w) }"),
              HasSubstr("no pads make 9 elements of 4, nor does an "
                        "output_padding below the stride 1"));
}

TEST(ImportRules, PadsOfNothingDisappear) {
  const Graph g = Import(
      "g (float[2,3] x) => (float[2,3] y) {"
      " p = Constant<value_ints=[0,0,0,0]>() a = Pad(x, p) y = Relu(a) }");
  EXPECT_THAT(Ops(g), ElementsAre("Relu"));
}

TEST(ImportRules, AutoPadIsResolved) {
  // Width 5, stride 2: 3 outputs need (3-1)*2 + 3 - 5 = 2 pads: 1 and 1.
  // Kernel 2: (3-1)*2 + 2 - 5 = 1 pad, at the end or at the beginning.
  const Graph upper = Import(
      "g (float[1,1,5,5] x) => (float[a,b,c,d] y) {"
      " y = MaxPool<kernel_shape=[2,3], strides=[2,2],"
      " auto_pad=\"SAME_UPPER\">(x) }");
  EXPECT_THAT(NodeWith(upper, "MaxPool").attributes.IntList("pads"),
              ElementsAre(0, 1, 1, 1));
  const Graph lower = Import(
      "g (float[1,1,5,5] x) => (float[a,b,c,d] y)"
      " <float[1,1,2,3] w = {1,2,3,4,5,6}> {"
      " y = Conv<strides=[2,2], auto_pad=\"SAME_LOWER\">(x, w) }");
  const Attributes& conv = NodeWith(lower, "Conv").attributes;
  EXPECT_THAT(conv.IntList("pads"), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(conv.IntList("kernel_shape"), ElementsAre(2, 3));
  EXPECT_EQ(OutputType(lower), "f32[1,1,3,3]");
}

// Where ONNX Runtime does not do what ONNX says, a trained model would compute
// something else there.
TEST(ImportRules, WarnsWhereOnnxRuntimeMakesOtherShapes) {
  const std::string x =
      "g (float[1,1,7,8] x) => (float[a,b,c,d] y)"
      " <float[1,1,2,2] w = {1,2,3,4}, int64[2] s = {9,9}> ";
  for (const auto& [node, type, warning] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"MaxPool<kernel_shape=[2,3], strides=[2,2], dilations=[2,2],"
            " auto_pad=\"SAME_LOWER\">(x)",
            "f32[1,1,4,4]", "node 'n' (MaxPool): its output is its input"},
           {"AveragePool<kernel_shape=[2,3], strides=[2,2], dilations=[1,2],"
            " auto_pad=\"SAME_UPPER\">(x)",
            "f32[1,1,4,4]", "node 'n' (AveragePool): its output is its input"},
           {"Resize<mode=\"linear\", axes=[-1,2],"
            " keep_aspect_ratio_policy=\"not_larger\">(x,,,s)",
            "f32[1,1,8,9]", "node 'n' (Resize): ONNX Runtime does not resize"},
           {"Resize<mode=\"linear\", axes=[-1,2]>(x,,,s)", "f32[1,1,9,9]", ""},
           {"ConvTranspose<strides=[2,2], auto_pad=\"SAME_LOWER\">(x, w)",
            "f32[1,1,14,16]", ""},
           {"MaxPool<kernel_shape=[2,3], dilations=[2,2]>(x)", "f32[1,1,5,4]",
            ""}}) {
    const auto imported = ImportText(x + "{ [n] y = " + node + " }");
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(OutputType(imported->graph), type) << node;
    std::string warnings;
    for (const std::string& text : imported->warnings) warnings += text;
    if (warning.empty()) {
      EXPECT_THAT(warnings, Not(HasSubstr("ONNX Runtime"))) << node;
    } else {
      EXPECT_THAT(warnings, HasSubstr(warning)) << node;
    }
  }
}

TEST(ImportRules, RefusesATransposedConvolutionOfTwoSizes) {
  EXPECT_THAT(ErrorOf("g (float[1,1,7,8] x) => (float[a,b,c,d] y)"
                      " <float[1,1,2,2] w = {1,2,3,4}> { [n] y = ConvTranspose"
                      "<strides=[2,3], auto_pad=\"SAME_LOWER\">(x, w) }"),
              HasSubstr("give differently: write output_shape) x1: n"));
}

// The onnx library's converter needs the shapes of what nodes make.
TEST(ImportRules, BroadcastsBeforeOpset7AreConvertedWithoutDeclaredShapes) {
  const Graph g = Import(
      "g (float[3,4] x) => (float[a,b] y) <float[4] w = {1,2,3,4}> {"
      " a = Clip<min=-0.5>(x) b = Add<broadcast=1>(a, w) y = Mul(b, a) }",
      {}, 6);
  EXPECT_THAT(Ops(g), ElementsAre("Clip", "Add", "Mul"));
  EXPECT_EQ(OutputType(g), "f32[3,4]");
}

TEST(ImportRules, OldOpsetsAreConverted) {
  // In older opsets axes and split sizes were attributes.
  const Graph g = Import(
      "g (float[2,6,1] x) => (float[a] y) {"
      " u = Squeeze<axes=[2]>(x) b, c = Split<axis=1, split=[2,4]>(u)"
      " y = ReduceMean<axes=[1], keepdims=0>(c) }",
      {}, 11);
  EXPECT_THAT(Ops(g), ElementsAre("Reshape", "Split", "ReduceMean"));
  EXPECT_EQ(OutputType(g), "f32[2]");
  EXPECT_THAT(NodeWith(g, "Split").attributes.IntList("sizes"),
              ElementsAre(2, 4));
}

TEST(ImportRules, CompositeOperatorsTakeSmallInitializers) {
  EXPECT_FALSE(Import("g (float[2,4] x) => (float[a,b] y)"
                      " <float[4] weight = {1,1,1,1}> {"
                      " y = RMSNormalization<axis=-1>(x, weight) }",
                      {}, 23)
                   .nodes.empty());
  EXPECT_FALSE(Import("g (float[1,1,2,2] x) => (float[a,b,c,d] y)"
                      " <float[1,1,2,2] key = {1,2,3,4}> {"
                      " y = Attention(x, key, key) }",
                      {}, 23)
                   .nodes.empty());
}

TEST(ImportRules, CompositeOperatorsMayLeaveInputsOut) {
  EXPECT_FALSE(Import("g (float[1,1,2,2] q, float[1,1,2,2] p)"
                      " => (float[a,b,c,d] y) {"
                      " y, k, v = Attention(q, q, q, , p, p) }",
                      {}, 23)
                   .nodes.empty());
}

TEST(ImportRules, ClipKeepsItsBoundsAsAttributes) {
  const Graph g = Import(
      "g (float[2,3] x) => (float[a,b] y) <float low = {-1}, float high = {6}> "
      "{"
      " u = Clip(x, low) y = Clip(u, low, high) }");
  EXPECT_THAT(Ops(g), ElementsAre("Clip", "Clip"));
  EXPECT_EQ(g.nodes[0].attributes.Float("min", 0), -1);
  EXPECT_GT(g.nodes[0].attributes.Float("max", 0), 1e38);
  EXPECT_EQ(g.nodes[1].attributes.Float("max", 0), 6);
}

TEST(ImportRules, ClipOfAShapeIsFolded) {
  const Graph g = Import(
      "g (float[2,3] x) => (float[a,b] y) {"
      " s = Shape(x) one = Constant<value = int64 {1}>()"
      " two = Constant<value = int64 {2}>() c = Clip(s, one, two)"
      " zeros = Constant<value_ints=[0,0]>() y = Slice(x, zeros, c) }");
  EXPECT_EQ(OutputType(g), "f32[2,2]");
}

TEST(ImportRules, IsInfLooksForTheSignsThatCount) {
  const std::string head = "g (float[2] x) => (bool[2] y) { y = IsInf";
  EXPECT_THAT(Ops(Import(head + "(x) }")), ElementsAre("Equal", "Equal", "Or"));
  const Graph one = Import(head + "<detect_negative=0>(x) }");
  EXPECT_THAT(Ops(one), ElementsAre("Equal"));
  EXPECT_GT(one.value(one.nodes[0].inputs[1]).initial->as<float>()[0], 0);
}

TEST(ImportRules, XorIsLogic) {
  EXPECT_THAT(
      Ops(Import("g (bool[2] a, bool[2] b) => (bool[2] y) { y = Xor(a, b) }")),
      ElementsAre("Or", "And", "Not", "And"));
}

TEST(ImportRules, ClipToBoundsOfTheDataIsMaxAndMin) {
  EXPECT_THAT(Ops(Import("g (float[2,3] x, float low) => (float[a,b] y) {"
                         " y = Clip(x, low) }")),
              ElementsAre("Max"));
}

TEST(ImportRules, CompositeOperatorsAreWrittenOut) {
  for (const char* call :
       {"y = HardSwish(x)", "y = LeakyRelu<alpha=0.1>(x)", "y = Elu(x)",
        "y = Softplus(x)", "y = Selu(x)", "y = HardSigmoid(x)",
        "y = ReduceL2(x)", "y = Mish(x)",
        "a = Constant<value_float=0.0>() b = Constant<value_float=6.0>()"
        " y = Clip(x, a, b)",
        "y = Max(x, x, x)", "y = Min(x, x)", "y = Sum(x, x, x)"}) {
    const Graph g = Import(std::string("g (float[2,3] x) => (float[a,b] y) {") +
                           call + "}");
    EXPECT_FALSE(g.nodes.empty()) << call;
  }
}

TEST(ImportRules, DropoutObeysAnExplicitFalse) {
  const std::string head =
      "g (float[2,3] x) => (float[2,3] y) {"
      " r = Constant<value_float=0.25>()";
  EXPECT_THAT(Ops(Import(head + " t = Constant<value = bool {0}>()"
                                " d = Dropout(x, r, t) y = Relu(d) }")),
              ElementsAre("Relu"));
  EXPECT_THAT(Ops(Import(head + " t = Constant<value = bool {1}>()"
                                " d = Dropout(x, r, t) y = Relu(d) }")),
              ElementsAre("Dropout", "Relu"));
}

TEST(ImportRules, EqualConstantsAreOneValue) {
  const Graph g = Import(
      "g (float[2] x) => (float[2] y) {"
      " a = Constant<value_float=2.0>() b = Constant<value_float=2.0>()"
      " u = Mul(x, a) y = Mul(u, b) }");
  EXPECT_EQ(Names(g, ValueKind::kConstant).size(), 1u);
}

TEST(ImportRules, ASharedBatchNormalizationChainsItsStatistics) {
  const Graph g = Import(
      "g (float[4,2] x) => (float[4,2] y)"
      " <float[2] s = {1,1}, float[2] b = {0,0},"
      "  float[2] m = {0,0}, float[2] v = {1,1}> {"
      " u, m1, v1 = BatchNormalization<training_mode=1>(x, s, b, m, v)"
      " y, m2, v2 = BatchNormalization<training_mode=1>(u, s, b, m, v) }");
  ASSERT_EQ(g.updates.size(), 2u);
  std::vector<const Node*> updates;
  for (const Node& node : g.nodes) {
    if (node.op == "RunningStatsUpdate") updates.push_back(&node);
  }
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[1]->inputs[0], updates[0]->outputs[0]);
  EXPECT_EQ(g.updates[0].second, updates[1]->outputs[0]);
}

TEST(ImportRules, DataDependentShapesAreUnsupported) {
  const auto imported = ImportText(
      "g (float[2,3] x, int64[2] s) => (float[a,b] y) {"
      " [r] y = Reshape(x, s) }");
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("node 'r' (Reshape): input 1 must be known"));
}

}  // namespace
}  // namespace loadline::models
