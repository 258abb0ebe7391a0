// ONNX's tests of Gradient, which are models of several nodes and so not among
// its node tests (onnx/backend/test/case/model/gradient.py), with the numbers
// that it expects; and gradients and masks by differences and definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/conformance/interpreter.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::executor {
namespace {

using Numbers = std::vector<std::vector<float>>;

// The outputs for these inputs; no outputs after an error, which fails the
// test.
Numbers Outputs(const std::string& body, const Numbers& inputs, int opset = 22,
                const StepScalars& scalars = {}) {
  onnx::ModelProto model = models::ModelFromText(body, opset);
  auto* import = model.add_opset_import();
  import->set_domain("ai.onnx.preview.training");
  import->set_version(1);
  const auto imported = models::ImportOnnxBytes(models::Bytes(model), {});
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return {};
  auto interpreter = Interpreter::Make(imported->graph);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  if (!interpreter.ok()) return {};
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::copy(
        inputs[i].begin(), inputs[i].end(),
        (*interpreter)->Contents<float>(imported->graph.inputs[i]).begin());
  }
  EXPECT_TRUE((*interpreter)->Run(scalars).ok());
  Numbers outputs;
  for (models::ValueId id : imported->graph.outputs) {
    const auto contents = (*interpreter)->Contents<float>(id);
    outputs.emplace_back(contents.begin(), contents.end());
  }
  return outputs;
}

TEST(OnnxGradientTests, OfAdd) {
  EXPECT_EQ(Outputs("g (float a, float b) => (float c, float da, float db) {"
                    " c = Add(a, b) da, db = ai.onnx.preview.training.Gradient"
                    "<xs=[\"a\",\"b\"], y=\"c\">(a, b) }",
                    {{1}, {2}}, 12),
            (Numbers{{3}, {1}, {1}}));
}

TEST(OnnxGradientTests, OfAddAndMul) {
  EXPECT_EQ(Outputs("g (float a, float b) => (float d, float da, float db) {"
                    " c = Add(a, b) d = Mul(c, a)"
                    " da, db = ai.onnx.preview.training.Gradient"
                    "<xs=[\"a\",\"b\"], y=\"d\">(a, b) }",
                    {{1}, {2}}, 12),
            (Numbers{{3}, {4}, {1}}));
}

// With operators whose meaning opset 12 still had in an attribute.
TEST(OnnxGradientTests, AgreesWithDifferencesInAnOlderOpset) {
  const std::string body =
      "g (float[2,3] x, float[3,2] w) => (float loss, float[3,2] dw) {"
      " h = MatMul(x, w) s = Softmax<axis=1>(h) q = Mul(s, s)"
      " loss = ReduceSum<axes=[0,1], keepdims=0>(q)"
      " dw = ai.onnx.preview.training.Gradient<xs=[\"w\"], y=\"loss\">(w) }";
  const std::vector<float> x = {0.5, -1, 2, 1, 0.25, -0.5};
  const std::vector<float> w = {0.1, -0.2, 0.4, 0.3, -0.6, 0.2};
  const Numbers at = Outputs(body, {x, w}, 12);
  ASSERT_EQ(at.size(), 2u);
  for (size_t i = 0; i < w.size(); ++i) {
    constexpr float kStep = 1e-2;
    std::vector<float> above = w, below = w;
    above[i] += kStep;
    below[i] -= kStep;
    const float slope = (Outputs(body, {x, above}, 12)[0][0] -
                         Outputs(body, {x, below}, 12)[0][0]) /
                        (2 * kStep);
    EXPECT_NEAR(at[1][i], slope, 2e-4);
  }
}

// The losses of ONNX, which are written out by its functions, with every
// reduction, weights and an ignored target.
TEST(OnnxGradientTests, OfWeightedLossesAgreeWithDifferences) {
  const std::vector<float> x = {0.5, -1, 2, 1, 0.25, -0.5, 3, 0, -2, 1, 1, 0};
  for (const char* loss : {"SoftmaxCrossEntropyLoss",
                           "LogSoftmax<axis=1>(x) z = NegativeLogLikelihood"
                           "Loss"}) {
    for (const char* reduction : {"mean", "sum", "none"}) {
      const std::string op(loss);
      const bool nll = op[0] == 'L';
      const std::string body =
          std::string(
              "g (float[4,3] x) => (float y, float[4,3] dx) {"
              " t = Constant<value_ints=[2,0,-1,1]>()"
              " w = Constant<value_floats=[0.5,2.0,0.25]>() ") +
          (nll ? "l = " : "z = ") + op + "<reduction=\"" + reduction +
          "\", ignore_index=-1>(" + (nll ? "l" : "x") +
          ", t, w) q = Mul(z, z) y = ReduceSum<keepdims=0>(q)"
          " dx = ai.onnx.preview.training.Gradient<xs=[\"x\"], y=\"y\">(x)"
          " }";
      const Numbers at = Outputs(body, {x});
      ASSERT_EQ(at.size(), 2u) << body;
      for (size_t i = 0; i < x.size(); ++i) {
        constexpr float kStep = 1e-2;
        std::vector<float> above = x, below = x;
        above[i] += kStep;
        below[i] -= kStep;
        const float slope =
            (Outputs(body, {above})[0][0] - Outputs(body, {below})[0][0]) /
            (2 * kStep);
        EXPECT_NEAR(at[1][i], slope, 2e-3 * (1 + std::abs(slope)))
            << body << " " << i;
        // The ignored example.
        if (i / 3 == 2) {
          EXPECT_EQ(at[1][i], 0.0f) << body;
        }
      }
    }
  }
}

// It is linear in x, so differences are slopes but for rounding.
TEST(OnnxGradientTests, OfRotaryEmbeddingAgreeWithDifferences) {
  const std::string positions =
      " p = Constant<value_ints=[1,0]>()"
      " s = Constant<value_ints=[1,2]>()"
      " i = Reshape(p, s)";
  // Of two tokens and two heads of four numbers; caches of two positions.
  for (const std::string& form : std::vector<std::string>{
           positions + " z = RotaryEmbedding(x, c, n, i)",
           positions + " z = RotaryEmbedding<interleaved=1>(x, c, n, i)",
           " s3 = Constant<value_ints=[1,2,2]>() c3 = Reshape(c, s3)"
           " n3 = Reshape(n, s3) z = RotaryEmbedding(x, c3, n3)",
           " s3 = Constant<value_ints=[1,2,8]>() x3 = Reshape(x, s3)" +
               positions + " z = RotaryEmbedding<num_heads=2>(x3, c, n, i)"}) {
    const std::string body =
        "g (float[1,2,2,4] x) => (float y, float[1,2,2,4] dx) {"
        " cf = Constant<value_floats=[0.5,0.25,-0.75,1.0]>()"
        " nf = Constant<value_floats=[0.875,0.125,-0.5,0.0]>()"
        " s2 = Constant<value_ints=[2,2]>()"
        " c = Reshape(cf, s2) n = Reshape(nf, s2)" +
        form +
        " q = Mul(z, z) y = ReduceSum<keepdims=0>(q)"
        " dx = ai.onnx.preview.training.Gradient<xs=[\"x\"], y=\"y\">(x) }";
    std::vector<float> x(16);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>((i * 7) % 16) / 8 - 1;
    }
    const Numbers at = Outputs(body, {x}, 23);
    ASSERT_EQ(at.size(), 2u) << body;
    for (size_t i = 0; i < x.size(); ++i) {
      constexpr float kStep = 1.0f / 64;
      std::vector<float> above = x, below = x;
      above[i] += kStep;
      below[i] -= kStep;
      const float slope = (Outputs(body, {above}, 23)[0][0] -
                           Outputs(body, {below}, 23)[0][0]) /
                          (2 * kStep);
      EXPECT_NEAR(at[1][i], slope, 1e-4) << form << " " << i;
    }
  }
}

// As ONNX defines the operator: a step from its own gradient.
TEST(OnnxGradientTests, FeedAnOptimizer) {
  const Numbers out = Outputs(
      "g (float r, float[1] x, float[1] v) => (float[1] a, float[1] b) {"
      " y = Mul(x, x) t = Constant<value_int=0>()"
      " d = ai.onnx.preview.training.Gradient<xs=[\"x\"], y=\"y\">(x)"
      " a, b = ai.onnx.preview.training.Momentum<alpha=0.5, beta=0.25,"
      " mode=\"standard\", norm_coefficient=0.0>(r, t, x, d, v) }",
      {{0.5}, {3}, {4}});
  EXPECT_EQ(out, (Numbers{{3 - 0.5f * (0.5f * 4 + 6)}, {0.5f * 4 + 6}}));
}

// y = ScatterElements of u to x, with the gradients of the sum of y.
Numbers Scattered(const std::string& reduction, const std::string& positions,
                  const std::vector<float>& x, const std::vector<float>& u) {
  const std::string n = std::to_string(x.size());
  const std::string m = std::to_string(u.size());
  return Outputs("g (float[" + n + "] x, float[" + m + "] u) => (float[" + n +
                     "] y, float[" + n + "] dx, float[" + m +
                     "] du) { i = Constant<value_ints=[" + positions +
                     "]>() y = ScatterElements<reduction=\"" + reduction +
                     "\">(x, i, u) s = ReduceSum<keepdims=0>(y) dx, du = "
                     "ai.onnx.preview.training.Gradient<xs=[\"x\",\"u\"], "
                     "y=\"s\">(x, u) }",
                 {x, u});
}

// As torch.scatter_reduce has them.
TEST(OnnxGradientTests, OfScatteredExtremesAreSharedByTies) {
  constexpr float kThird = 1.0f / 3;
  EXPECT_EQ(
      Scattered("max", "1,1,0,2,0", {1, 2, 0, 7}, {2, 2, 5, 0, 4}),
      (Numbers{
          {5, 2, 0, 7}, {0, kThird, 0.5, 1}, {kThird, kThird, 1, 0.5, 0}}));
  EXPECT_EQ(Scattered("min", "-1,0,0", {1, 2}, {3, 1, 0}),
            (Numbers{{0, 2}, {0, 1}, {0, 0, 1}}));
}

TEST(OnnxGradientTests, OfScatteredProductsWithZeros) {
  EXPECT_EQ(Scattered("mul", "1,1,2,2,3", {0, 2, 3, 0}, {0, 4, 0, 0, 5}),
            (Numbers{{0, 0, 0, 0}, {1, 0, 0, 5}, {8, 0, 0, 0, 0}}));
}

TEST(OnnxDropout, MaskIsThatOfTheOutput) {
  const std::vector<float> x(1003, 2.0f);
  StepScalars scalars;
  scalars.step = 3;
  scalars.seed = 11;
  const Numbers out = Outputs(
      "g (float[17,59] x) => (float[17,59] y, float[17,59] z) {"
      " r = Constant<value_float=0.25>() t = Constant<value_int=1>()"
      " on = Cast<to=9>(t) y, m = Dropout(x, r, on) z = Cast<to=1>(m) }",
      {x}, 22, scalars);
  ASSERT_EQ(out.size(), 2u);
  int kept = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(out[1][i], out[0][i] != 0) << i;
    kept += out[1][i] != 0;
  }
  EXPECT_NEAR(kept, 752, 45);
}

}  // namespace
}  // namespace loadline::executor
