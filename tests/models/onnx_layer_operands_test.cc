// FindLayerOperands on the forms in which exporters write layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/layer_operands.h"
#include "models/onnx/model_file.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models::onnx_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "name: op" of each operand; computed ones end with " (computed)".
std::vector<std::string> Operands(const std::string& body) {
  const onnx::ModelProto model = ModelFromText(body);
  std::map<std::string, Tensor> initializers;
  int64_t budget_bytes = 1 << 20;
  for (const auto& proto : model.graph().initializer()) {
    auto tensor = ReadTensor(proto, "", &budget_bytes);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    if (tensor.ok()) initializers[proto.name()] = *std::move(tensor);
  }
  std::vector<std::string> lines;
  for (const auto& [name, operand] :
       FindLayerOperands(model.graph(), initializers)) {
    lines.push_back(absl::StrCat(
        name, ": ", operand.op,
        operand.form == OperandForm::kComputed ? " (computed)" : ""));
  }
  return lines;
}

TEST(FindLayerOperands, FollowsMovedElements) {
  EXPECT_THAT(Operands("g (float[2,3] x) => (float[2,2] y)"
                       " <float[2,3] weight = {1,2,3,4,5,6}> {"
                       " t = Transpose<perm = [1,0]>(weight)"
                       " y = MatMul(x, t) }"),
              ElementsAre("weight: MatMul"));
}

TEST(FindLayerOperands, SaysWhatAWeightIsComputedFrom) {
  EXPECT_THAT(Operands("g (float[2,2] x) => (float[2,2] y)"
                       " <float[2,2] a = {1,2,3,4}, float[2,2] b = {1,2,3,4}> {"
                       " p = MatMul(a, b) y = MatMul(x, p) }"),
              ElementsAre("a: MatMul (computed)", "b: MatMul (computed)"));
}

TEST(FindLayerOperands, OneVectorIsTheBiasOfAProduct) {
  EXPECT_THAT(Operands("g (float[2,2] x) => (float[2,2] y)"
                       " <float[2,2] w = {1,2,3,4}, float[2] first = {1,2},"
                       "  float[2] second = {1,2}> {"
                       " p = MatMul(x, w) q = Add(first, p)"
                       " y = Add(q, second) }"),
              ElementsAre("first: bias of a product", "w: MatMul"));
  EXPECT_THAT(Operands("g (float[2,2] x) => (float[2,2] y)"
                       " <float[2,2] w = {1,2,3,4}, float[2] b = {1,2},"
                       "  float[2] more = {1,2}> {"
                       " p = Gemm(x, w, b) y = Add(p, more) }"),
              ElementsAre("b: Gemm", "w: Gemm"));
}

TEST(FindLayerOperands, OneNumberIsTheBiasOfAProductWithOneOutput) {
  const auto operands = [](const std::vector<int64_t>& dims,
                           const std::string& body) {
    const int64_t elements = std::accumulate(
        dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
    const std::vector<int> ones(static_cast<size_t>(elements), 1);
    return Operands(absl::StrCat(
        "g (float[2,3] x) => (float y) <float[", absl::StrJoin(dims, ","),
        "] w = {", absl::StrJoin(ones, ","),
        "}, float[1] b = {1}, float eps = {1}> {", body, "}"));
  };
  const std::string product = " p = MatMul(x, w) y = Add(p, b) ";
  EXPECT_THAT(operands({3, 1}, product),
              ElementsAre("b: bias of a product", "w: MatMul"));
  EXPECT_THAT(operands({3}, product),
              ElementsAre("b: bias of a product", "w: MatMul"));
  EXPECT_THAT(operands({1, 3}, " p = Gemm<transB = 1>(x, w) y = Add(b, p) "),
              ElementsAre("b: bias of a product", "w: Gemm"));
  EXPECT_THAT(operands({1, 3},
                       " t = Transpose<perm = [1,0]>(w) p = MatMul(x, t) "
                       " s = Squeeze(p) y = Add(s, b) "),
              ElementsAre("b: bias of a product", "w: MatMul"));
  EXPECT_THAT(operands({1, 2}, " p = MatMul(w, x) y = Add(p, b) "),
              ElementsAre("b: bias of a product", "w: MatMul"));
  EXPECT_THAT(operands({1, 3, 1, 1}, " p = Conv(x, w) y = Add(p, b) "),
              ElementsAre("b: bias of a product", "w: Conv"));
  // Several outputs, a number without an axis, and a second number.
  EXPECT_THAT(operands({3, 2}, product), ElementsAre("w: MatMul"));
  EXPECT_THAT(operands({3, 1}, " p = Gemm<transB = 1>(x, w) y = Add(p, b) "),
              ElementsAre("w: Gemm"));
  EXPECT_THAT(operands({2, 3, 1, 1}, " p = Conv(x, w) y = Add(p, b) "),
              ElementsAre("w: Conv"));
  EXPECT_THAT(operands({3, 1}, " p = MatMul(x, w) y = Add(p, eps) "),
              ElementsAre("w: MatMul"));
  EXPECT_THAT(
      operands({3, 1}, " p = MatMul(x, w) q = Add(p, eps) y = Add(q, b) "),
      ElementsAre("w: MatMul"));
}

TEST(FindLayerOperands, KnowsAWrittenOutRmsNorm) {
  EXPECT_THAT(Operands("g (float[2,2] x) => (float[2,2] y)"
                       " <float[2] scale = {1,2}, float[2] other = {1,2},"
                       "  float two = {2}, float eps = {0.1}> {"
                       " s = Pow(x, two) m = ReduceMean<keepdims = 1>(s)"
                       " e = CastLike(eps, x) v = Add(m, e) r = Sqrt(v)"
                       " i = Reciprocal(r)"
                       " n = Mul(x, i) a = Mul(scale, n) y = Mul(a, other) }"),
              ElementsAre("scale: scale of a normalization"));
}

TEST(FindLayerOperands, KnowsTheNormalizationOfTensorFlow) {
  EXPECT_THAT(
      Operands("g (float[2,4] x) => (float[2,4] y)"
               " <float[4] gamma = {1,2,3,4}, float[2,2] table = {1,2,3,4},"
               "  float[4] beta = {1,2,3,4}, float eps = {0.1}> {"
               " m = ReduceMean<keepdims = 1>(x) n = Neg(m)"
               " d = Sub(x, m) s = Mul(d, d)"
               " v = ReduceMean<keepdims = 1>(s) e = Add(v, eps)"
               " r = Sqrt(e) i = Reciprocal(r) f = Mul(i, gamma)"
               " a = Mul(x, f) b = Mul(n, f) c = Add(b, beta)"
               " y = Add(a, c) }"),
      ElementsAre("beta: bias of a normalization",
                  "gamma: scale of a normalization"));
}

TEST(FindLayerOperands, AVectorMayScaleAProductBeforeItsBias) {
  EXPECT_THAT(Operands("g (float[2,2] x) => (float[2,2] y)"
                       " <float[2,2] w = {1,2,3,4}, float[2] scale = {1,2},"
                       "  float[2] shift = {1,2}, float[2] more = {1,2}> {"
                       " p = MatMul(x, w) q = Mul(p, scale) r = Add(q, shift)"
                       " y = Mul(r, more) }"),
              ElementsAre("scale: scale of a product",
                          "shift: bias of a scaled product", "w: MatMul"));
}

TEST(FindLayerOperands, LooksIntoLoopsAndBranches) {
  // The loop hands on `kept` and changes `h`; it reads `outside` around it.
  EXPECT_THAT(
      Operands("g (float[2,2] x, bool more) => (float[2,2] y)"
               " <int64 turns = {3}, float[2,2] w = {1,2,3,4},"
               "  float[2,2] u = {1,2,3,4}, float[2,2] outside = {1,2,3,4},"
               "  float[2] b = {1,2}> {"
               " y, last, same = Loop(turns, more, x, u, w) <body = body"
               "   (int64 i, bool c, float[2,2] h, float[2,2] changed,"
               "    float[2,2] kept)"
               "   => (bool d, float[2,2] next, float[2,2] other,"
               "       float[2,2] handed) {"
               "   d = Identity(c) p = MatMul(h, kept) q = Add(p, b)"
               "   r = MatMul(q, changed) next = MatMul(r, outside)"
               "   other = Mul(changed, changed) handed = Identity(kept) }> }"),
      ElementsAre("b: bias of a product", "outside: MatMul", "w: MatMul"));
  EXPECT_THAT(Operands("g (float[2,2] x, bool which) => (float[2,2] y)"
                       " <float[2,2] w = {1,2,3,4}, float[2,2] v = {1,2,3,4}> {"
                       " y = If(which) <then_branch = a () => (float[2,2] p) {"
                       "   p = MatMul(x, w) }, else_branch = b () =>"
                       "   (float[2,2] q) { q = MatMul(x, v) }> }"),
              ElementsAre("v: MatMul", "w: MatMul"));
}

TEST(FindLayerOperands, KnowsGroupNormOnInstanceNormalization) {
  EXPECT_THAT(
      Operands("g (float[1,4,2] x) => (float[1,4,2] y)"
               " <float[4,1] gamma = {1,2,3,4}, float[4,1] beta = {1,2,3,4},"
               "  int64[3] in = {1,2,4}, int64[3] out = {1,4,2}> {"
               " one = Constant<value = float[2] {1,1}>()"
               " zero = Constant<value = float[2] {0,0}>()"
               " g = Reshape(x, in) n = InstanceNormalization(g, one, zero)"
               " r = Reshape(n, out) s = Mul(r, gamma) y = Add(s, beta) }"),
      ElementsAre("beta: bias of a normalization",
                  "gamma: scale of a normalization"));
}

TEST(FindLayerOperands, AnAttentionScaleIsNoNormalization) {
  EXPECT_THAT(Operands("g (float[2,2] x) => (float[2,2] y)"
                       " <float four = {4}, float[2] table = {1,2}> {"
                       " r = Sqrt(four) s = Div(x, r) y = Mul(s, table) }"),
              IsEmpty());
}

TEST(FindLayerOperands, PositionsReadATableToo) {
  EXPECT_THAT(Operands("g (float[2,2] x) => (float[2,2] y)"
                       " <float[3,2] rows = {1,2,3,4,5,6},"
                       "  int64[2] positions = {0,1}> {"
                       " a = Gather(rows, positions) y = Add(x, a) }"),
              ElementsAre("rows: Gather"));
}

TEST(FindLayerOperands, TablesThatDataIndexAreEmbeddings) {
  EXPECT_THAT(Operands("g (int64[2] i) => (float[2,2] y)"
                       " <float[3,2] rows = {1,2,3,4,5,6},"
                       "  float[3] schedule = {1,2,3}> {"
                       " a = Gather(rows, i) b = Gather(schedule, i)"
                       " y = Mul(a, b) }"),
              ElementsAre("rows: Gather"));
}

}  // namespace
}  // namespace loadline::models::onnx_internal
