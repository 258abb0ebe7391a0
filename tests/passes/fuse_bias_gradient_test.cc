#include "passes/fuse_bias_gradient.h"

#include <gtest/gtest.h>

#include "models/graph.h"
#include "passes/training_pipeline.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::DType;
using models::Ints;
using models::ValueId;

constexpr DType kBF16 = DType::kBF16;
const Attributes kOverRows = {{"axes", Ints{0}}, {"keepdims", int64_t{0}}};

TEST(FuseBiasGradient, ComesWithTheProductThatContractsTheSameRows) {
  Builder b;
  const ValueId x = b.Input("x", {6, 8}, kBF16);
  const ValueId dy = b.Input("dy", {6, 16}, kBF16);
  b.Output(b.Op("Gemm", {dy, x}, {{"transA", int64_t{1}}}));
  b.Output(b.Op("ReduceSum", {dy}, kOverRows));
  ExpectBecomes(FuseBiasGradient, b.graph,
                "%0, %1 = GemmBiasGrad(dy, x) {dy=a, transA=1, transB=0}\n"
                "output %0\n"
                "output %1\n");
}

TEST(FuseBiasGradient, DyMayBeTheRightOperand) {
  Builder b;
  const ValueId x = b.Input("x", {6, 8}, kBF16);
  const ValueId dy = b.Input("dy", {6, 16}, kBF16);
  b.Output(b.Op("MatMul", {x, dy}, {{"trans_a", int64_t{1}}}));
  b.Output(b.Op("ReduceSum", {dy}, kOverRows));
  ExpectBecomes(FuseBiasGradient, b.graph,
                "%0, %1 = GemmBiasGrad(x, dy) {dy=b, transA=1, transB=0}\n"
                "output %0\n"
                "output %1\n");
}

TEST(FuseBiasGradient, LeavesAloneWhatIsNotASumOverTheProductsInner) {
  const Attributes left = {{"transA", int64_t{1}}};
  struct Form {
    const char* what;
    DType dtype;
    Attributes product, sum;
    bool dy_first;
  };
  for (const Form& form :
       std::vector<Form>{{"f32", DType::kF32, left, kOverRows, true},
                         {"a scaled product",
                          kBF16,
                          {{"alpha", 2.0}, {"transA", int64_t{1}}},
                          kOverRows,
                          true},
                         {"a sum over columns",
                          kBF16,
                          left,
                          {{"axes", Ints{1}}, {"keepdims", int64_t{0}}},
                          true},
                         {"a row that stays a matrix",
                          kBF16,
                          left,
                          {{"axes", Ints{0}}},
                          true},
                         {"a product over columns",
                          kBF16,
                          {{"transB", int64_t{1}}},
                          kOverRows,
                          false}}) {
    SCOPED_TRACE(form.what);
    Builder b;
    const ValueId dy = b.Input("dy", {6, 16}, form.dtype);
    const ValueId x =
        b.Input("x", form.dy_first ? Ints{6, 8} : Ints{8, 16}, form.dtype);
    b.Output(b.Op("Gemm", {dy, x}, form.product));
    b.Output(b.Op("ReduceSum", {dy}, form.sum));
    ExpectUntouched(FuseBiasGradient, b.graph);
  }
}

TEST(FuseBiasGradient, LeavesAloneASumBeforeTheProductAndASecondOne) {
  Builder before;
  const ValueId dy = before.Input("dy", {6, 16}, kBF16);
  const ValueId x = before.Input("x", {6, 8}, kBF16);
  before.Output(before.Op("ReduceSum", {dy}, kOverRows));
  before.Output(before.Op("Gemm", {dy, x}, {{"transA", int64_t{1}}}));
  ExpectUntouched(FuseBiasGradient, before.graph);

  Builder twice;
  const ValueId g = twice.Input("dy", {6, 16}, kBF16);
  const ValueId z = twice.Input("x", {6, 8}, kBF16);
  twice.Output(twice.Op("Gemm", {g, z}, {{"transA", int64_t{1}}}));
  twice.Output(twice.Op("ReduceSum", {g}, kOverRows));
  twice.Output(twice.Op("ReduceSum", {g}, kOverRows));
  ASSERT_TRUE(FuseBiasGradient(twice.graph).ok());
  EXPECT_EQ(Describe(twice.graph),
            "%0, %1 = GemmBiasGrad(dy, x) {dy=a, transA=1, transB=0}\n"
            "%2 = ReduceSum(dy) {axes=[0], keepdims=0}\n"
            "output %0\noutput %1\noutput %2\n");
}

// In every linear layer the bias's gradient is fused with the weight's.
TEST(FuseBiasGradient, FindsEveryLinearLayerOfATrainingStep) {
  TrainingOptions options;
  options.loss.target = {DType::kI64, {4}};
  options.precision = Precision::kBF16;
  const auto step = BuildTrainingStep(SmallMlp(), options, {});
  ASSERT_TRUE(step.ok()) << step.status();
  int joined = 0;
  for (const models::Node& node : step->nodes) {
    joined += node.op == "GemmBiasGrad";
    EXPECT_NE(node.op, "ReduceSum");
  }
  EXPECT_EQ(joined, 2);
}

}  // namespace
}  // namespace loadline::passes
