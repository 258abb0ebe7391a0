// Each corruption lists the places where it is sure to do harm, picks one and
// applies it. Tested by use, in verify_corruption_test.cc.
#include "tests/planner/verify/corrupt_plan.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/verify/verify.h"
#include "tests/planner/verify/corrupter.h"

namespace loadline::planner {

bool Corrupter::Apply(Corruption kind) {
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

std::vector<size_t> Corrupter::StepsOf(StepKind kind) const {
  std::vector<size_t> steps;
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    if (plan_.steps[s].kind == kind) steps.push_back(s);
  }
  return steps;
}

std::optional<BufferId> Corrupter::PickNodeBuffer() {
  std::vector<BufferId> buffers;
  for (const Step& step : plan_.steps) {
    buffers.insert(buffers.end(), step.in.begin(), step.in.end());
    buffers.insert(buffers.end(), step.out.begin(), step.out.end());
  }
  if (buffers.empty()) return std::nullopt;
  return Pick(buffers);
}

bool Corrupter::WrongPrediction() {
  Prediction& p = plan_.predicted;
  int64_t* const fields[] = {&p.step_ns,   &p.compute_ns, &p.recompute_ns,
                             &p.d2h_bytes, &p.h2d_bytes,  &p.stall_ns,
                             &p.peak_bytes};
  int64_t& field = *fields[random_.In(0, 6)];
  field += (random_.OneIn(2) ? 1 : -1) * (field / 1000 + 2);
  return true;
}

bool Corrupter::BoundTooHigh() {
  const bool peak = random_.OneIn(2);
  int64_t& bound = peak ? plan_.bounds.peak_bytes : plan_.bounds.step_ns;
  const int64_t reached =
      peak ? plan_.predicted.peak_bytes : plan_.predicted.step_ns;
  bound = reached + reached / 1000 + 2;
  return true;
}

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
