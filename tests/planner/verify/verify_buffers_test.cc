// The rules about buffers: sizes, places, who fills them, shared bytes, where
// values are at the end. Each by a minimal plan that breaks it.
#include <gtest/gtest.h>

#include "tests/planner/verify/broken_plan.h"

namespace loadline::planner {
namespace {

TEST(Verify, NamesTheRuleAboutBuffersThatAPlanBreaks) {
  ExpectRefused({
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
      {"buffer 6 (workspace) has 9 bytes, not 10",
       [](Problem&, Plan& p) { p.buffers[6].bytes = 9; }},
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
      {"persistent value 4 'w'' does not end where the step began",
       [](Problem&, Plan& p) { p.buffers[7].offset = 300; }},
      {"output value 1 'x' is on the device in no buffer at the end: buffer 1 "
       "(value 1 'x') is overwritten by buffer 5 (value 3 'g')",
       [](Problem& q, Plan& p) {
         q.outputs = {ValueId(1)};
         p.problem_sha256 = ProblemSha256(q);
         p.buffers[5].offset = 100;
       }},
  });
}

}  // namespace
}  // namespace loadline::planner
