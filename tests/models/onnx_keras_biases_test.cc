#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "models/onnx/keras_biases.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models::onnx_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> WarningsOf(const std::string& body,
                                    const std::string& producer = "tf2onnx") {
  onnx::ModelProto model = ModelFromText(absl::StrCat(
      "g (float[2,2] x, float[1,1,2,2] image) => (float y)"
      " <float[2,2] w = {1,2,3,4}, float[2] b = {1,2},"
      "  float[1,1,1,1] k = {1}, float[1] c = {1}, int64[1] flat = {-1}> {",
      body, "}"));
  model.set_producer_name(producer);
  return KerasBiasWarnings(model);
}

TEST(KerasBiasWarnings, CountsLayersWithoutBias) {
  EXPECT_THAT(WarningsOf(" p = MatMul(x, w) y = Relu(p) "),
              ElementsAre(StartsWith("1 layer has no bias: tf2onnx")));
  EXPECT_THAT(WarningsOf(" p = MatMul(x, w) q = Gemm(p, w) r = Conv(image, k)"
                         " y = Add(q, r) "),
              ElementsAre(StartsWith("3 layers have no bias")));
  EXPECT_THAT(WarningsOf(" p = MatMul(x, w) ", "pytorch"), IsEmpty());
}

TEST(KerasBiasWarnings, KnowsWhereABiasMayBe) {
  EXPECT_THAT(WarningsOf(" y = Gemm(x, w, b) "), IsEmpty());
  EXPECT_THAT(WarningsOf(" y = Conv(image, k, c) "), IsEmpty());
  EXPECT_THAT(WarningsOf(" p = MatMul(w, x) y = Add(b, p) "), IsEmpty());
  EXPECT_THAT(WarningsOf(" p = MatMul(x, w) q = Mul(p, b) r = Reshape(q, flat)"
                         " y = Add(r, c) "),
              IsEmpty());
  EXPECT_THAT(WarningsOf(" p = MatMul(x, w) q = MatMul(x, w) r = Add(p, q)"
                         " y = Add(r, b) "),
              IsEmpty());
  // Not a layer: both factors are activations.
  EXPECT_THAT(WarningsOf(" y = MatMul(x, x) "), IsEmpty());
}

TEST(KerasBiasWarnings, SaysThatAnLstmHasTwo) {
  EXPECT_THAT(WarningsOf(" y, h, c = LSTM(x, w, w, b) "),
              ElementsAre(StartsWith("an LSTM of ONNX has two biases")));
  EXPECT_THAT(WarningsOf(" y, h, c = LSTM(x, w, w) "), IsEmpty());
}

}  // namespace
}  // namespace loadline::models::onnx_internal
