// One pass over the given order with the current buffer of each value. Every
// step waits for the last step of each lane that touched what it needs, so
// validity is plain to see. Tested in verify_test.cc.
#include "tests/planner/support/simple_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/problem/ids.h"
#include "planner/verify/verify.h"
#include "tests/planner/support/random_problem.h"

namespace loadline::planner {
namespace {

class SimplePlanner {
 public:
  SimplePlanner(const Problem& problem, uint64_t seed)
      : problem_(problem), index_(IndexProblem(problem)), random_(seed) {}

  Plan Make() {
    current_.assign(problem_.values.size(), kNoBuffer);
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      if (index_.producer[v] < 0) {
        current_[v] = NewBuffer(ValueId(static_cast<int32_t>(v)));
      }
    }
    for (size_t n = 0; n < problem_.nodes.size(); ++n) RunNode(n);
    plan_.arena_bytes = next_device_;
    plan_.budget_bytes = next_device_;
    plan_.host_bytes = next_host_;
    for (ValueId id : problem_.outputs) {
      plan_.decisions.push_back({id, Action::kKeep, "it is an output"});
    }
    Predict(problem_, plan_);
    return plan_;
  }

 private:
  BufferId LayOut(ValueId value, int64_t bytes, Space space) {
    int64_t& next = space == Space::kHost ? next_host_ : next_device_;
    const int64_t offset = next;
    const int64_t a = problem_.alignment_bytes;
    next += (bytes + a - 1) / a * a;
    return PlaceAt(value, bytes, space, offset);
  }

  BufferId PlaceAt(ValueId value, int64_t bytes, Space space, int64_t offset) {
    plan_.buffers.push_back({value, bytes, space, offset});
    last_touch_.push_back(StepId(-1));
    return BufferId(static_cast<int32_t>(plan_.buffers.size() - 1));
  }

  BufferId NewBuffer(ValueId value) {
    return LayOut(value, problem_.value(value).bytes, Space::kDevice);
  }

  // The step waits for the last step that touched each of its buffers; since
  // that one waited for the one before, it comes after all of them.
  StepId AddStep(Step step, std::vector<BufferId> touched) {
    const StepId id{static_cast<int32_t>(plan_.steps.size())};
    for (BufferId buffer : touched) {
      const StepId last = last_touch_[Index(buffer)];
      if (last != StepId(-1) && last != id) step.wait.push_back(last);
      last_touch_[Index(buffer)] = id;
    }
    std::sort(step.wait.begin(), step.wait.end());
    step.wait.erase(std::unique(step.wait.begin(), step.wait.end()),
                    step.wait.end());
    plan_.steps.push_back(std::move(step));
    return id;
  }

  void RunNode(size_t n) {
    const Node& node = problem_.nodes[n];
    for (ValueId input : node.inputs) {
      if (!problem_.value(input).persistent && random_.OneIn(4)) {
        const int32_t producer = index_.producer[Index(input)];
        if (producer >= 0 && MayRunAgain(static_cast<size_t>(producer))) {
          AddNodeStep(static_cast<size_t>(producer), /*again=*/true);
        }
      }
    }
    AddNodeStep(n, /*again=*/false);
    if (!problem_.machine.has_value()) return;
    for (ValueId output : node.outputs) {
      if (problem_.value(output).offload && random_.OneIn(3)) {
        RoundTrip(output);
      }
    }
  }

  // All that it reads is still there: nothing of it has been written over.
  bool MayRunAgain(size_t n) const {
    const Node& node = problem_.nodes[n];
    bool may = node.recompute;
    for (ValueId input : node.inputs) {
      may = may && !Spent(input);
    }
    return may;
  }

  bool Spent(ValueId value) const {
    return spent_.size() > Index(value) && spent_[Index(value)];
  }

  void AddNodeStep(size_t n, bool again) {
    const Node& node = problem_.nodes[n];
    Step step;
    step.node = NodeId(static_cast<int32_t>(n));
    std::vector<BufferId> touched;
    for (ValueId input : node.inputs) {
      step.in.push_back(current_[Index(input)]);
      touched.push_back(step.in.back());
    }
    std::vector<BufferId> made;
    for (ValueId output : node.outputs) {
      made.push_back(OutputBuffer(n, output, again));
    }
    step.out = made;
    if (node.workspace_bytes > 0) {
      step.workspace = LayOut(kNoValue, node.workspace_bytes, Space::kDevice);
    }
    if (!node.variants.empty() && random_.OneIn(2)) {
      step.variant = node.variants[0].name;
      step.workspace = node.variants[0].workspace_bytes == 0
                           ? kNoBuffer
                           : LayOut(kNoValue, node.variants[0].workspace_bytes,
                                    Space::kDevice);
      // A workspace placed above for the plain node would have no step.
      if (node.workspace_bytes > 0) DropUnusedWorkspace(step);
    }
    touched.insert(touched.end(), made.begin(), made.end());
    for (size_t o = 0; o < made.size(); ++o) {
      current_[Index(node.outputs[o])] = made[o];
    }
    AddStep(std::move(step), touched);
    plan_.sequence.push_back(NodeId(static_cast<int32_t>(n)));
  }

  // Two workspaces lie at the end of the list; the first has no use.
  void DropUnusedWorkspace(Step& step) {
    plan_.buffers.erase(plan_.buffers.end() - 2);
    last_touch_.pop_back();
    step.workspace = BufferId(static_cast<int32_t>(plan_.buffers.size() - 1));
  }

  BufferId OutputBuffer(size_t n, ValueId output, bool again) {
    const Node& node = problem_.nodes[n];
    for (const auto& [in, out] : node.inplace) {
      if (out != output || again) continue;
      const bool update = index_.next_version[Index(in)] == out;
      const bool last = index_.consumers[Index(in)].back() ==
                            NodeId(static_cast<int32_t>(n)) &&
                        !index_.is_output[Index(in)] &&
                        !problem_.value(in).persistent;
      if (!update && !last) continue;
      spent_.resize(problem_.values.size(), false);
      spent_[Index(in)] = true;
      const Buffer& old = plan_.buffer(current_[Index(in)]);
      return PlaceAt(out, old.bytes, Space::kDevice, old.offset);
    }
    return NewBuffer(output);
  }

  // Out to the host and back to the same address.
  void RoundTrip(ValueId value) {
    const BufferId device = current_[Index(value)];
    const int64_t bytes = problem_.value(value).bytes;
    const BufferId host = LayOut(value, bytes, Space::kHost);
    Step out;
    out.lane = Lane::kD2h;
    out.kind = StepKind::kCopy;
    out.from = device;
    out.to = host;
    AddStep(std::move(out), {device, host});
    const BufferId back =
        PlaceAt(value, bytes, Space::kDevice, plan_.buffer(device).offset);
    Step in;
    in.lane = Lane::kH2d;
    in.kind = StepKind::kCopy;
    in.from = host;
    in.to = back;
    AddStep(std::move(in), {host, device, back});
    current_[Index(value)] = back;
  }

  const Problem& problem_;
  ProblemIndex index_;
  TestRandom random_;
  Plan plan_;
  std::vector<BufferId> current_;   // by value
  std::vector<StepId> last_touch_;  // by buffer
  std::vector<bool> spent_;         // by value: written over in place
  int64_t next_device_ = 0;
  int64_t next_host_ = 0;
};

}  // namespace

Plan SimplePlan(const Problem& problem, uint64_t seed) {
  return SimplePlanner(problem, seed).Make();
}

void Predict(const Problem& problem, Plan& plan) {
  plan.problem_name = problem.name;
  plan.problem_sha256 = ProblemSha256(problem);
  const auto prediction = Replay(problem, plan);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  plan.predicted = *prediction;
}

}  // namespace loadline::planner
