#include "planner/problem/used_codecs.h"

#include "gtest/gtest.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

TEST(UsedCodecs, CountsAValueAndCodecOnce) {
  Problem problem = SmallProblem();
  problem.values[2].stash.push_back({"fifth", 20, 1, 1, false, 0.25});
  Plan plan = SmallPlan(problem);
  EXPECT_TRUE(UsedCodecs(problem, plan).empty());
  EXPECT_EQ(FiguresOf(problem, plan).values, 0);
  for (const char* codec : {"half", "fifth", "fifth", "unknown"}) {
    Step encode;
    encode.kind = StepKind::kEncode;
    encode.codec = codec;
    encode.from = BufferId{2};  // y, 100 bytes
    plan.steps.push_back(encode);
  }
  const auto used = UsedCodecs(problem, plan);
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].codec->name, "half");
  EXPECT_EQ(used[1].codec->name, "fifth");
  const CodecFigures figures = FiguresOf(problem, plan);
  EXPECT_EQ(figures.values, 1);
  EXPECT_EQ(figures.bytes, 100);
  EXPECT_EQ(figures.saved_bytes, 80);
  EXPECT_TRUE(figures.lossy);
  EXPECT_EQ(figures.error, 0.25);
}

}  // namespace
}  // namespace loadline::planner
