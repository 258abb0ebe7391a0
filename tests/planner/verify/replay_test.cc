// Replay against arithmetic done by hand.
#include <gtest/gtest.h>

#include <vector>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

// SmallProblem: compute 1000, 2000, 3000; 100 ns of latency; 100 bytes take
// 100 ns out (1 byte per ns) and 50 ns back (2 bytes per ns).

TEST(Replay, AddsLatencyAndBytesOverRate) {
  const Problem problem = SmallProblem();
  const auto prediction = Replay(problem, SmallPlan(problem));
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  // forward 0-1000, d2h 1000-1200, h2d 1200-1350, grad 1350-3350, update -6350.
  EXPECT_EQ(prediction->step_ns, 6350);
  EXPECT_EQ(prediction->compute_ns, 6000);
  EXPECT_EQ(prediction->recompute_ns, 0);
  EXPECT_EQ(prediction->stall_ns, 350);
  EXPECT_EQ(prediction->d2h_bytes, 100);
  EXPECT_EQ(prediction->h2d_bytes, 100);
  // During grad: w, y back (the output's last instance), g, workspace; the
  // first y has gone with the end of its copy. w and w' count once.
  // 100 + 100 + 100 + 10 = 310; at forward: w, x, y = 300.
  EXPECT_EQ(prediction->peak_bytes, 310);
}

TEST(Replay, CountsTheBytesOfEachDirectionApart) {
  const Problem problem = SmallProblem();
  Plan plan = SmallPlan(problem);
  plan.host_bytes = 200;
  plan.buffers.push_back({ValueId(2), 100, Space::kHost, 100});
  plan.steps.push_back(plan.steps[1]);
  plan.steps.back().to = BufferId(8);
  const auto prediction = Replay(problem, plan);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->d2h_bytes, 200);
  EXPECT_EQ(prediction->h2d_bytes, 100);
}

TEST(Replay, CountsValuesThatNoStepReadsAtTheBeginningOnly) {
  Problem problem = SmallProblem();
  Value unread;
  unread.file_id = 5;
  unread.name = "unread";
  unread.bytes = 1000;
  problem.values.push_back(unread);
  Plan plan = SmallPlan(problem);
  plan.buffers.push_back({ValueId(5), 1000, Space::kDevice, 0});
  const auto prediction = Replay(problem, plan);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->peak_bytes, 100 + 100 + 1000);  // w, x, unread
}

TEST(Replay, AddsTheOverheadOfEveryCopyToTheStep) {
  Problem problem = SmallProblem();
  problem.machine->copy_overhead_ns = 7;
  const auto prediction = Replay(problem, SmallPlan(problem));
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step_ns, 6350 + 2 * 7);
  EXPECT_EQ(prediction->compute_ns, 6000);
  EXPECT_EQ(prediction->stall_ns, 350 + 2 * 7);
}

// So that no plan of a reasonable length overflows 64 bits.
TEST(Replay, RefusesAnOverheadAboveTheLimit) {
  Problem problem = SmallProblem();
  const Plan plan = SmallPlan(problem);
  for (const int64_t overhead_ns : {INT64_MAX, INT64_MAX / 2}) {
    problem.machine->copy_overhead_ns = overhead_ns;
    EXPECT_EQ(Replay(problem, plan).status().code(),
              absl::StatusCode::kInvalidArgument)
        << overhead_ns;
  }
}

TEST(Replay, EachLinkHasItsOwnLatency) {
  Problem problem = SmallProblem();
  problem.machine->h2d.latency_ns = 30;
  const auto prediction = Replay(problem, SmallPlan(problem));
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step_ns, 6350 - 70);
}

// Two copies that do not wait for each other: `d2h` bytes out, `h2d` back.
Prediction TwoCopies(int64_t d2h, int64_t h2d, double bidirectional) {
  Problem problem;
  problem.name = "two copies";
  problem.addresses = false;
  problem.values.resize(2);
  problem.values[0] = {0, "a", d2h, true, true, {}};
  problem.values[1] = {1, "b", h2d, true, true, {}};
  problem.machine = SmallProblem().machine;
  problem.machine->d2h_h2d_factor = bidirectional;
  Plan plan;
  plan.buffers = {{ValueId(0), d2h, Space::kDevice, 0},
                  {ValueId(0), d2h, Space::kHost, 0},
                  {ValueId(1), h2d, Space::kHost, 0},
                  {ValueId(1), h2d, Space::kDevice, 0}};
  plan.steps.resize(2);
  plan.steps[0].lane = Lane::kD2h;
  plan.steps[0].kind = StepKind::kCopy;
  plan.steps[0].from = BufferId(0);
  plan.steps[0].to = BufferId(1);
  plan.steps[1].lane = Lane::kH2d;
  plan.steps[1].kind = StepKind::kCopy;
  plan.steps[1].from = BufferId(2);
  plan.steps[1].to = BufferId(3);
  const auto prediction = Replay(problem, plan);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return *prediction;
}

TEST(Replay, SlowsBothLanesWhileBothMoveBytes) {
  // Both move from 100 on: out at 0.5, back at 1 byte per ns. Back is done at
  // 100 + 400 = 500; out has moved 200 of 1000, and needs 800 more alone: 1300.
  EXPECT_EQ(TwoCopies(1000, 400, 0.5).step_ns, 1300);
  // Without the factor: out 100 + 1000.
  EXPECT_EQ(TwoCopies(1000, 400, 1.0).step_ns, 1100);
  // Nothing to move: the latency alone, and it slows nobody.
  EXPECT_EQ(TwoCopies(1000, 0, 0.5).step_ns, 1100);
  EXPECT_EQ(TwoCopies(0, 0, 0.5).step_ns, 100);
  // Ends together: 300 at 0.5 and 600 at 1 byte per ns.
  EXPECT_EQ(TwoCopies(300, 600, 0.5).step_ns, 700);
}

TEST(Replay, RoundsToTheNearestNanosecondOnce) {
  // 100 + 1001 / 2 = 600.5, rounded away from zero.
  EXPECT_EQ(TwoCopies(0, 1001, 1.0).step_ns, 601);
}

TEST(Replay, CountsTheBytesOfAStepThatTakesNoTime) {
  Problem problem;
  problem.name = "no time";
  problem.addresses = false;
  problem.values = {{0, "a", 10, false, true, {}},
                    {1, "b", 7, false, true, {}}};
  problem.nodes.resize(2);
  problem.nodes[0] = {0, "make", 0, {}, {ValueId(0)}, 5, true, {}, {}};
  problem.nodes[1] = {1, "use", 0, {ValueId(0)}, {ValueId(1)}, 0, true, {}, {}};
  Plan plan;
  plan.buffers = {{ValueId(0), 10, Space::kDevice, 0},
                  {ValueId(1), 7, Space::kDevice, 0},
                  {kNoValue, 5, Space::kDevice, 0}};
  plan.steps.resize(2);
  plan.steps[0].node = NodeId(0);
  plan.steps[0].out = {BufferId(0)};
  plan.steps[0].workspace = BufferId(2);
  plan.steps[1].node = NodeId(1);
  plan.steps[1].in = {BufferId(0)};
  plan.steps[1].out = {BufferId(1)};
  const auto prediction = Replay(problem, plan);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->step_ns, 0);
  // make: 10 + 5; use: 10 + 7, the workspace having gone.
  EXPECT_EQ(prediction->peak_bytes, 17);
}

TEST(Replay, CountsSecondRunsAsRecomputation) {
  const Problem problem = SmallProblem();
  Plan plan = SmallPlan(problem);
  plan.buffers.push_back({ValueId(2), 100, Space::kDevice, 300});
  plan.steps.insert(plan.steps.begin() + 3, plan.steps[0]);
  plan.steps[3].out = {BufferId(8)};
  const auto prediction = Replay(problem, plan);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->recompute_ns, 1000);
  EXPECT_EQ(prediction->compute_ns, 7000);
}

TEST(Replay, RefusesStepsThatWaitForEachOtherAndReferencesToNothing) {
  const Problem problem = SmallProblem();
  Plan plan = SmallPlan(problem);
  plan.steps[0].wait = {StepId(3)};
  EXPECT_FALSE(Replay(problem, plan).ok());
  plan = SmallPlan(problem);
  plan.steps[0].wait = {StepId(30)};
  EXPECT_FALSE(Replay(problem, plan).ok());
}

}  // namespace
}  // namespace loadline::planner
