#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "models/onnx/folded_biases.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models::onnx_internal {
namespace {

using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string WarningOf(const std::string& body,
                      const std::string& producer = "tf2onnx") {
  onnx::ModelProto model = ModelFromText(absl::StrCat(
      "g (float[2,2] x, float[1,1,2,2] image) => (float y)"
      " <float[2,2] w = {1,2,3,4}, float[2] b = {1,2},"
      "  float[1,1,1,1] k = {1}, float[1] c = {1}, int64[1] flat = {-1}> {",
      body, "}"));
  model.set_producer_name(producer);
  return FoldedBiasesWarning(model);
}

TEST(FoldedBiasesWarning, CountsLayersWithoutBias) {
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) y = Relu(p) "),
              StartsWith("1 layer has no bias: tf2onnx"));
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) q = Gemm(p, w) r = Conv(image, k)"
                        " y = Add(q, r) "),
              StartsWith("3 layers have no bias"));
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) ", "pytorch"), IsEmpty());
}

TEST(FoldedBiasesWarning, KnowsWhereABiasMayBe) {
  EXPECT_THAT(WarningOf(" y = Gemm(x, w, b) "), IsEmpty());
  EXPECT_THAT(WarningOf(" y = Conv(image, k, c) "), IsEmpty());
  EXPECT_THAT(WarningOf(" p = MatMul(w, x) y = Add(b, p) "), IsEmpty());
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) q = Mul(p, b) r = Reshape(q, flat)"
                        " y = Add(r, c) "),
              IsEmpty());
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) q = MatMul(x, w) r = Add(p, q)"
                        " y = Add(r, b) "),
              IsEmpty());
  // Not a layer: both factors are activations.
  EXPECT_THAT(WarningOf(" y = MatMul(x, x) "), IsEmpty());
}

}  // namespace
}  // namespace loadline::models::onnx_internal
