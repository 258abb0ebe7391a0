// Handmade plans for the toy model. Load verifies them like any other.
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/check.h"
#include "planner/verify/verify.h"
#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

using planner::BufferId;
using planner::StepId;

constexpr int64_t kAlignment = 256;

class PlanMaker {
 public:
  explicit PlanMaker(const planner::Problem& problem) : problem_(problem) {
    for (size_t v = 0; v < problem.values.size(); ++v) {
      by_name_[problem.values[v].name] =
          planner::ValueId{static_cast<int32_t>(v)};
    }
  }

  // A place of `bytes` bytes that is used only once.
  int64_t NewPlace(int64_t bytes, Space space = Space::kDevice) {
    int64_t& end = space == Space::kDevice ? arena_end_ : host_end_;
    const int64_t place = end;
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }

  // A new buffer of a value at a place; it becomes the value's current one.
  BufferId Put(const std::string& value, int64_t place,
               Space space = Space::kDevice) {
    const planner::ValueId id = by_name_.at(value);
    plan_.buffers.push_back({.value = id,
                             .bytes = problem_.value(id).bytes,
                             .space = space,
                             .offset = place});
    current_[value] = BufferId{static_cast<int32_t>(plan_.buffers.size() - 1)};
    return current_[value];
  }
  BufferId PutAnew(const std::string& value) {
    return Put(value, NewPlace(problem_.value(by_name_.at(value)).bytes));
  }
  void Use(const std::string& value, BufferId buffer) {
    current_[value] = buffer;
  }
  int64_t PlaceOf(const std::string& value) {
    return plan_.buffer(current_.at(value)).offset;
  }

  // Runs node `n` on the current buffers; Put must have made its outputs.
  StepId Run(size_t n, int64_t workspace_place, std::vector<StepId> wait = {}) {
    const planner::Node& node = problem_.nodes[n];
    planner::Step step;
    step.node = planner::NodeId{static_cast<int32_t>(n)};
    for (planner::ValueId id : node.inputs) {
      step.in.push_back(current_.at(problem_.value(id).name));
    }
    for (planner::ValueId id : node.outputs) {
      step.out.push_back(current_.at(problem_.value(id).name));
    }
    if (node.workspace_bytes > 0) {
      plan_.buffers.push_back(
          {.bytes = node.workspace_bytes, .offset = workspace_place});
      step.workspace = BufferId{static_cast<int32_t>(plan_.buffers.size() - 1)};
    }
    step.wait = std::move(wait);
    plan_.sequence.push_back(step.node);
    return Add(std::move(step));
  }

  StepId Copy(Lane lane, BufferId from, BufferId to, std::vector<StepId> wait) {
    planner::Step step;
    step.lane = lane;
    step.kind = planner::StepKind::kCopy;
    step.from = from;
    step.to = to;
    step.wait = std::move(wait);
    return Add(std::move(step));
  }

  planner::Plan Finish() {
    plan_.problem_name = problem_.name;
    plan_.problem_sha256 = planner::ProblemSha256(problem_);
    plan_.arena_bytes = arena_end_;
    plan_.budget_bytes = arena_end_;
    plan_.host_bytes = host_end_;
    const auto predicted = planner::Replay(problem_, plan_);
    LOADLINE_CHECK(predicted.ok());
    plan_.predicted = *predicted;
    return plan_;
  }

  const planner::Problem& problem() const { return problem_; }

 private:
  StepId Add(planner::Step step) {
    plan_.steps.push_back(std::move(step));
    return StepId{static_cast<int32_t>(plan_.steps.size() - 1)};
  }

  const planner::Problem& problem_;
  planner::Plan plan_;
  std::map<std::string, planner::ValueId> by_name_;
  std::map<std::string, BufferId> current_;
  int64_t arena_end_ = 0;
  int64_t host_end_ = 0;
};

bool IsMade(const planner::ProblemIndex& index, size_t v) {
  return index.producer[v] != -1;
}

// Puts every value that no node makes.
void PutInitial(PlanMaker& maker) {
  const planner::ProblemIndex index = planner::IndexProblem(maker.problem());
  for (size_t v = 0; v < maker.problem().values.size(); ++v) {
    if (!IsMade(index, v)) maker.PutAnew(maker.problem().values[v].name);
  }
}

// An updated value keeps the place of its old version; other outputs get their
// own places.
void PutOutputs(PlanMaker& maker, const planner::Node& node,
                const std::map<std::string, int64_t>& places) {
  for (planner::ValueId id : node.outputs) {
    const std::string& name = maker.problem().value(id).name;
    const auto place = places.find(name);
    if (!node.inplace.empty()) {
      maker.Put(name, maker.PlaceOf(
                          maker.problem().value(node.inplace[0].first).name));
    } else if (place != places.end()) {
      maker.Put(name, place->second);
    } else {
      maker.PutAnew(name);
    }
  }
}

}  // namespace

planner::Plan KeepPlan(const Toy& toy) {
  PlanMaker maker(toy.problem);
  PutInitial(maker);
  const int64_t workspace =
      maker.NewPlace(toy.options.width * 4 + toy.options.more_workspace_bytes);
  for (size_t n = 0; n < toy.problem.nodes.size(); ++n) {
    PutOutputs(maker, toy.problem.nodes[n], {});
    maker.Run(n, workspace);
  }
  return maker.Finish();
}

planner::Plan OffloadPlan(const Toy& toy) {
  const int depth = toy.options.depth;
  LOADLINE_CHECK(toy.options.train && depth >= 4);
  const int64_t row_bytes = toy.options.batch * toy.options.width * 4;
  PlanMaker maker(toy.problem);
  PutInitial(maker);
  const int64_t workspace =
      maker.NewPlace(toy.options.width * 4 + toy.options.more_workspace_bytes);
  int64_t out_slots[3];
  int64_t back_slots[2];
  int64_t d_slots[2];
  for (int64_t& slot : out_slots) slot = maker.NewPlace(row_bytes);
  for (int64_t& slot : back_slots) slot = maker.NewPlace(row_bytes);
  for (int64_t& slot : d_slots) slot = maker.NewPlace(row_bytes);

  size_t n = 0;
  std::vector<StepId> copied_out(depth + 1);
  std::vector<BufferId> on_host(depth + 1);
  for (int i = 1; i <= depth; ++i, ++n) {
    const std::string h = absl::StrCat("h", i);
    const BufferId device = maker.Put(h, out_slots[i % 3]);
    // The slot's previous h must be copied out before this one is written.
    const StepId made = i > 3 ? maker.Run(n, workspace, {copied_out[i - 3]})
                              : maker.Run(n, workspace);
    if (i == depth) continue;
    on_host[i] =
        maker.Put(h, maker.NewPlace(row_bytes, Space::kHost), Space::kHost);
    copied_out[i] = maker.Copy(Lane::kD2h, device, on_host[i], {made});
    maker.Use(h, device);  // the forward pass still reads the first buffer
  }
  for (int other = 0; other < 2; ++other, ++n) {  // ToyLoss, ToyCount
    PutOutputs(maker, toy.problem.nodes[n],
               {{absl::StrCat("d", depth), d_slots[depth % 2]}});
    maker.Run(n, workspace);
  }
  std::vector<StepId> used(depth + 1);
  for (int i = depth; i >= 1; --i, n += 2) {
    std::vector<StepId> wait;
    if (i > 1) {
      const std::string h = absl::StrCat("h", i - 1);
      const BufferId back = maker.Put(h, back_slots[i % 2]);
      std::vector<StepId> copy_wait = {copied_out[i - 1]};
      if (i + 2 <= depth) copy_wait.push_back(used[i + 2]);
      wait.push_back(
          maker.Copy(Lane::kH2d, on_host[i - 1], back, std::move(copy_wait)));
    }
    PutOutputs(maker, toy.problem.nodes[n],
               {{absl::StrCat("d", i - 1), d_slots[(i - 1) % 2]}});
    used[i] = maker.Run(n, workspace, std::move(wait));
    PutOutputs(maker, toy.problem.nodes[n + 1], {});
    maker.Run(n + 1, workspace);
  }
  return maker.Finish();
}

}  // namespace loadline::executor
