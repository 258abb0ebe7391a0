// The rules about steps: lanes, inputs and outputs, copies, codecs, waits, how
// often nodes run. Each by a minimal plan that breaks it.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/planner/support/simple_plan.h"
#include "tests/planner/verify/broken_plan.h"

namespace loadline::planner {
namespace {

TEST(Verify, NamesTheRuleAboutStepsThatAPlanBreaks) {
  ExpectRefused({
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
      {"step 3: no such lane",
       [](Problem&, Plan& p) { p.steps[3].lane = static_cast<Lane>(-1); }},
      {"step 3: no such lane",
       [](Problem&, Plan& p) {
         p.steps[3].lane = static_cast<Lane>(kLaneCount);
       }},
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
      {"step 0 (node 0 'forward') needs no workspace, so it must be null",
       [](Problem&, Plan& p) {
         p.buffers.push_back({kNoValue, 0, Space::kDevice, 500});
         p.steps[0].workspace = B(8);
       }},
      {"step 1 (d2h copy): buffer 3 (value 2 'y') has 90 bytes, not 100",
       [](Problem&, Plan& p) { p.buffers[3].bytes = 90; }},
      {"step 2 (h2d copy): buffer 4 (value 2 'y') has 90 bytes, not 100",
       [](Problem&, Plan& p) { p.buffers[4].bytes = 90; }},
      {"step 2 (h2d copy) copies buffer 3 (value 2 'y') to buffer 4 (value 3",
       [](Problem&, Plan& p) { p.buffers[4].value = ValueId(3); }},
      {"which may not be copied to the host",
       [](Problem& q, Plan& p) {
         q.values[2].offload = false;
         p.problem_sha256 = ProblemSha256(q);
       }},
      {"the problem's machine has no copy rates",
       [](Problem& q, Plan& p) {
         q.machine->h2d.bytes_per_s = 0;
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
  });
}

// y is encoded after forward and decoded before grad, within the arena of
// SmallPlan. x has a codec of the same name, y another one.
struct Stashed {
  Problem problem;
  Plan plan;
};

Stashed StashedPlan() {
  Stashed stashed;
  Problem& problem = stashed.problem;
  problem = SmallProblem();
  problem.outputs.clear();
  problem.values[1].stash.push_back({"half", 50, 7, 9, true, 0.0});
  problem.values[2].stash.push_back({"other", 50, 7, 9, false, 0.6});
  Plan& plan = stashed.plan;
  plan = SmallPlan(problem);
  plan.buffers[3] = {ValueId(2), 50, Space::kDevice, 400};
  plan.buffers[5].offset = 200;
  plan.steps[1] = CodecStep(StepKind::kEncode, 2, 3);
  plan.steps[2] = CodecStep(StepKind::kDecode, 3, 4);
  plan.steps[3].wait.clear();
  plan.decisions[0].action = Action::kStash;
  plan.host_bytes = 0;
  Predict(problem, plan);
  return stashed;
}

TEST(Verify, NamesTheRuleAboutCodecsThatAPlanBreaks) {
  const Stashed stashed = StashedPlan();
  ASSERT_EQ(Verify(stashed.problem, stashed.plan), absl::OkStatus());
  const BrokenPlan cases[] = {
      {"step 2 (decode 'other'): buffer 3 (value 2 'y') is not encoded with "
       "'other'",
       [](Problem&, Plan& p) { p.steps[2].codec = "other"; }},
      {"step 2 (decode 'half'): buffer 3 (value 2 'y') is not encoded with "
       "'half'",
       [](Problem&, Plan& p) { p.steps[1].codec = "other"; }},
      {"step 1: buffer 2 (value 2 'y') has no codec 'u8'",
       [](Problem&, Plan& p) { p.steps[1].codec = "u8"; }},
      {"step 2: buffer 3 (value 2 'y') has no codec ''",
       [](Problem&, Plan& p) { p.steps[2].codec = ""; }},
      {"step 1: buffer 2 (value 2 'y') has no codec 'half'",
       [](Problem& q, Plan& p) {
         q.values[2].stash.clear();
         p.problem_sha256 = ProblemSha256(q);
       }},
      // A decode before its encode, an encode before the value is made.
      {"step 1 (decode 'half') reads buffer 3 (value 2 'y'), but does not "
       "surely come after step 2 (encode 'half'), which writes it",
       [](Problem&, Plan& p) { std::swap(p.steps[1], p.steps[2]); }},
      {"step 0 (encode 'half') reads buffer 2 (value 2 'y'), but does not "
       "surely come after step 1 (node 0 'forward')",
       [](Problem&, Plan& p) { std::swap(p.steps[0], p.steps[1]); }},
      {"step 2 (decode 'half') writes value 2 'y' but is given buffer 4 "
       "(value 1 'x')",
       [](Problem&, Plan& p) { p.buffers[4].value = ValueId(1); }},
      {"step 1 (encode 'half') is on the d2h lane",
       [](Problem&, Plan& p) { p.steps[1].lane = Lane::kD2h; }},
      {"step 1 (encode 'half'): buffer 3 (value 2 'y') has 49 bytes, not 50",
       [](Problem&, Plan& p) { p.buffers[3].bytes = 49; }},
      {"which is encoded with 'half'",
       [](Problem&, Plan& p) { p.steps[3].in[0] = B(3); }},
      {"the errors of its codecs add up to 1.2",
       [](Problem& q, Plan& p) {
         q.values[2].stash[0].error = 1.2;
         p.problem_sha256 = ProblemSha256(q);
       }},
  };
  for (const BrokenPlan& test : cases) {
    Stashed broken = StashedPlan();
    test.break_it(broken.problem, broken.plan);
    const absl::Status status = Verify(broken.problem, broken.plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << test.message;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr(test.message));
  }
}

TEST(Verify, AcceptsErrorsOfCodecsThatAddUpToOne) {
  for (const double error : {0.4, 1.0}) {
    Stashed stashed = StashedPlan();
    stashed.problem.values[2].stash[0].error = error;
    Predict(stashed.problem, stashed.plan);
    EXPECT_EQ(Verify(stashed.problem, stashed.plan), absl::OkStatus()) << error;
  }
}

// y is encoded, copied out and back, and decoded: 7, 150, 125 and 9 ns.
Plan EncodedCopies(const Problem& problem) {
  Plan plan = SmallPlan(problem);
  plan.host_bytes = 200;
  plan.arena_bytes = plan.budget_bytes = 900;
  plan.buffers.push_back({ValueId(2), 50, Space::kDevice, 600});   // 8
  plan.buffers.push_back({ValueId(2), 50, Space::kHost, 100});     // 9
  plan.buffers.push_back({ValueId(2), 50, Space::kDevice, 700});   // 10
  plan.buffers.push_back({ValueId(2), 100, Space::kDevice, 800});  // 11
  const auto copy = [](Lane lane, int from, int to, int after) {
    Step step;
    step.kind = StepKind::kCopy;
    step.lane = lane;
    step.from = B(from);
    step.to = B(to);
    step.wait = {StepId(after)};
    return step;
  };
  plan.steps.push_back(CodecStep(StepKind::kEncode, 4, 8));  // 5
  plan.steps.push_back(copy(Lane::kD2h, 8, 9, 5));           // 6
  plan.steps.push_back(copy(Lane::kH2d, 9, 10, 6));          // 7
  plan.steps.push_back(CodecStep(StepKind::kDecode, 10, 11));
  plan.steps.back().wait = {StepId(7)};
  Predict(problem, plan);
  return plan;
}

TEST(Verify, KnowsTheCodecOfACopiedBuffer) {
  const Problem problem = SmallProblem();
  const Plan plan = EncodedCopies(problem);
  ASSERT_EQ(Verify(problem, plan), absl::OkStatus());
  EXPECT_EQ(plan.predicted.step_ns, 6350 + 7 + 150 + 125 + 9);
  const auto message = [&](const std::function<void(Plan&)>& change) {
    Plan broken = plan;
    change(broken);
    return std::string(Verify(problem, broken).message());
  };
  // A copy of an encoded buffer is no plain value.
  EXPECT_THAT(message([](Plan& p) {
                p.steps[8] = CodecStep(StepKind::kEncode, 10, 11);
              }),
              testing::HasSubstr("buffer 10 (value 2 'y'), which is encoded"));
  // It has the bytes of the encoded source, on both sides.
  EXPECT_THAT(
      message([](Plan& p) { p.buffers[9].bytes = 100; }),
      testing::HasSubstr("buffer 9 (value 2 'y') has 100 bytes, not 50"));
  EXPECT_THAT(
      message([](Plan& p) { p.buffers[10].bytes = 100; }),
      testing::HasSubstr("buffer 10 (value 2 'y') has 100 bytes, not 50"));
  // A copy of a plain buffer is not encoded.
  EXPECT_THAT(message([](Plan& p) {
                p.steps[6].from = B(4);
                p.buffers[9].bytes = p.buffers[10].bytes = 100;
              }),
              testing::HasSubstr("buffer 10 (value 2 'y') is not encoded"));
}

}  // namespace
}  // namespace loadline::planner
