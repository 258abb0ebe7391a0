// An event simulation of the three lanes. Time is a double in nanoseconds and
// is rounded once, at the end; the copies' overhead is added then. At each
// moment: first every step that ends, ends and frees its buffers; then every
// lane whose next step may start starts it; then the bytes alive are counted. A
// step of no length starts and ends so in two rounds at one moment. A copy
// first waits its latency, moving nothing, then moves its bytes; the rates
// change whenever the number of lanes that move bytes does. Tested in
// tests/planner/verify/replay_test.cc.
#include "planner/verify/replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/base/never_ns.h"
#include "planner/base/status_macros.h"
#include "planner/problem/ids.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/verify/verify.h"
#include "planner/verify/verify_facts.h"

namespace loadline::planner {
namespace {

// Events closer than this are one moment: doubles of equal sums differ.
constexpr double kSameMomentNs = 1e-3;
// 2^63: what no step time may reach.
constexpr double kMostNs = 9223372036854775808.0;

// Bytes alive in one space and the most there ever were.
struct Level {
  int64_t now_bytes = 0;
  int64_t peak_bytes = 0;
};

// Which buffers are alive while steps start and end.
class Lives {
 public:
  Lives(const Problem& problem, const Plan& plan, const PlanFacts& facts,
        ReplayObserver& observer)
      : problem_(problem), plan_(plan), facts_(facts), observer_(observer) {
    alive_.assign(plan.buffers.size(), false);
    passed_on_.assign(plan.buffers.size(), false);
    accesses_left_.assign(plan.buffers.size(), 0);
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      for (BufferId id : Touched(plan.steps[s])) ++accesses_left_[Index(id)];
    }
  }

  // Buffers that no step writes are alive from the beginning.
  absl::Status Begin() {
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (facts_.writer[b] == kNoStep) {
        LOADLINE_RETURN_IF_ERROR(Enter(BufferId(static_cast<int32_t>(b))));
      }
    }
    Count(0);
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (alive_[b] && accesses_left_[b] == 0) {
        Leave(BufferId(static_cast<int32_t>(b)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Start(StepId id) {
    const Step& step = plan_.steps[Index(id)];
    if (step.kind == StepKind::kNode) PassOnInPlace(id, step);
    for (BufferId buffer : Touched(step)) {
      if (!alive_[Index(buffer)]) LOADLINE_RETURN_IF_ERROR(Enter(buffer));
    }
    return absl::OkStatus();
  }

  void End(StepId id) {
    for (BufferId buffer : Touched(plan_.steps[Index(id)])) {
      if (--accesses_left_[Index(buffer)] == 0) Leave(buffer);
    }
  }

  void Count(double now_ns) {
    for (Level& level : levels_) {
      level.peak_bytes = std::max(level.peak_bytes, level.now_bytes);
    }
    observer_.Counts(now_ns,
                     levels_[static_cast<size_t>(Space::kDevice)].now_bytes);
  }

  int64_t PeakBytes(Space space) const {
    return levels_[static_cast<size_t>(space)].peak_bytes;
  }

 private:
  // Every access of the step, a buffer read twice included.
  static std::vector<BufferId> Touched(const Step& step) {
    if (step.kind != StepKind::kNode) return {step.from, step.to};
    std::vector<BufferId> touched = step.in;
    touched.insert(touched.end(), step.out.begin(), step.out.end());
    if (step.workspace != kNoBuffer) touched.push_back(step.workspace);
    return touched;
  }

  absl::Status Enter(BufferId id) {
    const Buffer& buffer = plan_.buffer(id);
    int64_t& now = levels_[static_cast<size_t>(buffer.space)].now_bytes;
    alive_[Index(id)] = true;
    observer_.Enters(id);
    if (__builtin_add_overflow(now, buffer.bytes, &now)) {
      return Invalid("the bytes alive at one moment overflow 64 bits");
    }
    return absl::OkStatus();
  }

  void Leave(BufferId id) {
    if (passed_on_[Index(id)] || facts_.final[Index(id)]) return;
    const Buffer& buffer = plan_.buffer(id);
    levels_[static_cast<size_t>(buffer.space)].now_bytes -= buffer.bytes;
    observer_.Leaves(id);
  }

  // An input that ends here and an output that begins here in the same bytes
  // count once: the output takes them over.
  void PassOnInPlace(StepId id, const Step& step) {
    const Node& node = problem_.node(step.node);
    for (const auto& [in_value, out_value] : node.inplace) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != in_value) continue;
        for (size_t o = 0; o < node.outputs.size(); ++o) {
          if (node.outputs[o] != out_value) continue;
          TryPassOn(step.in[i], step.out[o], id);
        }
      }
    }
  }

  void TryPassOn(BufferId in, BufferId out, StepId step) {
    const Buffer& from = plan_.buffer(in);
    const Buffer& to = plan_.buffer(out);
    if (alive_[Index(out)] || !alive_[Index(in)] || passed_on_[Index(in)] ||
        facts_.final[Index(in)] || from.bytes != to.bytes ||
        from.space != to.space || from.offset != to.offset ||
        !facts_.LastAccess(plan_, in, step)) {
      return;
    }
    passed_on_[Index(in)] = true;
    alive_[Index(out)] = true;
    observer_.PassesOn(in, out);
  }

  const Problem& problem_;
  const Plan& plan_;
  const PlanFacts& facts_;
  ReplayObserver& observer_;
  std::vector<bool> alive_;      // has been alive
  std::vector<bool> passed_on_;  // its bytes are the in-place output's now
  std::vector<int64_t> accesses_left_;
  std::array<Level, 2> levels_;
};

// One lane's running step.
struct Running {
  StepId step = kNoStep;  // kNoStep: the lane is idle
  double until_ns = 0;    // end of a compute step, or of a copy's latency
  bool moving = false;    // a copy past its latency
  double bytes_left = 0;
};

class Simulation {
 public:
  Simulation(const Problem& problem, const Plan& plan, const PlanFacts& facts,
             ReplayObserver& observer)
      : problem_(problem),
        plan_(plan),
        observer_(observer),
        lives_(problem, plan, facts, observer) {
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      lanes_[static_cast<size_t>(plan.steps[s].lane)].push_back(
          StepId(static_cast<int32_t>(s)));
    }
    ended_.assign(plan.steps.size(), false);
    runs_.assign(problem.nodes.size(), 0);
  }

  absl::StatusOr<ReplayResult> Run() {
    LOADLINE_RETURN_IF_ERROR(lives_.Begin());
    while (true) {
      LOADLINE_RETURN_IF_ERROR(StartSteps());
      const double next_ns = NextEventNs();
      if (next_ns == kNeverNs) break;
      if (!(next_ns < kMostNs)) {
        return Invalid("the replay takes 2^63 ns or more");
      }
      Advance(next_ns);
    }
    return Result();
  }

 private:
  absl::Status StartSteps() {
    // All that may start now starts before the bytes are counted.
    for (size_t l = 0; l < kLaneCount; ++l) {
      if (running_[l].step != kNoStep || next_[l] == lanes_[l].size()) continue;
      const StepId id = lanes_[l][next_[l]];
      if (!MayStart(id)) continue;
      ++next_[l];
      running_[l].step = id;
      observer_.StepStarts(id, now_ns_);
      LOADLINE_RETURN_IF_ERROR(lives_.Start(id));
      LOADLINE_RETURN_IF_ERROR(l == 0 ? StartCompute(id) : StartCopy(id, l));
    }
    lives_.Count(now_ns_);
    return absl::OkStatus();
  }

  bool MayStart(StepId id) const {
    for (StepId wait : plan_.steps[Index(id)].wait) {
      if (!ended_[Index(wait)]) return false;
    }
    return true;
  }

  absl::Status StartCompute(StepId id) {
    const Step& step = plan_.steps[Index(id)];
    int64_t duration_ns = 0;
    bool again = false;
    switch (step.kind) {
      case StepKind::kNode: {
        const Node& node = problem_.node(step.node);
        duration_ns = step.variant.empty()
                          ? node.time_ns
                          : FindVariant(node, step.variant)->time_ns;
        again = runs_[Index(step.node)]++ > 0;
        break;
      }
      case StepKind::kEncode:
        duration_ns = CodecOf(step).encode_ns;
        break;
      case StepKind::kDecode:
        duration_ns = CodecOf(step).decode_ns;
        break;
      case StepKind::kCopy:
        return Invalid(StepName(problem_, plan_, id),
                       ": a copy on the compute lane");
    }
    running_[0].until_ns = now_ns_ + static_cast<double>(duration_ns);
    int64_t& compute_ns = result_.prediction.compute_ns;
    if (__builtin_add_overflow(compute_ns, duration_ns, &compute_ns)) {
      return Invalid("compute_ns overflows 64 bits");
    }
    if (again) result_.prediction.recompute_ns += duration_ns;
    return absl::OkStatus();
  }

  const Codec& CodecOf(const Step& step) const {
    return *FindCodec(problem_.value(plan_.buffer(step.from).value),
                      step.codec);
  }

  absl::Status StartCopy(StepId id, size_t lane) {
    const Step& step = plan_.steps[Index(id)];
    if (step.kind != StepKind::kCopy) {
      return Invalid(StepName(problem_, plan_, id), ": compute on the ",
                     std::string(LaneName(step.lane)), " lane");
    }
    if (!problem_.machine.has_value() || !problem_.machine->CanCopy()) {
      return Invalid(StepName(problem_, plan_, id),
                     ": a copy, but the problem's machine has no copy rates");
    }
    const int64_t bytes = plan_.buffer(step.from).bytes;
    Running& running = running_[lane];
    running.until_ns = now_ns_ + static_cast<double>(LinkOf(lane).latency_ns);
    running.moving = false;
    running.bytes_left = static_cast<double>(bytes);
    int64_t& sum = step.lane == Lane::kD2h ? result_.prediction.d2h_bytes
                                           : result_.prediction.h2d_bytes;
    if (__builtin_add_overflow(sum, bytes, &sum)) {
      return Invalid("the bytes copied overflow 64 bits");
    }
    int64_t& overhead_ns = copy_overheads_ns_;
    if (__builtin_add_overflow(overhead_ns, problem_.machine->copy_overhead_ns,
                               &overhead_ns)) {
      return Invalid("copy_overhead_ns times the copies overflows 64 bits");
    }
    return absl::OkStatus();
  }

  const Link& LinkOf(size_t lane) const {
    const Machine& machine = *problem_.machine;
    return lane == static_cast<size_t>(Lane::kD2h) ? machine.d2h : machine.h2d;
  }

  // Bytes per nanosecond of a lane that moves bytes now.
  double Rate(size_t lane) const {
    const double rate = LinkOf(lane).bytes_per_s * 1e-9;
    const bool both = running_[1].step != kNoStep && running_[1].moving &&
                      running_[2].step != kNoStep && running_[2].moving;
    return both ? rate * problem_.machine->d2h_h2d_factor : rate;
  }

  // When the lane's running step next changes, if the rates stay.
  double EventNs(size_t lane) const {
    const Running& running = running_[lane];
    if (running.step == kNoStep) return kNeverNs;
    if (!running.moving) return running.until_ns;
    return now_ns_ + running.bytes_left / Rate(lane);
  }

  double NextEventNs() const {
    return std::min({EventNs(0), EventNs(1), EventNs(2)});
  }

  // Moves time to the next event and lets all that happens then happen.
  void Advance(double next_ns) {
    std::array<bool, kLaneCount> happens = {};
    for (size_t l = 0; l < kLaneCount; ++l) {
      happens[l] = EventNs(l) <= next_ns + kSameMomentNs;
    }
    for (size_t l = 1; l < kLaneCount; ++l) {
      if (running_[l].step == kNoStep || !running_[l].moving) continue;
      moved_[l] = Rate(l) * (next_ns - now_ns_);
    }
    for (size_t l = 1; l < kLaneCount; ++l) {
      if (running_[l].step == kNoStep || !running_[l].moving) continue;
      running_[l].bytes_left =
          std::max(0.0, running_[l].bytes_left - moved_[l]);
    }
    now_ns_ = next_ns;
    for (size_t l = 0; l < kLaneCount; ++l) {
      if (happens[l]) Finish(l);
    }
  }

  void Finish(size_t lane) {
    Running& running = running_[lane];
    if (lane != 0 && !running.moving && running.bytes_left > 0) {
      running.moving = true;  // the latency is over
      return;
    }
    observer_.StepEnds(running.step, now_ns_);
    lives_.End(running.step);
    ended_[Index(running.step)] = true;
    running = Running();
  }

  absl::StatusOr<ReplayResult> Result() {
    Prediction& prediction = result_.prediction;
    prediction.step_ns = std::llround(now_ns_);
    if (__builtin_add_overflow(prediction.step_ns, copy_overheads_ns_,
                               &prediction.step_ns)) {
      return Invalid("the replay takes 2^63 ns or more");
    }
    // Beyond 2^53 the rounded end may lie before the exact sum.
    prediction.stall_ns =
        std::max<int64_t>(0, prediction.step_ns - prediction.compute_ns);
    prediction.peak_bytes = lives_.PeakBytes(Space::kDevice);
    result_.host_peak_bytes = lives_.PeakBytes(Space::kHost);
    return result_;
  }

  const Problem& problem_;
  const Plan& plan_;
  ReplayObserver& observer_;
  Lives lives_;
  std::array<std::vector<StepId>, kLaneCount> lanes_;
  std::array<size_t, kLaneCount> next_ = {};
  std::array<Running, kLaneCount> running_;
  std::array<double, kLaneCount> moved_ = {};
  std::vector<bool> ended_;
  std::vector<int64_t> runs_;  // by node, so far
  double now_ns_ = 0;
  int64_t copy_overheads_ns_ = 0;  // of the copies so far
  ReplayResult result_;
};

}  // namespace

absl::StatusOr<ReplayResult> ReplaySteps(const Problem& problem,
                                         const Plan& plan,
                                         const PlanFacts& facts,
                                         ReplayObserver* observer) {
  ReplayObserver nobody;
  return Simulation(problem, plan, facts,
                    observer != nullptr ? *observer : nobody)
      .Run();
}

absl::StatusOr<Prediction> Replay(const Problem& problem, const Plan& plan,
                                  ReplayObserver* observer) {
  LOADLINE_RETURN_IF_ERROR(ValidateProblem(problem));
  LOADLINE_RETURN_IF_ERROR(CheckReferences(problem, plan));
  LOADLINE_ASSIGN_OR_RETURN(const PlanFacts facts, GatherFacts(problem, plan));
  LOADLINE_ASSIGN_OR_RETURN(const ReplayResult result,
                            ReplaySteps(problem, plan, facts, observer));
  return result.prediction;
}

}  // namespace loadline::planner
