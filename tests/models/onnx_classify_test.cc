// The rules of models/onnx/classify.h, case by case.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Trained(const std::string& body,
                                 const ImportOptions& options = {}) {
  const auto imported = ImportText(body, options);
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return {"import failed"};
  return Names(imported->graph, ValueKind::kParameter);
}

TEST(ClassifyInitializers, TransposedWeightsOfTheOlderExporterAreTrained) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] \"onnx::Mul_12\" = {1,2}> {"
                      " y = Mul(x, \"onnx::Mul_12\") }"),
              ElementsAre("onnx::Mul_12"));
}

TEST(ClassifyInitializers, SingleNumbersUnderInventedNamesAreNot) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[1] val_3 = {2}, float[1] gain = {1}> {"
                      " u = Mul(x, val_3) y = Mul(u, gain) }"),
              ElementsAre("gain"));
}

TEST(ClassifyInitializers, MasksAreToldByTheirContents) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] mask = {0,-10000}, float[2] bias = {0,0},"
                      "  float[2] slope = {0,-5}> {"
                      " u = Add(x, mask) v = Add(u, bias) y = Mul(v, slope) }"),
              ElementsAre("bias", "slope"));
}

TEST(ClassifyInitializers, WhatNoGradientReachesIsConstant) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] keep = {1,0}, float[2] zero = {0,0},"
                      "  float[2] w = {1,1}> {"
                      " c = Equal(keep, zero) y = Where(c, w, x) }"),
              ElementsAre("w"));
}

TEST(ClassifyInitializers, FrozenPatternsWin) {
  ImportOptions options;
  options.frozen = {"encoder.*"};
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] \"encoder.w\" = {1,2}> {"
                      " y = Mul(x, \"encoder.w\") }",
                      options),
              IsEmpty());
}

TEST(ClassifyInitializers, RefusesAFrozenPatternThatMatchesNothing) {
  ImportOptions options;
  options.frozen = {"w", "encoder.*"};
  const auto imported = ImportText(
      "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Mul(x, w) }",
      options);
  EXPECT_EQ(imported.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(imported.status().message(),
            "frozen: no tensor of the model matches 'encoder.*'; it has w");
}

TEST(ClassifyInitializers, WhatNothingReadsIsLeftOut) {
  EXPECT_THAT(Trained("g (float[2] x) => (float[2] y)"
                      " <float[2] dead = {1,2}> { y = Relu(x) }"),
              IsEmpty());
}

}  // namespace
}  // namespace loadline::models
