// Steps left out, doubled, reordered, or no longer waiting for what they need.
// That each is sure to do harm is argued beside it. Tested by use, in
// verify_corruption_test.cc.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/planner/verify/corrupter.h"

namespace loadline::planner {

// Removes a step; who waited for it waits for nothing instead.
void Corrupter::Remove(size_t position) {
  plan_.steps.erase(plan_.steps.begin() + static_cast<int64_t>(position));
  const StepId gone{static_cast<int32_t>(position)};
  for (Step& step : plan_.steps) {
    std::erase(step.wait, gone);
    for (StepId& wait : step.wait) {
      if (wait > gone) wait = StepId(static_cast<int32_t>(wait) - 1);
    }
  }
  ResetSequence();
}

// Moves the step at `from` to stand at `to`; waits follow.
void Corrupter::Move(size_t from, size_t to) {
  std::vector<size_t> order(plan_.steps.size());
  for (size_t s = 0; s < order.size(); ++s) order[s] = s;
  order.erase(order.begin() + static_cast<int64_t>(from));
  order.insert(order.begin() + static_cast<int64_t>(to), from);
  std::vector<Step> steps;
  std::vector<StepId> now(order.size());
  for (size_t s = 0; s < order.size(); ++s) {
    steps.push_back(plan_.steps[order[s]]);
    now[order[s]] = StepId(static_cast<int32_t>(s));
  }
  for (Step& step : steps) {
    for (StepId& wait : step.wait) wait = now[Index(wait)];
  }
  plan_.steps = std::move(steps);
  ResetSequence();
}

void Corrupter::ResetSequence() {
  plan_.sequence.clear();
  for (const Step& step : plan_.steps) {
    if (step.kind == StepKind::kNode) plan_.sequence.push_back(step.node);
  }
}

// Each kind of step, and each direction of a copy, has its one lane.
bool Corrupter::WrongLane() {
  if (plan_.steps.empty()) return false;
  const int64_t count = static_cast<int64_t>(plan_.steps.size());
  Step& step = plan_.steps[static_cast<size_t>(random_.In(0, count - 1))];
  const int lane = static_cast<int>(step.lane);
  step.lane = static_cast<Lane>((lane + random_.In(1, 2)) % 3);
  return true;
}

bool Corrupter::DroppedNode() {
  std::vector<int> runs(problem_.nodes.size(), 0);
  for (NodeId node : plan_.sequence) ++runs[Index(node)];
  std::vector<size_t> once;
  for (size_t s : StepsOf(StepKind::kNode)) {
    if (runs[Index(plan_.steps[s].node)] == 1) once.push_back(s);
  }
  if (once.empty()) return false;
  Remove(Pick(once));
  return true;
}

bool Corrupter::WrittenTwice() {
  std::vector<size_t> steps;
  for (size_t s : StepsOf(StepKind::kNode)) {
    if (!plan_.steps[s].out.empty()) steps.push_back(s);
  }
  if (steps.empty()) return false;
  plan_.steps.push_back(plan_.steps[Pick(steps)]);
  plan_.sequence.push_back(plan_.steps.back().node);
  return true;
}

// Its destination is then written by no step, and its value already has a
// buffer from the beginning or is made by a node.
bool Corrupter::DroppedCopy() {
  const std::vector<size_t> copies = StepsOf(StepKind::kCopy);
  if (copies.empty()) return false;
  Remove(Pick(copies));
  return true;
}

bool Corrupter::Reads(const Step& step, BufferId buffer) const {
  return step.from == buffer ||
         std::find(step.in.begin(), step.in.end(), buffer) != step.in.end();
}

// On one lane the reader now surely runs before the writer.
bool Corrupter::ReorderedReader() {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t w : StepsOf(StepKind::kNode)) {
    for (size_t r : StepsOf(StepKind::kNode)) {
      for (BufferId out : plan_.steps[w].out) {
        if (Reads(plan_.steps[r], out)) places.push_back({r, w});
      }
    }
  }
  if (places.empty()) return false;
  const auto [reader, writer] = Pick(places);
  Move(reader, writer);
  return true;
}

// The reader's buffer has been written over in place when it starts.
bool Corrupter::LateReader() {
  if (!problem_.addresses) return false;
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t u : StepsOf(StepKind::kNode)) {
    const Step& update = plan_.steps[u];
    for (BufferId in : update.in) {
      for (BufferId out : update.out) {
        if (At(in).offset != At(out).offset || At(in).bytes == 0 ||
            At(out).bytes == 0) {
          continue;
        }
        for (size_t r : StepsOf(StepKind::kNode)) {
          if (r != u && Reads(plan_.steps[r], in)) places.push_back({r, u});
        }
      }
    }
  }
  if (places.empty()) return false;
  const auto [reader, update] = Pick(places);
  Move(reader, update);
  return true;
}

// Do lane order and waits lead from one step to the other? Plain search.
bool Corrupter::Leads(size_t from, size_t to) const {
  std::vector<bool> seen(plan_.steps.size(), false);
  std::vector<size_t> open = {to};
  while (!open.empty()) {
    const size_t s = open.back();
    open.pop_back();
    if (s == from) return true;
    if (seen[s]) continue;
    seen[s] = true;
    for (StepId wait : plan_.steps[s].wait) open.push_back(Index(wait));
    for (size_t p = s; p-- > 0;) {
      if (plan_.steps[p].lane != plan_.steps[s].lane) continue;
      open.push_back(p);
      break;
    }
  }
  return false;
}

// A reader on another lane than its writer loses its waits; kept only if
// nothing else orders the two.
bool Corrupter::MissingWait() {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t w = 0; w < plan_.steps.size(); ++w) {
    const Step& writer = plan_.steps[w];
    for (size_t r = 0; r < plan_.steps.size(); ++r) {
      if (plan_.steps[r].lane == writer.lane) continue;
      bool reads = writer.to != kNoBuffer && Reads(plan_.steps[r], writer.to);
      for (BufferId out : writer.out) {
        reads = reads || Reads(plan_.steps[r], out);
      }
      if (reads) places.push_back({w, r});
    }
  }
  if (places.empty()) return false;
  const auto [writer, reader] = Pick(places);
  plan_.steps[reader].wait.clear();
  return !Leads(writer, reader);
}

bool Corrupter::WaitCycle() {
  if (plan_.steps.empty()) return false;
  const int64_t count = static_cast<int64_t>(plan_.steps.size());
  const size_t s = static_cast<size_t>(random_.In(0, count - 1));
  std::vector<size_t> later;
  for (size_t t = s; t < plan_.steps.size(); ++t) {
    if (plan_.steps[t].lane == plan_.steps[s].lane) later.push_back(t);
  }
  plan_.steps[s].wait.push_back(StepId(static_cast<int32_t>(Pick(later))));
  return true;
}

bool Corrupter::MissingWorkspace() {
  std::vector<size_t> steps;
  for (size_t s : StepsOf(StepKind::kNode)) {
    const BufferId workspace = plan_.steps[s].workspace;
    if (workspace != kNoBuffer && At(workspace).bytes > 0) steps.push_back(s);
  }
  if (steps.empty()) return false;
  plan_.steps[Pick(steps)].workspace = kNoBuffer;
  return true;
}

bool Corrupter::DanglingId() {
  const std::vector<size_t> steps = StepsOf(StepKind::kNode);
  if (steps.empty()) return false;
  Step& step = plan_.steps[Pick(steps)];
  const int32_t bad =
      random_.OneIn(2) ? -7 : static_cast<int32_t>(plan_.buffers.size());
  switch (random_.In(0, 2)) {
    case 0:
      step.wait.push_back(
          StepId(bad < 0 ? bad : static_cast<int32_t>(plan_.steps.size())));
      return true;
    case 1:
      step.node =
          NodeId(bad < 0 ? bad : static_cast<int32_t>(problem_.nodes.size()));
      return true;
    default:
      step.workspace = BufferId(bad);
      return true;
  }
}

}  // namespace loadline::planner
