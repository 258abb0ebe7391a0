// Valid plans are accepted; totals, predictions and bounds must agree with the
// replay. Rules about buffers and steps: verify_buffers_test.cc and
// verify_steps_test.cc.
#include "planner/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/simple_plan.h"
#include "tests/planner/support/small_plan.h"
#include "tests/planner/verify/broken_plan.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;

TEST(Verify, NamesWhatAPlanSaysWronglyOfItself) {
  ExpectRefused({
      {"for problem 'other'",
       [](Problem&, Plan& p) { p.problem_name = "other"; }},
      {"sha256", [](Problem&, Plan& p) { p.problem_sha256 = ""; }},
      {"arena_bytes or host_bytes is negative",
       [](Problem&, Plan& p) { p.arena_bytes = -1; }},
      {"arena_bytes or host_bytes is negative",
       [](Problem&, Plan& p) { p.host_bytes = -1; }},
      {"arena_bytes 510 exceeds budget_bytes 509",
       [](Problem&, Plan& p) { p.budget_bytes = 509; }},
      {"exceeds the machine's host_bytes 1000",
       [](Problem&, Plan& p) { p.host_bytes = 1001; }},
      {"decision 1 is a second one about value 2 'y'",
       [](Problem&, Plan& p) { p.decisions.push_back(p.decisions[0]); }},
      {"decision 1 is about no value",
       [](Problem&, Plan& p) {
         p.decisions.push_back({ValueId(5), Action::kKeep, ""});
       }},
      {"predicted.step_ns is 6302, but the replay gives 6350",
       [](Problem&, Plan& p) { p.predicted.step_ns = 6302; }},
      {"predicted.peak_bytes is 0",
       [](Problem&, Plan& p) { p.predicted.peak_bytes = 0; }},
      {"bounds.peak_bytes 511 is no bound: the plan reaches ",
       [](Problem&, Plan& p) { p.bounds.peak_bytes = 511; }},
      {"bounds.step_ns 6352 is no bound: the plan reaches 6350",
       [](Problem&, Plan& p) { p.bounds.step_ns = 6352; }},
  });
}

TEST(Verify, SaysThatAStepTimeLacksTheOverheadOfCopies) {
  Problem problem = SmallProblem();
  problem.machine->format_version = 1;  // whose hash knows no overhead
  const Plan plan = SmallPlan(problem);
  problem.machine->copy_overhead_ns = 7;
  EXPECT_THAT(std::string(Verify(problem, plan).message()),
              HasSubstr("predicted.step_ns is 6350, but the replay gives 6364, "
                        "which counts the machine's 7 ns of overhead for each "
                        "copy"));
}

TEST(Verify, AcceptsAPlanThatNamesTheMachinesOtherVersion) {
  Problem problem = SmallProblem();
  const Plan plan2 = SmallPlan(problem);
  problem.machine->format_version = 1;
  const Plan plan1 = SmallPlan(problem);
  EXPECT_NE(plan1.problem_sha256, plan2.problem_sha256);
  for (const int version : {1, 2}) {
    problem.machine->format_version = version;
    EXPECT_EQ(Verify(problem, plan1), absl::OkStatus());
    EXPECT_EQ(Verify(problem, plan2), absl::OkStatus());
  }
  problem.machine->h2d.latency_ns = 99;
  EXPECT_THAT(std::string(Verify(problem, plan1).message()),
              HasSubstr("sha256"));
}

TEST(Verify, AcceptsTheSmallPlan) {
  const Problem problem = SmallProblem();
  EXPECT_EQ(Verify(problem, SmallPlan(problem)), absl::OkStatus());
}

TEST(Verify, AcceptsSimplePlansOfRandomProblems) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Problem problem = RandomProblem(seed, 3 + static_cast<int>(seed),
                                          seed % 2 == 0, seed % 3 != 0);
    EXPECT_EQ(Verify(problem, SimplePlan(problem, seed)), absl::OkStatus())
        << seed;
  }
}

TEST(Verify, AcceptsAStashedValue) {
  // y is encoded after forward; its bytes go to g's; grad reads the decoded.
  Problem problem = SmallProblem();
  problem.outputs.clear();
  Plan plan = SmallPlan(problem);
  plan.buffers[3] = {ValueId(2), 50, Space::kDevice, 400};
  plan.steps[1] = CodecStep(StepKind::kEncode, 2, 3);
  plan.steps[2] = CodecStep(StepKind::kDecode, 3, 4);
  plan.steps[3].wait.clear();
  plan.buffers[5].offset = 200;
  plan.host_bytes = 0;
  Predict(problem, plan);
  EXPECT_EQ(Verify(problem, plan), absl::OkStatus());
  EXPECT_EQ(plan.predicted.compute_ns, 6000 + 7 + 9);
  plan.steps[3].in[0] = B(3);
  EXPECT_THAT(std::string(Verify(problem, plan).message()),
              HasSubstr("reads buffer 3 (value 2 'y'), which is encoded"));
}

// w comes in, is updated in place, and goes back to the same host address.
Plan PlanWithHostWeight(const Problem& problem) {
  Plan plan = SmallPlan(problem);
  plan.host_bytes = 200;
  plan.buffers.push_back({ValueId(0), 100, Space::kHost, 100});  // 8: home
  plan.buffers.push_back({ValueId(4), 100, Space::kHost, 100});  // 9: its end
  Step in;
  in.lane = Lane::kH2d;
  in.kind = StepKind::kCopy;
  in.from = B(8);
  in.to = B(0);
  Step out;
  out.lane = Lane::kD2h;
  out.kind = StepKind::kCopy;
  out.from = B(7);
  out.to = B(9);
  out.wait = {StepId(4)};
  plan.steps.push_back(out);
  // Listed last but first on its lane would need a place before step 2: steps
  // of one lane run in list order.
  plan.steps.insert(plan.steps.begin(), in);
  for (Step& step : plan.steps) {
    for (StepId& wait : step.wait) wait = StepId(static_cast<int>(wait) + 1);
  }
  plan.steps[1].wait = {StepId(0)};
  Predict(problem, plan);
  return plan;
}

TEST(Verify, AcceptsAWeightThatLivesOnTheHost) {
  const Problem problem = SmallProblem();
  Plan plan = PlanWithHostWeight(problem);
  EXPECT_EQ(Verify(problem, plan), absl::OkStatus());
  plan.buffers[9].offset = 0;
  EXPECT_THAT(std::string(Verify(problem, plan).message()),
              HasSubstr("persistent value 4 'w'' does not end where the step"));
}

TEST(Verify, WithoutAddressesAsksForTheExactPeakAndNoOffsets) {
  Problem problem = SmallProblem();
  problem.addresses = false;
  Plan plan = SmallPlan(problem);
  for (Buffer& buffer : plan.buffers) buffer.offset = 0;
  Predict(problem, plan);
  // Grad: w, y back (the output), g, workspace; the first y has gone.
  EXPECT_EQ(plan.predicted.peak_bytes, 310);
  plan.arena_bytes = 310;
  EXPECT_EQ(Verify(problem, plan), absl::OkStatus());
  plan.arena_bytes = 311;
  EXPECT_THAT(std::string(Verify(problem, plan).message()),
              HasSubstr("arena_bytes 311 is not the peak of live bytes, 310"));
  plan.arena_bytes = 310;
  plan.host_bytes = 99;
  EXPECT_THAT(std::string(Verify(problem, plan).message()),
              HasSubstr("less than the host buffers alive at once, 100"));
  plan.host_bytes = 100;
  plan.buffers[2].offset = 100;
  EXPECT_THAT(std::string(Verify(problem, plan).message()),
              HasSubstr("has an offset, but the problem has no addresses"));
}

// On the device it is no home, so it shares no place with the host's.
TEST(Verify, AcceptsAnOutputThatLivesOnTheHostWithoutAddresses) {
  Problem problem = SmallProblem();
  problem.addresses = false;
  problem.outputs.push_back(ValueId(4));
  Plan plan = PlanWithHostWeight(problem);
  for (Buffer& buffer : plan.buffers) buffer.offset = 0;
  // The old weight is read again between its update and the copy home.
  plan.buffers.push_back({ValueId(0), 100, Space::kDevice, 0});
  Step again = plan.steps[0];
  again.to = B(10);
  again.wait = {StepId(5)};
  plan.steps.push_back(again);
  plan.steps[6].wait.push_back(StepId(7));
  Predict(problem, plan);
  plan.arena_bytes = plan.predicted.peak_bytes;
  EXPECT_EQ(Verify(problem, plan), absl::OkStatus());
}

// The forward pass runs again after the update and reads the old weight.
TEST(Verify, RefusesAReadAfterTheUpdateWithoutAddresses) {
  Problem problem = SmallProblem();
  problem.addresses = false;
  Plan plan = SmallPlan(problem);
  for (Buffer& buffer : plan.buffers) buffer.offset = 0;
  const auto b = [](int id) { return BufferId(id); };
  plan.buffers.push_back(plan.buffers[2]);
  Step again = plan.steps[0];
  again.out = {b(8)};
  plan.steps.push_back(again);
  plan.sequence.push_back(NodeId(0));
  Predict(problem, plan);
  plan.arena_bytes = plan.predicted.peak_bytes;
  EXPECT_THAT(std::string(Verify(problem, plan).message()),
              HasSubstr("buffer 0 (value 0 'w') and buffer 7 (value 4 'w'') "
                        "are the home of one value, and no order keeps"));
  // Before the update, it may.
  std::swap(plan.steps.back(), plan.steps[4]);
  std::swap(plan.sequence[2], plan.sequence[3]);
  Predict(problem, plan);
  plan.arena_bytes = plan.predicted.peak_bytes;
  EXPECT_EQ(Verify(problem, plan), absl::OkStatus());
}

TEST(Verify, RefusesAMalformedProblem) {
  Problem problem = SmallProblem();
  const Plan plan = SmallPlan(problem);
  problem.values[1].bytes = -1;
  EXPECT_EQ(Verify(problem, plan).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::planner
