#include "passes/mixed_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "models/graph.h"
#include "passes/training_pipeline.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::Ints;
using models::Node;
using models::ValueId;
using ::testing::HasSubstr;

std::string Mixed(Builder& b, Precision precision = Precision::kBF16) {
  EXPECT_TRUE(MixedPrecision(b.graph, precision).ok());
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok()) << VerifyGraph(b.graph);
  return Describe(b.graph);
}

TEST(MixedPrecision, CastsDataAndWeightsAndGivesTheLossFloats) {
  Builder b;
  const ValueId h =
      b.Op("MatMul", {b.Input("x", {4, 8}), b.Parameter("w", {8, 3})});
  b.Output(b.Op("MseLoss", {b.Op("Relu", {h}), b.Input("t", {4, 3})}));
  EXPECT_EQ(Mixed(b),
            "%0 = Cast(x) {to=bf16}\n%1 = Cast(w) {to=bf16}\n"
            "%2 = MatMul(%0, %1)\n%3 = Relu(%2)\n%4 = Cast(%3) {to=f32}\n"
            "%5 = MseLoss(%4, t)\noutput %5\n");
}

// In f32 the logits would be the largest values of a language model, twice.
TEST(MixedPrecision, TheCrossEntropyTakesLogitsAsTheyCome) {
  Builder b;
  const ValueId h =
      b.Op("MatMul", {b.Input("x", {4, 8}), b.Parameter("w", {8, 3})});
  b.Output(b.Ops("SoftmaxCrossEntropy", {h, b.Input("t", {4}, DType::kI64)},
                 {{"class_axis", int64_t{1}}})[0]);
  EXPECT_EQ(Mixed(b),
            "%0 = Cast(x) {to=bf16}\n%1 = Cast(w) {to=bf16}\n"
            "%2 = MatMul(%0, %1)\n"
            "%3, %4 = SoftmaxCrossEntropy(%2, t) {class_axis=1}\noutput %3\n");
  EXPECT_EQ(b.graph.value(b.graph.outputs[0]).type.dtype, DType::kF32);
}

TEST(MixedPrecision, CastsEachValueOnceAndNoCastTwice) {
  Builder b;
  const ValueId w = b.Parameter("w", {4, 4});
  const ValueId x = b.Op("MatMul", {b.Input("x", {2, 4}), w});
  // Exp stays f32, and what is computed from it.
  const ValueId e = b.Op("Exp", {x});
  const ValueId y = b.Op("MatMul", {b.Op("Add", {e, x}), w});
  b.Output(b.Op("ReduceMean", {b.Op("Mul", {y, e})}));
  EXPECT_EQ(Mixed(b),
            "%0 = Cast(x) {to=bf16}\n%1 = Cast(w) {to=bf16}\n"
            "%2 = MatMul(%0, %1)\n%3 = Cast(%2) {to=f32}\n%4 = Exp(%3)\n"
            "%5 = Add(%4, %3)\n%6 = Cast(%5) {to=bf16}\n"
            "%7 = MatMul(%6, %1)\n%8 = Cast(%7) {to=f32}\n"
            "%9 = Mul(%8, %4)\n%10 = ReduceMean(%9)\noutput %10\n");
}

// Angles of tens of radians have few digits in bf16.
TEST(MixedPrecision, ComputesFromInputsInFloatsUpToTheFirstOtherValue) {
  Builder b;
  const ValueId x = b.Input("x", {4, 8});
  const ValueId angles = b.Op("Mul", {x, b.Op("Neg", {x})});
  const ValueId h =
      b.Op("MatMul", {b.Op("Sin", {angles}), b.Parameter("w", {8, 8})});
  b.Output(b.Op("Add", {h, angles}));
  EXPECT_EQ(Mixed(b),
            "%0 = Neg(x)\n%1 = Mul(x, %0)\n%2 = Sin(%1)\n"
            "%3 = Cast(%2) {to=bf16}\n%4 = Cast(w) {to=bf16}\n"
            "%5 = MatMul(%3, %4)\n%6 = Cast(%1) {to=bf16}\n"
            "%7 = Add(%5, %6)\n%8 = Cast(%7) {to=f32}\noutput %8\n");
}

TEST(MixedPrecision, KeepsStatisticsAndScalesInFloats) {
  Builder b;
  const std::vector<ValueId> y =
      b.Ops("LayerNormalization",
            {b.Input("x", {2, 4}), b.Parameter("scale", {4}),
             b.Parameter("bias", {4})},
            {{"axis", 1}, {"epsilon", 1e-5}});
  b.Output(y[0]);
  EXPECT_THAT(Mixed(b), HasSubstr("LayerNormalization(%0, scale, bias)"));
  EXPECT_EQ(b.graph.value(y[0]).type.dtype, DType::kBF16);
  EXPECT_EQ(b.graph.value(y[1]).type.dtype, DType::kF32);
  EXPECT_EQ(b.graph.value(b.graph.outputs[0]).type.dtype, DType::kF32);
}

TEST(MixedPrecision, MovesElementsAsTheyCome) {
  Builder b;
  const ValueId w =
      b.Op("Reshape", {b.Parameter("w", {16})}, {{"shape", Ints{4, 4}}});
  const ValueId x = b.Op("MatMul", {b.Input("x", {2, 4}), w});
  b.Output(b.Op("Reshape", {x}, {{"shape", Ints{8}}}));
  EXPECT_EQ(Mixed(b),
            "%0 = Reshape(w) {shape=[4,4]}\n%1 = Cast(x) {to=bf16}\n"
            "%2 = Cast(%0) {to=bf16}\n%3 = MatMul(%1, %2)\n"
            "%4 = Reshape(%3) {shape=[8]}\n%5 = Cast(%4) {to=f32}\n"
            "output %5\n");
}

// As models of the Llama family write it.
TEST(MixedPrecision, KeepsAWrittenOutRmsNormInFloats) {
  Builder b;
  const ValueId x =
      b.Op("MatMul", {b.Input("x", {2, 4}), b.Parameter("w", {4, 4})});
  const ValueId square = b.Op("Pow", {x, b.Scalar(2)});
  const ValueId mean = b.Op("ReduceMean", {square},
                            {{"axes", Ints{1}}, {"keepdims", int64_t{1}}});
  const ValueId variance = b.Op("Add", {mean, b.Scalar(1e-6f)});
  const ValueId factor = b.Op("Reciprocal", {b.Op("Sqrt", {variance})});
  const ValueId normal = b.Op("Mul", {x, factor});
  const ValueId scaled = b.Op("Mul", {b.Parameter("scale", {4}), normal});
  const ValueId y = b.Op("MatMul", {scaled, b.Parameter("v", {4, 4})});
  b.Output(y);
  (void)Mixed(b);
  for (ValueId id : {square, mean, variance, factor, normal, scaled}) {
    EXPECT_EQ(b.graph.value(id).type.dtype, DType::kF32)
        << b.graph.value(id).name;
  }
  EXPECT_EQ(b.graph.value(y).type.dtype, DType::kBF16);
}

TEST(MixedPrecision, DoesNotRoundNumbers) {
  const struct {
    float number;
    DType type;
  } kCases[] = {{0.5f, DType::kBF16},
                {3.0f, DType::kBF16},
                {0.1f, DType::kF32},
                {1e-6f, DType::kF32}};
  for (const auto& c : kCases) {
    Builder b;
    const ValueId x =
        b.Op("MatMul", {b.Input("x", {2, 4}), b.Parameter("w", {4, 4})});
    const ValueId y = b.Op("Mul", {x, b.Scalar(c.number)});
    b.Output(y);
    (void)Mixed(b);
    EXPECT_EQ(b.graph.value(y).type.dtype, c.type) << c.number;
  }
}

// A constant of one number everywhere.
ValueId Table(Builder& b, std::vector<int64_t> dims, float number) {
  const models::TensorType type = {DType::kF32, std::move(dims)};
  const std::vector<float> contents(static_cast<size_t>(type.elements()),
                                    number);
  return b.graph.AddConstant("table",
                             models::MakeTensor(type, contents.data()));
}

TEST(MixedPrecision, DoesNotRoundTheTableOfAnOperator) {
  const struct {
    float number;
    bool exact;
    DType type;  // of the product
  } kCases[] = {{0.1f, true, DType::kF32},
                {0.25f, true, DType::kBF16},
                {0.1f, false, DType::kBF16}};
  for (const auto& c : kCases) {
    Builder b;
    const ValueId x =
        b.Op("MatMul", {b.Input("x", {2, 4}), b.Parameter("w", {4, 4})});
    const ValueId y = b.Op("MatMul", {x, Table(b, {4, 4}, c.number)},
                           {{"exact", int64_t{c.exact}}});
    b.Output(y);
    (void)Mixed(b);
    EXPECT_EQ(b.graph.value(y).type.dtype, c.type) << c.number;
  }
}

// A resized value that is moved, and joined with what came by another way.
TEST(MixedPrecision, GoesOnInBf16BehindATable) {
  Builder b;
  const ValueId x =
      b.Op("MatMul", {b.Input("x", {2, 4}), b.Parameter("w", {4, 4})});
  const ValueId y = b.Op(
      "Reshape",
      {b.Op("MatMul", {x, Table(b, {4, 4}, 0.1f)}, {{"exact", int64_t{1}}})},
      {{"shape", Ints{2, 4}}});
  const ValueId joined = b.Op("Concat", {y, x}, {{"axis", int64_t{0}}});
  const ValueId curve = b.Op("Mish", {y});
  b.Output(b.Op("Add",
                {joined, b.Op("Concat", {curve, x}, {{"axis", int64_t{0}}})}));
  EXPECT_EQ(Mixed(b),
            "%0 = Cast(x) {to=bf16}\n%1 = Cast(w) {to=bf16}\n"
            "%2 = MatMul(%0, %1)\n%3 = Cast(%2) {to=f32}\n"
            "%4 = MatMul(%3, table) {exact=1}\n"
            "%5 = Reshape(%4) {shape=[2,4]}\n%6 = Cast(%5) {to=bf16}\n"
            "%7 = Concat(%6, %2) {axis=0}\n%8 = Mish(%6)\n"
            "%9 = Concat(%8, %2) {axis=0}\n%10 = Add(%7, %9)\n"
            "%11 = Cast(%10) {to=f32}\noutput %11\n");
}

// Of the data alone: a spectrogram.
TEST(MixedPrecision, ComputesTablesOfTheInputInFloats) {
  Builder b;
  const ValueId x =
      b.Op("MatMul", {b.Input("x", {2, 4}), Table(b, {4, 4}, 0.1f)},
           {{"exact", int64_t{1}}});
  const ValueId square = b.Op("Mul", {x, x});
  b.Output(b.Op("MatMul", {square, b.Parameter("w", {4, 4})}));
  (void)Mixed(b);
  EXPECT_EQ(b.graph.value(square).type.dtype, DType::kF32);
}

TEST(MixedPrecision, SoftplusIsWideAndOtherCurvesTakeWhatComes) {
  Builder b;
  const ValueId x =
      b.Op("MatMul", {b.Input("x", {2, 4}), b.Parameter("w", {4, 4})});
  const ValueId mish = b.Op("Mish", {x});
  const ValueId softplus = b.Op("Softplus", {x});
  const ValueId after = b.Op("Mul", {softplus, mish});
  b.Output(after);
  (void)Mixed(b);
  EXPECT_EQ(b.graph.value(mish).type.dtype, DType::kBF16);
  EXPECT_EQ(b.graph.value(softplus).type.dtype, DType::kF32);
  EXPECT_EQ(b.graph.value(after).type.dtype, DType::kF32);
}

TEST(MixedPrecision, ConcatTakesTheWidestType) {
  Builder b;
  const ValueId x =
      b.Op("MatMul", {b.Input("x", {2, 4}), b.Parameter("w", {4, 4})});
  const ValueId low = b.Op("Concat", {x, x}, {{"axis", int64_t{0}}});
  const ValueId wide =
      b.Op("Concat", {b.Parameter("token", {1, 4}), x}, {{"axis", int64_t{0}}});
  b.Output(low);
  b.Output(wide);
  (void)Mixed(b);
  EXPECT_EQ(b.graph.value(low).type.dtype, DType::kBF16);
  EXPECT_EQ(b.graph.value(wide).type.dtype, DType::kF32);
}

TEST(MixedPrecision, AnUnusedPartOfASplitHasAGradientOfItsType) {
  Builder b;
  const ValueId x =
      b.Op("MatMul", {b.Input("x", {4, 4}), b.Parameter("w", {4, 4})});
  const std::vector<ValueId> parts =
      b.Ops("Split", {x}, {{"axis", int64_t{1}}, {"sizes", Ints{1, 3}}});
  b.Output(parts[1]);
  TrainingOptions options;
  options.loss.target = {DType::kI64, {4}};
  options.precision = Precision::kBF16;
  const absl::StatusOr<Graph> step =
      BuildTrainingStep(std::move(b.graph), options, {});
  EXPECT_TRUE(step.ok()) << step.status();
}

TEST(MixedPrecision, LeavesIntegersAndWhatItDoesNotKnow) {
  Builder b;
  const ValueId table = b.Parameter("table", {7, 4});
  const ValueId x =
      b.Op("Gather", {table, b.Input("i", {3}, DType::kI64)}, {{"axis", 0}});
  b.Output(b.Op("Exp", {x}));
  EXPECT_EQ(Mixed(b),
            "%0 = Gather(table, i) {axis=0}\n%1 = Exp(%0)\noutput %1\n");
}

TEST(MixedPrecision, LeavesAGemmThatRoundsTwice) {
  const struct {
    Ints c;
    double alpha;
    DType type;
  } kCases[] = {{{3}, 1, DType::kBF16},
                {{3}, 0.5, DType::kF32},
                {{4, 3}, 1, DType::kF32},
                {{4, 1}, 1, DType::kF32}};
  for (const auto& c : kCases) {
    Builder b;
    const ValueId y = b.Op(
        "Gemm", {b.Input("x", {4, 8}), b.Input("w", {8, 3}), b.Input("c", c.c)},
        {{"alpha", c.alpha}});
    b.Output(b.Op("Relu", {y}));
    (void)Mixed(b);
    EXPECT_EQ(b.graph.value(y).type.dtype, c.type);
  }
}

TEST(MixedPrecision, UpdatesFloatsWithFloats) {
  TrainingOptions options;
  options.loss.target = {DType::kI64, {4}};
  options.precision = Precision::kBF16;
  options.optimizer.kind = OptimizerKind::kAdamW;
  const absl::StatusOr<Graph> step = BuildTrainingStep(SmallMlp(), options, {});
  ASSERT_TRUE(step.ok()) << step.status();
  int updates = 0;
  int low = 0;
  for (const Node& node : step->nodes) {
    if (node.op == "Gemm" || node.op == "GemmBiasGrad") {
      low += step->value(node.outputs[0]).type.dtype == DType::kBF16;
    }
    if (node.op != "AdamW") continue;
    ++updates;
    for (ValueId id : node.inputs) {
      EXPECT_EQ(step->value(id).type.dtype, DType::kF32);
    }
  }
  EXPECT_EQ(updates, 4);
  // Two products forward, three backward.
  EXPECT_EQ(low, 5);
}

// The sum that layers add to, from the embedding on; what is in a layer is not.
TEST(MixedPrecision, AutocastKeepsTheSumThatLayersAddToInFloats) {
  Builder b;
  const ValueId table = b.Parameter("table", {9, 4});
  ValueId x = b.Op("Gather", {table, b.Input("i", {2}, DType::kI64)},
                   {{"axis", int64_t{0}}});
  x = b.Op("Add", {x, b.Parameter("positions", {2, 4})});
  const ValueId normal =
      b.Ops("LayerNormalization",
            {x, b.Parameter("scale", {4}), b.Parameter("shift", {4})},
            {{"axis", 1}, {"epsilon", 1e-5}})[0];
  const ValueId product = b.Op("MatMul", {normal, b.Parameter("w", {4, 4})});
  const ValueId biased = b.Op("Add", {product, b.Parameter("bias", {4})});
  const ValueId layer =
      b.Op("Dropout", {b.Op("Gelu", {biased})}, {{"ratio", 0.1}, {"salt", 9}});
  const ValueId scaled = b.Op("Mul", {layer, b.Parameter("gamma", {4})});
  const ValueId sum = b.Op("Dropout", {b.Op("Add", {x, scaled})},
                           {{"ratio", 0.1}, {"salt", 10}});
  b.Output(sum);
  const auto type = [&](ValueId id) { return b.graph.value(id).type.dtype; };
  Mixed(b, Precision::kAutocast);
  for (const ValueId wide : {x, normal, scaled, sum}) {
    EXPECT_EQ(type(wide), DType::kF32) << b.graph.value(wide).name;
  }
  for (const ValueId low : {product, biased, layer}) {
    EXPECT_EQ(type(low), DType::kBF16) << b.graph.value(low).name;
  }
}

// A single number is none, as in PyTorch.
TEST(MixedPrecision, AutocastKeepsSumsWithInputsInFloats) {
  Builder b;
  const ValueId image = b.Input("image", {2, 4});
  const ValueId product = b.Op("MatMul", {image, b.Parameter("w", {4, 4})});
  const ValueId sum = b.Op("Add", {image, product});
  const ValueId half = b.Op("Mul", {product, b.Scalar(0.5f)});
  b.Output(sum);
  b.Output(half);
  Mixed(b, Precision::kAutocast);
  EXPECT_EQ(b.graph.value(sum).type.dtype, DType::kF32);
  EXPECT_EQ(b.graph.value(half).type.dtype, DType::kBF16);
}

TEST(MixedPrecision, AutocastTakesAFrozenBiasAsABias) {
  Builder b;
  const ValueId product =
      b.Op("MatMul", {b.Input("x", {2, 4}), b.Parameter("w", {4, 3})});
  const ValueId bias = b.Parameter("bias", {3});
  b.graph.value(bias).kind = models::ValueKind::kConstant;
  const ValueId sum = b.Op("Add", {product, bias});
  b.Output(sum);
  Mixed(b, Precision::kAutocast);
  EXPECT_EQ(b.graph.value(sum).type.dtype, DType::kBF16);
}

TEST(PrecisionFromName, KnowsThree) {
  EXPECT_EQ(*PrecisionFromName("fp32"), Precision::kF32);
  EXPECT_EQ(*PrecisionFromName("bf16"), Precision::kBF16);
  EXPECT_EQ(*PrecisionFromName("autocast"), Precision::kAutocast);
  EXPECT_THAT(PrecisionFromName("fp8").status().ToString(),
              HasSubstr("fp32, bf16, autocast"));
}

}  // namespace
}  // namespace loadline::passes
