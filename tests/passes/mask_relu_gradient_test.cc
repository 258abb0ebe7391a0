#include "passes/mask_relu_gradient.h"

#include <gtest/gtest.h>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Phase;
using models::ValueId;

// y = Relu(x); z = Neg(y); dx = ReluGrad(dz, y), where dz is Neg(z).
struct ReluOfNeg {
  Builder b;
  ValueId y;
  ValueId dz;

  explicit ReluOfNeg(int64_t width = 64) {
    const ValueId x = b.Input("x", {32, width});
    y = b.Op("Relu", {x});
    const ValueId z = b.Op("Neg", {y});
    dz = Backward("Neg", {z});
    b.Output(Backward("ReluGrad", {dz, y}));
  }
  ValueId Backward(const char* op, std::vector<ValueId> inputs) {
    const ValueId id = b.Op(op, std::move(inputs));
    b.graph.nodes.back().phase = Phase::kBackward;
    return id;
  }
};

TEST(MaskReluGradient, TheGradientReadsBits) {
  ReluOfNeg step;
  ExpectBecomes(MaskReluGradient, step.b.graph,
                "%0 = Relu(x)\n"
                "%1 = Encode(%0) {codec=positive}\n"
                "%2 = Neg(%0)\n"
                "%3 = Neg(%2)\n"
                "%4 = ReluMaskGrad(%3, %1)\n"
                "output %4\n");
}

TEST(MaskReluGradient, LeavesAnOutputThatTheBackwardPassReadsOtherwise) {
  ReluOfNeg step;
  step.b.Output(step.Backward("Mul", {step.dz, step.y}));
  ExpectUntouched(MaskReluGradient, step.b.graph);
}

TEST(MaskReluGradient, LeavesAnOutputThatItReadsThroughAView) {
  ReluOfNeg step;
  const ValueId view =
      step.b.Op("Reshape", {step.y}, {{"shape", models::Ints{64, 32}}});
  step.b.Output(step.Backward("Neg", {view}));
  ExpectUntouched(MaskReluGradient, step.b.graph);
}

TEST(MaskReluGradient, LeavesAnOutputOfTheGraphAndASmallOne) {
  ReluOfNeg step;
  step.b.Output(step.y);
  ExpectUntouched(MaskReluGradient, step.b.graph);
  ReluOfNeg small(/*width=*/8);
  ExpectUntouched(MaskReluGradient, small.b.graph);
}

TEST(MaskReluGradient, LeavesAGradientAgainstItsOwnOutput) {
  ReluOfNeg step;
  step.b.Output(step.Backward("ReluGrad", {step.y, step.y}));
  ExpectUntouched(MaskReluGradient, step.b.graph);
}

}  // namespace
}  // namespace loadline::passes
