// Each rule of *valid* by a minimal plan that breaks it, from one valid plan.
#include "planner/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tests/planner/support/random_problem.h"
#include "tests/planner/support/simple_plan.h"
#include "tests/planner/support/small_plan.h"

namespace loadline::planner {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string message;  // part of what Verify says
  std::function<void(Problem&, Plan&)> break_it;
};

BufferId B(int id) { return BufferId(id); }

// A step that runs `codec` over two buffers on the compute lane.
Step CodecStep(StepKind kind, int from, int to) {
  Step step;
  step.kind = kind;
  step.from = B(from);
  step.to = B(to);
  step.codec = "half";
  return step;
}

std::vector<Case> Cases() {
  return {
      {"for problem 'other'",
       [](Problem&, Plan& p) { p.problem_name = "other"; }},
      {"sha256", [](Problem&, Plan& p) { p.problem_sha256 = ""; }},
      {"arena_bytes 510 exceeds budget_bytes 509",
       [](Problem&, Plan& p) { p.budget_bytes = 509; }},
      {"exceeds the machine's host_bytes 1000",
       [](Problem&, Plan& p) { p.host_bytes = 1001; }},
      {"buffer 6 (workspace) ends at 510, beyond arena_bytes 509",
       [](Problem&, Plan& p) { p.arena_bytes = 509; }},
      {"buffer 3 (value 2 'y') ends at 100, beyond host_bytes 99",
       [](Problem&, Plan& p) { p.host_bytes = 99; }},
      {"buffer 5 (value 3 'g'): its offset 401 is no multiple of 100",
       [](Problem&, Plan& p) { p.buffers[5].offset = 401; }},
      {"buffer 1: its offset -100",
       [](Problem&, Plan& p) { p.buffers[1].offset = -100; }},
      {"are negative or overflow",
       [](Problem&, Plan& p) { p.buffers[1].bytes = INT64_MAX; }},
      {"buffer 1: its value does not exist",
       [](Problem&, Plan& p) { p.buffers[1].value = ValueId(5); }},
      {"step 0: its node does not exist",
       [](Problem&, Plan& p) { p.steps[0].node = NodeId(3); }},
      {"step 0: 1 input buffers for the 2 inputs of node 0 'forward'",
       [](Problem&, Plan& p) { p.steps[0].in.pop_back(); }},
      {"step 0: an output buffer does not exist",
       [](Problem&, Plan& p) { p.steps[0].out[0] = B(-1); }},
      {"step 0: node 0 'forward' has no variant 'fast'",
       [](Problem&, Plan& p) { p.steps[0].variant = "fast"; }},
      {"step 2: waits for a step that does not exist",
       [](Problem&, Plan& p) { p.steps[2].wait = {StepId(5)}; }},
      {"step 0 (node 0 'forward') can never start",
       [](Problem&, Plan& p) { p.steps[0].wait = {StepId(2)}; }},
      {"buffer 2 (value 2 'y') has 99 bytes, not 100",
       [](Problem&, Plan& p) { p.buffers[2].bytes = 99; }},
      {"buffer 1 (value 1 'x') is an input and begins on the device",
       [](Problem&, Plan& p) {
         p.buffers[1].space = Space::kHost;
         p.host_bytes = 200;
       }},
      {"buffer 8 (value 1 'x') and buffer 1 both hold",
       [](Problem&, Plan& p) {
         p.buffers.push_back({ValueId(1), 100, Space::kDevice, 300});
       }},
      {"buffer 8 (value 3 'g') is written by no step",
       [](Problem&, Plan& p) {
         p.buffers.push_back({ValueId(3), 100, Space::kDevice, 300});
       }},
      {"buffer 8 (workspace) holds no value and is no step's workspace",
       [](Problem&, Plan& p) {
         p.buffers.push_back({kNoValue, 10, Space::kDevice, 300});
       }},
      {"persistent value 9 'w9' has no buffer that holds it from the beginning",
       [](Problem& q, Plan& p) {
         q.values.push_back(q.values[0]);
         q.values.back().file_id = 9;
         q.values.back().name = "w9";
         p.problem_sha256 = ProblemSha256(q);
       }},
      {"buffer 2 (value 2 'y') is written by step 0",
       [](Problem&, Plan& p) { p.steps[2].to = B(2); }},
      {"step 3 (node 1 'grad') is on the h2d lane",
       [](Problem&, Plan& p) { p.steps[3].lane = Lane::kH2d; }},
      {"step 2 (compute copy) is a copy on the compute lane",
       [](Problem&, Plan& p) { p.steps[2].lane = Lane::kCompute; }},
      {"step 1 (h2d copy) does not go from host to device",
       [](Problem&, Plan& p) { p.steps[1].lane = Lane::kH2d; }},
      {"step 3 (node 1 'grad') reads value 2 'y' but is given buffer 1",
       [](Problem&, Plan& p) { p.steps[3].in[0] = B(1); }},
      {"step 3 (node 1 'grad') reads buffer 3 (value 2 'y'), which is on the "
       "host",
       [](Problem&, Plan& p) { p.steps[3].in[0] = B(3); }},
      {"step 4 (node 2 'update') reads value 0 'w' but is given buffer 7",
       [](Problem&, Plan& p) { p.steps[4].in[1] = B(7); }},
      {"step 3 (node 1 'grad') has no workspace; it needs 10 bytes",
       [](Problem&, Plan& p) {
         p.steps[3].workspace = kNoBuffer;
         p.buffers.erase(p.buffers.begin() + 6);
         p.steps[4].out[0] = B(6);
       }},
      {"buffer 6 (workspace) has 9 bytes, not 10",
       [](Problem&, Plan& p) { p.buffers[6].bytes = 9; }},
      {"step 2 (h2d copy) copies buffer 3 (value 2 'y') to buffer 4 (value 3",
       [](Problem&, Plan& p) { p.buffers[4].value = ValueId(3); }},
      {"which may not be copied to the host",
       [](Problem& q, Plan& p) {
         q.values[2].offload = false;
         p.problem_sha256 = ProblemSha256(q);
       }},
      {"the problem's machine has no copy rates",
       [](Problem& q, Plan& p) {
         q.machine->h2d_bytes_per_s = 0;
         p.problem_sha256 = ProblemSha256(q);
       }},
      {"node 9 'extra' never runs",
       [](Problem& q, Plan& p) {
         q.nodes.push_back({9, "extra", 1, {}, {}, 0, true, {}, {}});
         p.problem_sha256 = ProblemSha256(q);
       }},
      {"node 2 'update' runs 2 times, but may run only once",
       [](Problem&, Plan& p) {
         p.buffers.push_back({ValueId(4), 100, Space::kDevice, 300});
         p.steps.push_back(p.steps[4]);
         p.steps[5].out[0] = B(8);
       }},
      {"sequence differs from the compute steps at position 1",
       [](Problem&, Plan& p) { p.sequence[1] = NodeId(0); }},
      {"step 3 (node 1 'grad') reads buffer 4 (value 2 'y'), but does not "
       "surely come after step 2 (h2d copy)",
       [](Problem&, Plan& p) { p.steps[3].wait.clear(); }},
      {"buffer 1 (value 1 'x') and buffer 2 (value 2 'y') share bytes",
       [](Problem&, Plan& p) { p.buffers[2].offset = 100; }},
      {"buffer 2 (value 2 'y') and buffer 5 (value 3 'g') share bytes from "
       "offset 200 on",
       [](Problem&, Plan& p) {
         p.buffers[5].offset = 200;  // grad would write over what it reads
         p.steps[3].in[0] = B(2);
       }},
      // The update waits for nobody, so its copy out may read while it writes.
      {"buffer 0 (value 0 'w') and buffer 7 (value 4 'w'') share bytes",
       [](Problem&, Plan& p) {
         p.host_bytes = 200;
         p.buffers.push_back({ValueId(0), 100, Space::kHost, 100});
         p.steps.push_back(p.steps[1]);
         p.steps[5].from = B(0);
         p.steps[5].to = B(8);
       }},
      {"step 5 (encode 'half'): buffer 8 (value 2 'y') has 100 bytes, not 50",
       [](Problem&, Plan& p) {
         p.buffers.push_back({ValueId(2), 100, Space::kDevice, 400});
         p.steps.push_back(CodecStep(StepKind::kEncode, 2, 8));
       }},
      {"step 5 (decode 'half'): buffer 2 (value 2 'y') is not encoded",
       [](Problem&, Plan& p) {
         p.buffers.push_back({ValueId(2), 100, Space::kDevice, 400});
         p.steps.push_back(CodecStep(StepKind::kDecode, 2, 8));
       }},
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
      {"persistent value 4 'w'' does not end where the step began",
       [](Problem&, Plan& p) { p.buffers[7].offset = 300; }},
      {"output value 1 'x' is on the device in no buffer at the end: buffer 1 "
       "(value 1 'x') is overwritten by buffer 5 (value 3 'g')",
       [](Problem& q, Plan& p) {
         q.outputs = {ValueId(1)};
         p.problem_sha256 = ProblemSha256(q);
         p.buffers[5].offset = 100;
       }},
  };
}

TEST(Verify, NamesTheRuleThatAPlanBreaks) {
  for (const Case& test : Cases()) {
    Problem problem = SmallProblem();
    Plan plan = SmallPlan(problem);
    test.break_it(problem, plan);
    const absl::Status status = Verify(problem, plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << test.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message));
  }
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

TEST(Verify, AcceptsAWeightThatLivesOnTheHost) {
  // w comes in, is updated in place, and goes back to the same host address.
  Problem problem = SmallProblem();
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

TEST(Verify, RefusesAMalformedProblem) {
  Problem problem = SmallProblem();
  const Plan plan = SmallPlan(problem);
  problem.values[1].bytes = -1;
  EXPECT_EQ(Verify(problem, plan).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace loadline::planner
