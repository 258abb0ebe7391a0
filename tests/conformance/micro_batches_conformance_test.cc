// Losses that divide by a number of the whole batch, in micro-batches against
// the step in one piece.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/onnx/import.h"
#include "passes/training_pipeline.h"
#include "tests/conformance/interpreter.h"
#include "tests/models/onnx_test_util.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::ValueId;

constexpr int64_t kBatch = 8;

// Element `i` of the whole batch; about half of the masks and labels count.
double ElementOf(const std::string& name, int64_t i) {
  const auto noise = static_cast<double>((i * 7919 + 13) % 101);
  if (name == "mask") return noise < 50 ? 1 : 0;
  if (name == "labels") {
    return i % 3 == 0 || i < 5 ? -100 : static_cast<double>(i % 4);
  }
  return noise / 50 - 1;
}

absl::StatusOr<models::Graph> StepOf(const std::string& model, int64_t parts) {
  auto imported = models::ImportText(model, models::Batch(kBatch));
  if (!imported.ok()) return imported.status();
  passes::TrainingOptions options;
  options.loss.kind = passes::LossKind::kModel;
  options.optimizer.kind = passes::OptimizerKind::kSgd;
  options.optimizer.momentum = 0;
  options.micro_batches = parts;
  return passes::BuildTrainingStep(std::move(imported->graph), options, {});
}

struct Outcome {
  double loss = 0;
  std::map<std::string, std::vector<float>> parameters;  // after the step
};

Outcome Run(const models::Graph& step, int64_t parts) {
  auto made = executor::Interpreter::Make(step);
  EXPECT_TRUE(made.ok()) << made.status();
  executor::Interpreter& run = **made;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const ValueId id = step.inputs[i];
    const size_t first = i / static_cast<size_t>(parts);
    const std::string& name =
        step.value(step.inputs[first * static_cast<size_t>(parts)]).name;
    const int64_t elements = step.value(id).type.elements();
    const int64_t begin = static_cast<int64_t>(i) % parts * elements;
    for (int64_t e = 0; e < elements; ++e) {
      const double x = ElementOf(name, begin + e);
      if (step.value(id).type.dtype == DType::kI64) {
        run.Contents<int64_t>(id)[static_cast<size_t>(e)] =
            static_cast<int64_t>(x);
      } else {
        run.Contents<float>(id)[static_cast<size_t>(e)] = static_cast<float>(x);
      }
    }
  }
  const absl::Status status = run.Run({.learning_rate = 1});
  EXPECT_TRUE(status.ok()) << status;
  Outcome outcome;
  outcome.loss = run.Contents<float>(step.outputs[0])[0];
  for (const auto& [old, next] : step.updates) {
    const auto contents = run.Contents<float>(next);
    outcome.parameters[step.value(old).name].assign(contents.begin(),
                                                    contents.end());
  }
  return outcome;
}

void ExpectSameStep(const std::string& model) {
  const auto whole = StepOf(model, 1);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const Outcome want = Run(*whole, 1);
  ASSERT_TRUE(std::isfinite(want.loss));
  for (const int64_t parts : {2, 4, 8}) {
    const auto divided = StepOf(model, parts);
    ASSERT_TRUE(divided.ok()) << parts << ": " << divided.status();
    const Outcome got = Run(*divided, parts);
    EXPECT_NEAR(got.loss, want.loss, 1e-6 * std::abs(want.loss)) << parts;
    ASSERT_FALSE(want.parameters.empty());
    for (const auto& [name, contents] : want.parameters) {
      const std::vector<float>& other = got.parameters.at(name);
      for (size_t i = 0; i < contents.size(); ++i) {
        EXPECT_NEAR(other[i], contents[i], 1e-6) << parts << ": " << name;
      }
    }
  }
}

constexpr char kRows[] = R"(
agraph (float[batch, 3, 2] x, float[batch, 3] mask) => (float loss)
<float[2, 1] weight = {0.5, -0.25}, float bias = {0.125},
 int64[1] last = {-1}, float one = {1.0}> {
  product = MatMul(x, weight)
  rows = Squeeze(product, last)
  error = Add(rows, bias)
)";

TEST(MicroBatchesConformance, DivideByTheSumOfAMaskOfTheWholeBatch) {
  ExpectSameStep(absl::StrCat(kRows, R"(
  squares = Mul(error, error)
  masked = Mul(squares, mask)
  sum = ReduceSum<keepdims=0>(masked)
  number = ReduceSum<keepdims=0>(mask)
  at_least = Max(number, one)
  loss = Div(sum, at_least)
})"));
}

// The mean of the mask, and a number that is counted as integers.
TEST(MicroBatchesConformance, DivideByOtherNumbersOfTheWholeBatch) {
  ExpectSameStep(absl::StrCat(kRows, R"(
  squares = Mul(error, error)
  masked = Mul(squares, mask)
  sum = ReduceMean<keepdims=0>(masked)
  number = ReduceMean<keepdims=0>(mask)
  loss = Div(sum, number)
})"));
  ExpectSameStep(absl::StrCat(kRows, R"(
  squares = Mul(error, error)
  masked = Mul(squares, mask)
  sum = ReduceSum<keepdims=0>(masked)
  counts = Cast<to=7>(mask)
  counted = ReduceSum<keepdims=0>(counts)
  number = Cast<to=1>(counted)
  loss = Div(sum, number)
})"));
}

// Two numbers of the whole batch, the second of which needs the first.
TEST(MicroBatchesConformance, NormalizeByStatisticsOfTheInputs) {
  ExpectSameStep(absl::StrCat(kRows, R"(
  mean = ReduceMean<keepdims=0>(x)
  centered = Sub(x, mean)
  squared = Mul(centered, centered)
  variance = ReduceMean<keepdims=0>(squared)
  deviation = Sqrt(variance)
  normal = Div(centered, deviation)
  again = MatMul(normal, weight)
  total = Mul(again, again)
  penalty = Mul(error, error)
  first = ReduceMean<keepdims=0>(total)
  second = ReduceMean<keepdims=0>(penalty)
  loss = Add(first, second)
})"));
}

// What exporters write of a cross entropy that ignores labels.
TEST(MicroBatchesConformance, AverageOverTheLabelsThatCount) {
  ExpectSameStep(R"(
agraph (float[batch, 4] x, int64[batch] labels) => (float loss)
<float[4, 4] weight = {0.5, -0.25, 0.1, 0.2, 0.3, -0.4, 0.6, 0.7,
                       0.1, -0.2, 0.3, -0.1, 0.2, 0.9, -0.8, 0.4}> {
  logits = MatMul(x, weight)
  loss = SoftmaxCrossEntropyLoss<ignore_index=-100>(logits, labels)
})");
}

TEST(MicroBatchesConformance, RefuseNumbersThatParametersInfluence) {
  const auto step = StepOf(absl::StrCat(kRows, R"(
  score = Sigmoid(error)
  masked = Mul(score, mask)
  sum = ReduceSum<keepdims=0>(masked)
  number = ReduceSum<keepdims=0>(score)
  loss = Div(sum, number)
})"),
                           2);
  EXPECT_EQ(step.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(step.status().message().find("a number that is taken over all"),
            std::string::npos)
      << step.status();
}

}  // namespace
}  // namespace loadline::conformance
