// Plain data. Tested in verify_test.cc (it is valid).
#include "tests/planner/support/small_plan.h"

#include "planner/problem/ids.h"
#include "tests/planner/support/simple_plan.h"

namespace loadline::planner {

Problem SmallProblem() {
  Problem problem;
  problem.name = "small";
  problem.alignment_bytes = 100;
  const char* const names[] = {"w", "x", "y", "g", "w'"};
  for (int v = 0; v < 5; ++v) {
    Value value;
    value.file_id = v;
    value.name = names[v];
    value.bytes = 100;
    value.persistent = v == 0 || v == 4;
    problem.values.push_back(value);
  }
  problem.values[2].stash.push_back({"half", 50, 7, 9, true, 0.0});
  const ValueId w{0}, x{1}, y{2}, g{3}, w2{4};
  problem.nodes.resize(3);
  problem.nodes[0] = {0, "forward", 1000, {x, w}, {y}, 0, true, {}, {}};
  problem.nodes[1] = {1, "grad", 2000, {y}, {g}, 10, true, {}, {}};
  problem.nodes[2] = {2, "update", 3000, {g, w}, {w2}, 0, false, {{w, w2}}, {}};
  problem.outputs = {y};
  Machine machine;
  machine.name = "test";
  machine.device_bytes = 1 << 20;
  machine.d2h.bytes_per_s = 1e9;
  machine.h2d.bytes_per_s = 2e9;
  machine.d2h.latency_ns = machine.h2d.latency_ns = 100;
  machine.d2h_h2d_factor = 0.5;
  machine.host_bytes = 1000;
  problem.machine = machine;
  return problem;
}

Plan SmallPlan(const Problem& problem) {
  const ValueId w{0}, x{1}, y{2}, g{3}, w2{4};
  Plan plan;
  plan.budget_bytes = 600;
  plan.arena_bytes = 510;
  plan.host_bytes = 100;
  plan.buffers = {
      {w, 100, Space::kDevice, 0},         {x, 100, Space::kDevice, 100},
      {y, 100, Space::kDevice, 200},       {y, 100, Space::kHost, 0},
      {y, 100, Space::kDevice, 300},       {g, 100, Space::kDevice, 400},
      {kNoValue, 10, Space::kDevice, 500}, {w2, 100, Space::kDevice, 0}};
  const auto b = [](int id) { return BufferId(id); };
  plan.steps.resize(5);
  plan.steps[0].node = NodeId(0);
  plan.steps[0].in = {b(1), b(0)};
  plan.steps[0].out = {b(2)};
  plan.steps[1].lane = Lane::kD2h;
  plan.steps[1].kind = StepKind::kCopy;
  plan.steps[1].from = b(2);
  plan.steps[1].to = b(3);
  plan.steps[1].wait = {StepId(0)};
  plan.steps[2].lane = Lane::kH2d;
  plan.steps[2].kind = StepKind::kCopy;
  plan.steps[2].from = b(3);
  plan.steps[2].to = b(4);
  plan.steps[2].wait = {StepId(1)};
  plan.steps[3].node = NodeId(1);
  plan.steps[3].in = {b(4)};
  plan.steps[3].out = {b(5)};
  plan.steps[3].workspace = b(6);
  plan.steps[3].wait = {StepId(2)};
  plan.steps[4].node = NodeId(2);
  plan.steps[4].in = {b(5), b(0)};
  plan.steps[4].out = {b(7)};
  plan.sequence = {NodeId(0), NodeId(1), NodeId(2)};
  plan.decisions = {{y, Action::kOffload, "idle until its gradient"}};
  Predict(problem, plan);
  return plan;
}

}  // namespace loadline::planner
