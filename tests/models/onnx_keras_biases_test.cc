#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/onnx/keras_biases.h"
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
  return KerasBiasWarning(model);
}

TEST(KerasBiasWarning, CountsLayersWithoutBias) {
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) y = Relu(p) "),
              StartsWith("1 layer has no bias: tf2onnx"));
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) q = Gemm(p, w) r = Conv(image, k)"
                        " y = Add(q, r) "),
              StartsWith("3 layers have no bias"));
  EXPECT_THAT(WarningOf(" p = MatMul(x, w) ", "pytorch"), IsEmpty());
}

TEST(KerasBiasWarning, KnowsWhereABiasMayBe) {
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

// An LSTM on one feature with one unit: four gates. The state's part of the
// bias gets a gradient in other files.
TEST(FindSingleBiases, TheBiasOfTheStateIsNotTrained) {
  for (const bool keras : {true, false}) {
    for (const char* state : {"0,0,0,0", "0,0,0,1"}) {
      onnx::ModelProto model = ModelFromText(absl::StrCat(
          "g (float[2,1,1] x) => (float[2,1,1,1] y)"
          " <float[1,4,1] w = {1,2,3,4}, float[1,4,1] r = {1,2,3,4},"
          "  float[1,8] b = {1,2,3,4,",
          state, "}> { y, h, c = LSTM<hidden_size = 1>(x, w, r, b) }"));
      if (keras) model.set_producer_name("tf2onnx");
      const auto imported = ImportOnnxBytes(Bytes(model), {});
      ASSERT_TRUE(imported.ok()) << imported.status();
      const bool single = keras && std::string(state) == "0,0,0,0";
      const auto& nodes = imported->graph.nodes;
      EXPECT_EQ(
          std::count_if(
              nodes.begin(), nodes.end(),
              [&](const Node& node) {
                return node.op == "Add" &&
                       imported->graph.value(node.outputs[0]).type.rank() == 1;
              }),
          single ? 0 : 1)
          << keras << " " << state;
    }
  }
}

}  // namespace
}  // namespace loadline::models::onnx_internal
