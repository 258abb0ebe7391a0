// Each corruption lists the places where it is sure to do harm, picks one and
// applies it. "Sure" is argued beside each. Tested by use, in
// verify_corruption_test.cc.
#include "tests/planner/corrupt_plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/ids.h"
#include "planner/plan.h"
#include "planner/problem.h"
#include "planner/verify.h"
#include "tests/planner/random_problem.h"

namespace loadline::planner {
namespace {

class Corrupter {
 public:
  Corrupter(const Problem& problem, const Plan& plan, TestRandom& random)
      : problem_(problem),
        plan_(plan),
        index_(IndexProblem(problem)),
        random_(random) {}

  bool Apply(Corruption kind) {
    switch (kind) {
      case Corruption::kWrongProblem:
        plan_.problem_sha256.back() ^= 1;
        return true;
      case Corruption::kWrongPrediction:
        return WrongPrediction();
      case Corruption::kBoundTooHigh:
        return BoundTooHigh();
      case Corruption::kOverBudget:
        plan_.budget_bytes = plan_.arena_bytes - 1;
        return true;
      case Corruption::kOversize:
        return Oversize();
      case Corruption::kMisaligned:
        return Misaligned();
      case Corruption::kOutsideArena:
        return OutsideArena();
      case Corruption::kHostSpace:
        return HostSpace();
      case Corruption::kWrongAddress:
        return WrongAddress();
      case Corruption::kShiftedHome:
        return ShiftedHome();
      case Corruption::kWrongValue:
        return WrongValue();
      case Corruption::kStaleVersion:
        return StaleVersion();
      case Corruption::kSwappedBuffers:
        return SwappedBuffers();
      case Corruption::kWrongLane:
        return WrongLane();
      case Corruption::kDroppedNode:
        return DroppedNode();
      case Corruption::kWrittenTwice:
        return WrittenTwice();
      case Corruption::kDroppedCopy:
        return DroppedCopy();
      case Corruption::kReorderedReader:
        return ReorderedReader();
      case Corruption::kLateReader:
        return LateReader();
      case Corruption::kMissingWait:
        return MissingWait();
      case Corruption::kWaitCycle:
        return WaitCycle();
      case Corruption::kMissingWorkspace:
        return MissingWorkspace();
      case Corruption::kWrongSequence:
        if (plan_.sequence.empty()) return false;
        plan_.sequence.pop_back();
        return true;
      case Corruption::kSecondDecision:
        plan_.decisions.push_back({ValueId(0), Action::kKeep, "once"});
        plan_.decisions.push_back({ValueId(0), Action::kOffload, "twice"});
        return true;
      case Corruption::kDanglingId:
        return DanglingId();
    }
    return false;
  }

  Plan Take() { return std::move(plan_); }

 private:
  template <typename T>
  const T& Pick(const std::vector<T>& places) {
    return places[static_cast<size_t>(
        random_.In(0, static_cast<int64_t>(places.size()) - 1))];
  }

  std::vector<size_t> StepsOf(StepKind kind) const {
    std::vector<size_t> steps;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (plan_.steps[s].kind == kind) steps.push_back(s);
    }
    return steps;
  }

  // A buffer that some node reads or writes as a value.
  std::optional<BufferId> PickNodeBuffer() {
    std::vector<BufferId> buffers;
    for (const Step& step : plan_.steps) {
      buffers.insert(buffers.end(), step.in.begin(), step.in.end());
      buffers.insert(buffers.end(), step.out.begin(), step.out.end());
    }
    if (buffers.empty()) return std::nullopt;
    return Pick(buffers);
  }

  Buffer& At(BufferId id) { return plan_.buffers[Index(id)]; }

  bool WrongPrediction() {
    Prediction& p = plan_.predicted;
    int64_t* const fields[] = {&p.step_ns,   &p.compute_ns, &p.recompute_ns,
                               &p.d2h_bytes, &p.h2d_bytes,  &p.stall_ns,
                               &p.peak_bytes};
    int64_t& field = *fields[random_.In(0, 6)];
    field += (random_.OneIn(2) ? 1 : -1) * (field / 1000 + 2);
    return true;
  }

  bool BoundTooHigh() {
    const bool peak = random_.OneIn(2);
    int64_t& bound = peak ? plan_.bounds.peak_bytes : plan_.bounds.step_ns;
    const int64_t reached =
        peak ? plan_.predicted.peak_bytes : plan_.predicted.step_ns;
    bound = reached + reached / 1000 + 2;
    return true;
  }

  // Sizes must be equal, so one byte is enough.
  bool Oversize() {
    const auto id = PickNodeBuffer();
    if (!id) return false;
    At(*id).bytes += random_.OneIn(2) ? 1 : problem_.alignment_bytes;
    return true;
  }

  bool Misaligned() {
    const auto id = PickNodeBuffer();
    if (!id || problem_.alignment_bytes < 2) return false;
    At(*id).offset += random_.In(1, problem_.alignment_bytes - 1);
    return true;
  }

  bool OutsideArena() {
    const auto id = PickNodeBuffer();
    if (!id || At(*id).bytes == 0 || !problem_.addresses) return false;
    const int64_t a = problem_.alignment_bytes;
    // The smallest aligned offset that is too large.
    At(*id).offset =
        std::max<int64_t>(0, (plan_.arena_bytes - At(*id).bytes) / a + 1) * a;
    return true;
  }

  bool HostSpace() {
    const auto id = PickNodeBuffer();
    if (!id) return false;
    At(*id).space = Space::kHost;
    return true;
  }

  bool InplaceListed(const Node& node, BufferId in, BufferId out) {
    for (const auto& [a, b] : node.inplace) {
      if (At(in).value == a && At(out).value == b) return true;
    }
    return false;
  }

  // A step accesses both at once, so no order keeps them apart.
  bool WrongAddress() {
    if (!problem_.addresses) return false;
    std::vector<std::pair<BufferId, BufferId>> pairs;
    for (const Step& step : plan_.steps) {
      if (step.kind != StepKind::kNode) continue;
      const Node& node = problem_.node(step.node);
      for (BufferId out : step.out) {
        for (BufferId in : step.in) {
          if (!InplaceListed(node, in, out)) pairs.push_back({out, in});
        }
        if (step.workspace != kNoBuffer) pairs.push_back({out, step.workspace});
      }
      for (BufferId a : step.in) {
        for (BufferId b : step.in) {
          if (a != b) pairs.push_back({a, b});
        }
      }
    }
    std::erase_if(pairs, [&](const auto& pair) {
      return At(pair.first).bytes == 0 || At(pair.second).bytes == 0;
    });
    if (pairs.empty()) return false;
    const auto [a, b] = Pick(pairs);
    At(a).offset = At(b).offset;
    return true;
  }

  // No other buffer holds the last version, so it is nowhere at home.
  bool ShiftedHome() {
    if (!problem_.addresses) return false;
    std::vector<BufferId> homes;
    std::vector<int> count(problem_.values.size(), 0);
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.value != kNoValue) ++count[Index(buffer.value)];
    }
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const ValueId value = plan_.buffers[b].value;
      if (value != kNoValue && count[Index(value)] == 1 &&
          index_.previous_version[Index(value)] != kNoValue &&
          index_.next_version[Index(value)] == kNoValue) {
        homes.push_back(BufferId(static_cast<int32_t>(b)));
      }
    }
    if (homes.empty()) return false;
    At(Pick(homes)).offset += problem_.alignment_bytes;
    return true;
  }

  bool WrongValue() {
    const std::vector<size_t> steps = StepsOf(StepKind::kNode);
    Step& step = plan_.steps[Pick(steps)];
    std::vector<BufferId>& side = step.in.empty() ? step.out : step.in;
    if (side.empty()) return false;
    BufferId& slot = side[static_cast<size_t>(
        random_.In(0, static_cast<int64_t>(side.size()) - 1))];
    std::vector<BufferId> others;
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].value != At(slot).value) {
        others.push_back(BufferId(static_cast<int32_t>(b)));
      }
    }
    if (others.empty()) return false;
    slot = Pick(others);
    return true;
  }

  bool StaleVersion() {
    std::vector<std::pair<BufferId*, BufferId>> places;
    for (Step& step : plan_.steps) {
      for (BufferId& slot : step.in) {
        const ValueId old = index_.previous_version[Index(At(slot).value)];
        if (old == kNoValue) continue;
        for (size_t b = 0; b < plan_.buffers.size(); ++b) {
          if (plan_.buffers[b].value == old) {
            places.push_back({&slot, BufferId(static_cast<int32_t>(b))});
          }
        }
      }
    }
    if (places.empty()) return false;
    const auto [slot, old] = Pick(places);
    *slot = old;
    return true;
  }

  bool SwappedBuffers() {
    const auto a = PickNodeBuffer();
    const auto b = PickNodeBuffer();
    if (!a || !b || At(*a).value == At(*b).value) return false;
    std::swap(At(*a).value, At(*b).value);
    return true;
  }

  // Each kind of step, and each direction of a copy, has its one lane.
  bool WrongLane() {
    if (plan_.steps.empty()) return false;
    const int64_t count = static_cast<int64_t>(plan_.steps.size());
    Step& step = plan_.steps[static_cast<size_t>(random_.In(0, count - 1))];
    const int lane = static_cast<int>(step.lane);
    step.lane = static_cast<Lane>((lane + random_.In(1, 2)) % 3);
    return true;
  }

  // Removes a step; who waited for it waits for nothing instead.
  void Remove(size_t position) {
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
  void Move(size_t from, size_t to) {
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

  void ResetSequence() {
    plan_.sequence.clear();
    for (const Step& step : plan_.steps) {
      if (step.kind == StepKind::kNode) plan_.sequence.push_back(step.node);
    }
  }

  bool DroppedNode() {
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

  bool WrittenTwice() {
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
  bool DroppedCopy() {
    const std::vector<size_t> copies = StepsOf(StepKind::kCopy);
    if (copies.empty()) return false;
    Remove(Pick(copies));
    return true;
  }

  bool Reads(const Step& step, BufferId buffer) const {
    return step.from == buffer ||
           std::find(step.in.begin(), step.in.end(), buffer) != step.in.end();
  }

  // On one lane the reader now surely runs before the writer.
  bool ReorderedReader() {
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
  bool LateReader() {
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
  bool Leads(size_t from, size_t to) const {
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
  bool MissingWait() {
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

  bool WaitCycle() {
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

  bool MissingWorkspace() {
    std::vector<size_t> steps;
    for (size_t s : StepsOf(StepKind::kNode)) {
      const BufferId workspace = plan_.steps[s].workspace;
      if (workspace != kNoBuffer && At(workspace).bytes > 0) steps.push_back(s);
    }
    if (steps.empty()) return false;
    plan_.steps[Pick(steps)].workspace = kNoBuffer;
    return true;
  }

  bool DanglingId() {
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

  const Problem& problem_;
  Plan plan_;
  ProblemIndex index_;
  TestRandom& random_;
};

}  // namespace

std::vector<Corruption> AllCorruptions() {
  std::vector<Corruption> all;
  for (int c = 0; c <= static_cast<int>(Corruption::kDanglingId); ++c) {
    all.push_back(static_cast<Corruption>(c));
  }
  return all;
}

std::optional<Plan> CorruptPlan(const Problem& problem, const Plan& plan,
                                Corruption kind, TestRandom& random) {
  Corrupter corrupter(problem, plan, random);
  if (!corrupter.Apply(kind)) return std::nullopt;
  Plan bad = corrupter.Take();
  if (kind != Corruption::kWrongPrediction &&
      kind != Corruption::kBoundTooHigh) {
    const auto prediction = Replay(problem, bad);
    if (prediction.ok()) bad.predicted = *prediction;
    bad.bounds = {};
  }
  return bad;
}

}  // namespace loadline::planner
