// Which biases are rounded, and by which steps.
#include "passes/compress/quantize_biases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/compress/add_fake_quantize.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::Ints;
using models::NodeId;
using models::ValueId;
using ::testing::HasSubstr;
using ::testing::Not;

const Attributes kConvAttributes = {{"kernel_shape", Ints{3, 3}},
                                    {"strides", Ints{1, 1}},
                                    {"pads", Ints{1, 1, 1, 1}},
                                    {"dilations", Ints{1, 1}},
                                    {"group", int64_t{1}}};

// The graph with its first node quantized.
std::string Quantized(Graph graph, QuantizeSpec spec = {},
                      QuantizeStage stage = QuantizeStage::kFrozen) {
  const std::vector<QuantizeRequest> requests = {
      {.nodes = {NodeId{0}}, .spec = spec, .stage = stage}};
  const auto tensors = AddFakeQuantize(graph, requests);
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  const absl::Status valid = models::VerifyGraph(graph);
  EXPECT_TRUE(valid.ok()) << valid;
  return Describe(graph);
}

TEST(BiasQuantizer, TakesTheProductOfBothScales) {
  Builder b;
  b.Output(b.Op(
      "Gemm",
      {b.Input("x", {2, 3}), b.Parameter("w", {4, 3}), b.Parameter("b", {4})},
      {{"transB", int64_t{1}}}));
  EXPECT_EQ(
      Quantized(b.graph),
      R"(%0, %1 = QuantizationGrid(x.low, x.high) {bits=8, signed=0, symmetric=0}
%2 = FakeQuantize(x, %0, %1) {bits=8, signed=0, symmetric=0}
%3, %4 = ValueRange(w) {axis=0}
%5, %6 = QuantizationGrid(%3, %4) {bits=8, signed=1, symmetric=1}
%7 = FakeQuantize(w, %5, %6) {axis=0, bits=8, signed=1, symmetric=1}
%8 = Mul(%5, %0)
%9 = Mul(%8, w.bias_codes)
%10 = Abs(b)
%11, %12 = QuantizationGrid(%9, %10) {bits=24, signed=1, symmetric=1}
%13 = FakeQuantize(b, %11, %12) {axis=0, bits=24, signed=1, symmetric=1}
%14 = Gemm(%2, %7, %13) {transB=1}
%15, %16 = QuantizationGrid(n0.low, n0.high) {bits=8, signed=0, symmetric=0}
%17 = FakeQuantize(%14, %15, %16) {bits=8, signed=0, symmetric=0}
output %17
)");
}

TEST(BiasQuantizer, RoundsTheShiftOfANormThatIsFolded) {
  Builder b;
  const ValueId c =
      b.Op("Conv",
           {b.Input("x", {2, 1, 4, 4}), b.Parameter("w", {3, 1, 3, 3}),
            b.Parameter("b", {3})},
           kConvAttributes);
  b.Output(b.Op("BatchNormalization",
                {c, b.Parameter("g", {3}), b.Parameter("s", {3}),
                 b.State("m", {3}), b.State("v", {3})},
                {{"epsilon", 0.5}}));
  EXPECT_THAT(
      Quantized(b.graph),
      HasSubstr(
          R"(%8 = Conv(%2, %7) {dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]}
%9 = Add(v, 0.5)
%10 = Sqrt(%9)
%11 = Div(g, %10)
%12 = Mul(m, %11)
%13 = Sub(s, %12)
%14 = Mul(b, %11)
%15 = Add(%13, %14)
%16 = Mul(%5, %0)
%17 = Abs(%11)
%18 = Mul(%16, %17)
%19 = Mul(%18, w.bias_codes)
%20 = Abs(%15)
%21, %22 = QuantizationGrid(%19, %20) {bits=24, signed=1, symmetric=1}
%23 = FakeQuantize(%15, %21, %22) {axis=0, bits=24, signed=1, symmetric=1}
%24 = Add(%23, %12)
%25 = BatchNormalization(%8, g, %24, m, v) {epsilon=0.5}
)"));
}

// What the export leaves in float.
TEST(BiasQuantizer, LeavesOthers) {
  Builder b;
  const ValueId x = b.Input("x", {2, 3});
  const ValueId w = b.Parameter("w", {4, 3});
  b.Output(b.Op("Gemm", {x, w, b.Parameter("b", {4})},
                {{"transB", int64_t{1}}, {"alpha", 0.5}}));
  EXPECT_THAT(Quantized(b.graph), Not(HasSubstr("bits=24")));

  Builder plain;
  plain.Output(plain.Op("Gemm",
                        {plain.Input("x", {2, 3}), plain.Parameter("w", {4, 3}),
                         plain.Parameter("b", {4})},
                        {{"transB", int64_t{1}}}));
  QuantizeSpec spec;
  EXPECT_THAT(Quantized(plain.graph, spec, QuantizeStage::kCalibrate),
              Not(HasSubstr("bits=24")));
  spec.targets.input = false;
  EXPECT_THAT(Quantized(plain.graph, spec), Not(HasSubstr("bits=24")));
  spec = {};
  spec.quantizer = Quantizer::kKMeans;
  EXPECT_THAT(Quantized(plain.graph, spec), Not(HasSubstr("bits=24")));
  spec.quantizer = Quantizer::kLsq;
  EXPECT_THAT(Quantized(plain.graph, spec), HasSubstr("bits=24"));
}

}  // namespace
}  // namespace loadline::passes
