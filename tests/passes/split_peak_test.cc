// What segments are for: the bytes of a step with everything kept.
#include <gtest/gtest.h>

#include "passes/cost_model.h"
#include "passes/make_problem.h"
#include "passes/split_operators.h"
#include "passes/training_pipeline.h"
#include "planner/solve/solve.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::ValueId;

constexpr int64_t kTokens = 512;
constexpr int64_t kWidth = 32;
constexpr int64_t kWords = 4096;
constexpr int64_t kLogitBytes = 2 * kTokens * kWords * 4;

// A block and the head of a language model with tied weights.
Graph LanguageModel() {
  Builder b;
  const ValueId words = b.Parameter("words", {kWords, kWidth});
  ValueId x =
      b.Op("Gather", {words, b.Input("tokens", {2, kTokens}, DType::kI64)},
           {{"axis", int64_t{0}}});
  const ValueId h =
      b.Op("Gelu", {b.Op("MatMul", {x, b.Parameter("up", {kWidth, 128})})});
  x = b.Op("Add", {x, b.Op("MatMul", {h, b.Parameter("down", {128, kWidth})})});
  b.Output(b.Op("MatMul", {x, words}, {{"trans_b", int64_t{1}}}));
  return b.graph;
}

int64_t KeptBytes(const std::vector<Split>& splits, Precision precision) {
  TrainingOptions options;
  options.loss.target = {DType::kI64, {2, kTokens}};
  options.precision = precision;
  options.splits = splits;
  const auto step = BuildTrainingStep(LanguageModel(), options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  MakeProblemOptions problem_options;
  problem_options.cost = [](const Graph&, const models::Node&) {
    return absl::StatusOr<NodeCost>(NodeCost{.time_ns = 1});
  };
  const auto problem = MakeProblem(*step, problem_options);
  EXPECT_TRUE(problem.ok()) << problem.status();
  const auto plan = planner::KeepEverything(*problem);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->budget_bytes;
}

TEST(SplitOperators, NeitherLogitsNorTheirGradientsExistWhole) {
  for (Precision precision : {Precision::kF32, Precision::kBF16}) {
    const int64_t logits =
        precision == Precision::kBF16 ? kLogitBytes / 2 : kLogitBytes;
    const int64_t whole = KeptBytes({}, precision);
    const int64_t split = KeptBytes({{"head", 8}}, precision);
    EXPECT_GE(whole - split, logits * 3 / 4);
  }
}

}  // namespace
}  // namespace loadline::passes
