#include "passes/compress/batch_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(TakeBatchStatistics, ReplacesWhatRunsAndLeavesOthers) {
  models::Graph graph = BatchNormModel(4);
  const size_t all = graph.updates.size();
  const auto counter =
      graph.AddState("counter", models::ZeroTensor({models::DType::kF32, {1}}));
  const auto more = graph.AddNode("Exp", "more", {counter});
  ASSERT_TRUE(more.ok()) << more.status();
  graph.updates.emplace_back(counter, (*more)[0]);
  TakeBatchStatistics(graph);
  EXPECT_THAT(graph.updates, SizeIs(all));
  for (const auto& update : graph.updates) EXPECT_NE(update.first, counter);
  EXPECT_THAT(Describe(graph), HasSubstr("momentum=0}"));
}

TEST(TakeBatchStatistics, LeavesNoUpdateWithoutNormalizations) {
  models::Graph graph = SmallMlp();
  TakeBatchStatistics(graph);
  EXPECT_TRUE(graph.updates.empty());
}

}  // namespace
}  // namespace loadline::passes
