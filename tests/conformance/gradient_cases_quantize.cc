// Gradient cases of fake quantization. A grid of 2^-20 is so fine that finite
// differences do not see its steps: straight through is then the slope. The
// scale's slope is linear, and exact, where every element is clipped.
#include "tests/conformance/gradient_cases.h"

namespace loadline::executor {

using models::Attributes;
using models::Ints;
using models::ValueId;

namespace {

constexpr float kFine = 1.0f / (1 << 20);

GradientCase StraightThrough(const std::string& special, int64_t bits) {
  return {"FakeQuantize" + special,
          [=](GradientGraph& b) -> std::vector<ValueId> {
            const ValueId scale =
                b.graph.AddConstant("scale", models::ScalarTensor(kFine));
            const ValueId zero =
                b.graph.AddConstant("zero", models::ScalarTensor(3));
            // With 20 bits, [-0.5, 0.5) is inside; no parameter is near 0.5.
            return {b.Op("FakeQuantize", {b.Parameter({3, 4}), scale, zero},
                         {{"bits", bits}, {"signed", int64_t{1}}})};
          }};
}

GradientCase Clipped(const std::string& special, float low, float high) {
  return {"FakeQuantize" + special,
          [=](GradientGraph& b) -> std::vector<ValueId> {
            const ValueId x = b.Constant({2, 3, 4}, low, high);
            const ValueId scale = b.Parameter({3}, 0.02f, 0.05f);
            const ValueId zero = b.graph.AddConstant(
                "zero", models::ZeroTensor({models::DType::kF32, {3}}));
            return {b.Op("FakeQuantize", {x, scale, zero},
                         {{"bits", int64_t{4}},
                          {"signed", int64_t{1}},
                          {"axis", int64_t{1}}})};
          }};
}

}  // namespace

std::vector<GradientCase> QuantizeGradientCases() {
  return {StraightThrough("", 24), StraightThrough(" clipped", 20),
          Clipped(" scale above the range", 1, 2),
          Clipped(" scale below the range", -2, -1)};
}

}  // namespace loadline::executor
