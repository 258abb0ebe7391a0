// The rules about steps: lanes, inputs and outputs, copies, codecs, waits, how
// often nodes run. Each by a minimal plan that breaks it.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace loadline::planner
