// The timeline compared with the planner's own replay on random problems, and
// by hand on a small one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/solve/solve.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/small_plan.h"
#include "tools/pipeline/timeline.h"

namespace loadline::tools {
namespace {

// Adds up the device buffers alive at each sample, as the page does.
void ExpectSamplesAddUp(const planner::Plan& plan, const Timeline& timeline) {
  std::vector<int64_t> live(timeline.samples.size(), 0);
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const BufferLife& life = timeline.lives[b];
    EXPECT_LE(life.from, life.ready);
    EXPECT_LE(life.ready, life.done);
    EXPECT_LE(life.done, life.to);
    EXPECT_LE(life.start_ns, life.end_ns);
    if (plan.buffers[b].space != planner::Space::kDevice) continue;
    for (int32_t s = life.from; s < life.to; ++s) {
      live[static_cast<size_t>(s)] += plan.buffers[b].bytes;
    }
  }
  int64_t peak = 0;
  for (size_t s = 0; s < live.size(); ++s) {
    EXPECT_EQ(live[s], timeline.samples[s].live_bytes) << "sample " << s;
    peak = std::max(peak, live[s]);
  }
  EXPECT_EQ(peak, plan.predicted.peak_bytes);
}

void ExpectSpansObeyThePlan(const planner::Problem& problem,
                            const planner::Plan& plan,
                            const Timeline& timeline) {
  int64_t last_ns = 0;
  int64_t copies = 0;
  std::vector<int64_t> lane_end_ns(planner::kLaneCount, 0);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const executor::TraceSpan& span = timeline.spans[s];
    int64_t& end_ns = lane_end_ns[static_cast<size_t>(plan.steps[s].lane)];
    EXPECT_GE(span.start_ns, end_ns) << "step " << s;
    EXPECT_GE(span.end_ns, span.start_ns);
    end_ns = span.end_ns;
    last_ns = std::max(last_ns, span.end_ns);
    copies += plan.steps[s].lane != planner::Lane::kCompute;
    for (planner::StepId wait : plan.steps[s].wait) {
      EXPECT_GE(span.start_ns, timeline.spans[Index(wait)].end_ns);
    }
  }
  const int64_t overhead_ns =
      copies > 0 ? copies * problem.machine->copy_overhead_ns : 0;
  EXPECT_EQ(last_ns + overhead_ns, plan.predicted.step_ns);
}

TEST(ReplayTimeline, AgreesWithThePlannersReplayOnRandomProblems) {
  int with_copies = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const planner::Problem problem =
        planner::RandomProblem(seed, 25, seed % 2 == 0, true);
    const auto keep = planner::KeepEverything(problem);
    ASSERT_TRUE(keep.ok()) << keep.status();
    planner::SolveOptions options;
    options.work_limit = 20'000;
    const auto smallest = planner::SolveSmallest(problem, options);
    ASSERT_TRUE(smallest.ok()) << smallest.status();
    for (const planner::Plan* plan : {&*keep, &*smallest}) {
      SCOPED_TRACE(seed);
      with_copies += plan->predicted.d2h_bytes > 0;
      const auto timeline = ReplayTimeline(problem, *plan);
      ASSERT_TRUE(timeline.ok()) << timeline.status();
      ExpectSamplesAddUp(*plan, *timeline);
      ExpectSpansObeyThePlan(problem, *plan, *timeline);
    }
  }
  EXPECT_GT(with_copies, 3);
}

TEST(ReplayTimeline, IsRightByHand) {
  const planner::Problem problem = planner::SmallProblem();
  const planner::Plan plan = planner::SmallPlan(problem);
  const auto timeline = ReplayTimeline(problem, plan);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const executor::TraceSpan& span : timeline->spans) {
    spans.emplace_back(span.start_ns, span.end_ns);
  }
  // Out: latency 100 and 100 bytes at 1 per ns; back: at 2 per ns.
  EXPECT_THAT(spans, testing::ElementsAre(
                         testing::Pair(0, 1000), testing::Pair(1000, 1200),
                         testing::Pair(1200, 1350), testing::Pair(1350, 3350),
                         testing::Pair(3350, 6350)));
  ASSERT_EQ(timeline->samples.size(), 3);
  // Buffer 4 is copied in from 1200 on, before the second compute step, and
  // stays, because it is an output. The workspace lives during its step.
  EXPECT_EQ(timeline->lives[4].start_ns, 1200);
  EXPECT_EQ(timeline->lives[4].end_ns, 6350);
  EXPECT_EQ(timeline->lives[6].start_ns, 1350);
  EXPECT_EQ(timeline->lives[6].end_ns, 3350);
  // Buffer 0, the weight, is overwritten in place by buffer 7.
  EXPECT_EQ(timeline->lives[0].end_ns, 3350);
  EXPECT_EQ(timeline->lives[7].start_ns, 3350);
  EXPECT_EQ(timeline->lives[7].end_ns, 6350);
}

TEST(ReplayTimeline, RefusesWhatReplayRefuses) {
  const planner::Problem problem = planner::SmallProblem();
  planner::Plan plan = planner::SmallPlan(problem);
  plan.steps[1].wait = {planner::StepId(4)};
  plan.steps[4].wait = {planner::StepId(1), planner::StepId(2)};
  EXPECT_FALSE(ReplayTimeline(problem, plan).ok());
}

}  // namespace
}  // namespace loadline::tools
