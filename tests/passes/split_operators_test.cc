#include "passes/split_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/split_region.h"
#include "passes/training_pipeline.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::Ints;
using models::ValueId;
using ::testing::HasSubstr;
using ::testing::Not;

// x f32[512,16] -> logits f32[512,256].
Graph HeadStep() {
  Builder b;
  const ValueId x = b.Input("x", {512, 16});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {16, 256})}));
  TrainingOptions options;
  options.loss.target = {DType::kI64, {512}};
  options.optimizer.kind = OptimizerKind::kSgd;
  const absl::StatusOr<Graph> step = BuildTrainingStep(b.graph, options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return *step;
}

absl::Status SplitInto(Graph& step, const std::vector<Split>& splits) {
  return SplitOperators(step, splits);
}

TEST(SplitOperators, HeadRunsForwardAndBackwardSegmentBySegment) {
  Graph step = HeadStep();
  ASSERT_TRUE(SplitInto(step, {{"head", 2}}).ok());
  const absl::Status valid = models::VerifyGraph(step);
  ASSERT_TRUE(valid.ok()) << valid;
  for (const models::Value& value : step.values) {
    EXPECT_NE(value.type.dims, (Ints{512, 256})) << value.name;
  }
  const std::string text = Describe(step);
  EXPECT_THAT(text, HasSubstr("RowsView(x) {shape=[256,16], start=4096}"));
  // The gradients of part 0 come before the logits of part 1.
  const size_t second = text.find("RowsView(x) {shape=[256,16], start=4096}");
  const size_t first = text.find("GemmSum(");
  ASSERT_NE(first, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_NE(text.find("GemmSum(", second), std::string::npos);
}

TEST(SplitOperators, OneSegmentChangesNothing) {
  Graph step = HeadStep();
  const std::string before = Describe(step);
  ASSERT_TRUE(SplitInto(step, {{"head", 1}}).ok());
  EXPECT_EQ(Describe(step), before);
  ASSERT_TRUE(SplitInto(step, {}).ok());
  EXPECT_EQ(Describe(step), before);
}

TEST(SplitOperators, SaysWhichChainsThereAre) {
  Graph step = HeadStep();
  const absl::Status unknown = SplitInto(step, {{"tail", 2}});
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("chains: head"));
  EXPECT_THAT(std::string(SplitInto(step, {{"head", 513}}).message()),
              HasSubstr("it has 512 rows"));
  EXPECT_THAT(
      std::string(SplitInto(step, {{"head", 2}, {"head", 3}}).message()),
      HasSubstr("twice"));
}

absl::StatusOr<Graph> HeadOf(int64_t rows, const std::vector<Split>& splits) {
  Builder b;
  const ValueId x = b.Input("x", {rows, 16});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {16, 256})}));
  TrainingOptions options;
  options.loss.target = {DType::kI64, {rows}};
  options.splits = splits;
  return BuildTrainingStep(b.graph, options, {});
}

TEST(SplitOperators, RefusesWhatHasNoRowsToSplit) {
  EXPECT_TRUE(HeadOf(2, {{"head", 2}}).ok());
  EXPECT_TRUE(HeadOf(7, {{"head", 7}}).ok());
  EXPECT_THAT(std::string(HeadOf(7, {{"head", 8}}).status().message()),
              HasSubstr("into 8 segments: it has 7 rows"));
  EXPECT_THAT(std::string(HeadOf(1, {{"head", 2}}).status().message()),
              HasSubstr("no chain 'head' to split; it has none"));
}

// The model's own loss, and with `mean` also the mean of all logits.
std::vector<SplittableChain> ChainsOfOwnLoss(bool mean) {
  Builder b;
  const ValueId logits =
      b.Op("MatMul", {b.Input("x", {512, 16}), b.Parameter("w", {16, 256})});
  ValueId loss = b.Op("SoftmaxCrossEntropy",
                      {logits, b.Input("target", {512}, DType::kI64)},
                      {{"class_axis", int64_t{1}}});
  if (mean) {
    loss = b.Op("Add",
                {loss, b.Op("ReduceMean", {logits},
                            {{"axes", Ints{0, 1}}, {"keepdims", int64_t{0}}})});
  }
  b.Output(loss);
  TrainingOptions options;
  options.loss.kind = LossKind::kModel;
  const absl::StatusOr<Graph> step = BuildTrainingStep(b.graph, options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return FindSplittableChains(*step);
}

TEST(FindSplittableChains, AModelsOwnLossHasAHeadUnlessOthersReadTheLogits) {
  const std::vector<SplittableChain> own = ChainsOfOwnLoss(false);
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].name, "head");
  EXPECT_TRUE(ChainsOfOwnLoss(true).empty());
}

TEST(FindSplittableChains, DescribesTheHead) {
  const std::vector<SplittableChain> chains = FindSplittableChains(HeadStep());
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_EQ(chains[0].name, "head");
  EXPECT_EQ(chains[0].rows, 512);
  EXPECT_EQ(chains[0].largest_bytes, 512 * 256 * 4);
}

TEST(FindSplittableChains, NoneAmongStatisticsOfTheBatch) {
  Builder b;
  const ValueId x = b.Input("x", {6, 2, 16, 16});
  const ValueId c =
      b.Op("Conv", {x, b.Parameter("w", {16, 2, 3, 3})},
           {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
  const ValueId n =
      b.Op("BatchNormTraining",
           {c, b.Parameter("scale", {16}), b.Parameter("bias", {16})},
           {{"epsilon", 1e-5}});
  const ValueId p = b.Op("ReduceMean", {b.Op("Relu", {n})},
                         {{"axes", Ints{2, 3}}, {"keepdims", int64_t{0}}});
  b.Output(b.Op("MatMul", {p, b.Parameter("fc", {16, 10})}));
  TrainingOptions options;
  options.loss.target = {DType::kI64, {6}};
  const absl::StatusOr<Graph> step = BuildTrainingStep(b.graph, options, {});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(FindSplittableChains(*step).empty());
}

TEST(BuildTrainingStep, SplitsWhatItIsToldUnlessThePassIsOff) {
  Builder b;
  const ValueId x = b.Input("x", {512, 16});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {16, 256})}));
  TrainingOptions options;
  options.loss.target = {DType::kI64, {512}};
  options.splits = {{"head", 4}};
  const auto split = BuildTrainingStep(b.graph, options, {});
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(Describe(*split), HasSubstr("GemmSum"));
  PassOptions passes;
  passes.disabled = {"split_operators"};
  const auto off = BuildTrainingStep(b.graph, options, passes);
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_THAT(Describe(*off), Not(HasSubstr("GemmSum")));
}

TEST(ParseSplit, TakesAChainAndANumber) {
  const absl::StatusOr<Split> split = ParseSplit("mlp.3=7");
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->chain, "mlp.3");
  EXPECT_EQ(split->segments, 7);
  for (const char* text : {"", "head", "head=", "=3", "head=0", "head=x"}) {
    EXPECT_EQ(ParseSplit(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(SegmentStarts, AreNearlyEqualPartsOfWholeTiles) {
  EXPECT_EQ(SegmentStarts(8192, 4),
            (std::vector<int64_t>{0, 2048, 4096, 6144, 8192}));
  for (int64_t rows : {1, 2, 7, 21, 64, 1000, 8192, 8191, 100003}) {
    for (int64_t s = 1; s <= std::min<int64_t>(rows, 40); ++s) {
      const std::vector<int64_t> starts = SegmentStarts(rows, s);
      ASSERT_EQ(starts.size(), static_cast<size_t>(s) + 1);
      EXPECT_EQ(starts.front(), 0);
      EXPECT_EQ(starts.back(), rows);
      const double mean = static_cast<double>(rows) / static_cast<double>(s);
      for (size_t i = 1; i < starts.size(); ++i) {
        const auto part = static_cast<double>(starts[i] - starts[i - 1]);
        EXPECT_GE(part, 1);
        EXPECT_LE(part, std::max(mean * 1.25, mean + 1)) << rows << " " << s;
      }
    }
  }
}

}  // namespace
}  // namespace loadline::passes
