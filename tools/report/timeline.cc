// The event simulation of docs/formats.md once more, as planner/replay.cc has
// it, but keeping what it passes through: spans of steps, and moments. A moment
// is one count of the bytes alive, after all that starts together has started.
// Buffers note the moments between which they are alive; samples are the
// fullest moments, one for each compute step. Tested against planner::Replay in
// tests/tools/report_timeline_test.cc.
#include "tools/report/timeline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "planner/status_macros.h"
#include "planner/verify.h"
#include "planner/verify_facts.h"

namespace loadline::tools {
namespace {

using planner::BufferId;
using planner::Lane;
using planner::Step;
using planner::StepId;
using planner::StepKind;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSameMomentNs = 1e-3;  // as in replay.cc

std::vector<BufferId> Touched(const Step& step) {
  if (step.kind != StepKind::kNode) return {step.from, step.to};
  std::vector<BufferId> touched = step.in;
  touched.insert(touched.end(), step.out.begin(), step.out.end());
  if (step.workspace != planner::kNoBuffer) touched.push_back(step.workspace);
  return touched;
}

// Device buffers from moment to moment.
class Lives {
 public:
  struct Life {
    int64_t from = -1, ready = -1, done = -1, to = -1;  // moments; -1: not yet
    int64_t accesses_left = 0;
    int64_t compute_accesses_left = 0;
  };

  Lives(const planner::Problem& problem, const planner::Plan& plan,
        const planner::PlanFacts& facts)
      : problem_(problem), plan_(plan), facts_(facts) {
    lives_.resize(plan.buffers.size());
    for (const Step& step : plan.steps) {
      for (BufferId id : Touched(step)) {
        ++lives_[Index(id)].accesses_left;
        if (step.lane == Lane::kCompute) {
          ++lives_[Index(id)].compute_accesses_left;
        }
      }
    }
  }

  void Begin() {
    for (size_t b = 0; b < lives_.size(); ++b) {
      if (facts_.writer[b] != planner::kNoStep) continue;
      Enter(BufferId(static_cast<int32_t>(b)));
      lives_[b].ready = next_moment_;
    }
    Count(0, 0, planner::kNoStep);
    for (size_t b = 0; b < lives_.size(); ++b) {
      if (lives_[b].from >= 0 && lives_[b].accesses_left == 0) {
        Leave(BufferId(static_cast<int32_t>(b)));
      }
    }
  }

  void Start(StepId id) {
    const Step& step = plan_.steps[Index(id)];
    if (step.kind == StepKind::kNode) PassOnInPlace(id, step);
    for (BufferId buffer : Touched(step)) {
      Life& life = lives_[Index(buffer)];
      if (life.from < 0) Enter(buffer);
      if (life.ready < 0 && step.kind != StepKind::kCopy) {
        life.ready = next_moment_;
      }
    }
  }

  void End(StepId id) {
    const Step& step = plan_.steps[Index(id)];
    for (BufferId buffer : Touched(step)) {
      Life& life = lives_[Index(buffer)];
      if (life.ready < 0) life.ready = next_moment_;
      if (step.lane == Lane::kCompute && --life.compute_accesses_left == 0) {
        life.done = next_moment_;
      }
      if (--life.accesses_left == 0) Leave(buffer);
    }
  }

  // One moment, while the compute lane is at its `sample`-th step.
  void Count(double now_ns, size_t sample, StepId step) {
    moment_ns_.push_back(std::llround(now_ns));
    if (sample == samples_.size()) {
      samples_.push_back({step, moment_ns_.back(), now_bytes_});
      sample_moments_.push_back(next_moment_);
    } else if (now_bytes_ > samples_[sample].live_bytes) {
      samples_[sample].time_ns = moment_ns_.back();
      samples_[sample].live_bytes = now_bytes_;
      sample_moments_[sample] = next_moment_;
    }
    if (samples_[sample].step == planner::kNoStep) samples_[sample].step = step;
    ++next_moment_;
  }

  std::vector<MemorySample> TakeSamples() { return std::move(samples_); }

  std::vector<BufferLife> Result(int64_t step_ns) const {
    std::vector<BufferLife> result;
    for (const Life& life : lives_) {
      const int64_t from = life.from < 0 ? next_moment_ : life.from;
      const int64_t to = life.to < 0 ? next_moment_ : life.to;
      const int64_t ready =
          std::clamp(life.ready < 0 ? to : life.ready, from, to);
      // Nothing but a copy out is left; what stays to the end is simply there.
      const bool waits = life.done >= 0 && life.to >= 0;
      const int64_t done = std::clamp(waits ? life.done : to, ready, to);
      result.push_back({SampleAt(from), SampleAt(ready), SampleAt(done),
                        SampleAt(to), TimeAt(from, step_ns),
                        TimeAt(to, step_ns)});
    }
    return result;
  }

 private:
  bool OnDevice(BufferId id) const {
    return plan_.buffer(id).space == planner::Space::kDevice;
  }

  void Enter(BufferId id) {
    lives_[Index(id)].from = next_moment_;
    if (OnDevice(id)) now_bytes_ += plan_.buffer(id).bytes;
  }

  void Leave(BufferId id) {
    Life& life = lives_[Index(id)];
    if (life.to >= 0 || facts_.final[Index(id)]) return;
    life.to = next_moment_;
    if (OnDevice(id)) now_bytes_ -= plan_.buffer(id).bytes;
  }

  void PassOnInPlace(StepId id, const Step& step) {
    const planner::Node& node = problem_.node(step.node);
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
    const planner::Buffer& from = plan_.buffer(in);
    const planner::Buffer& to = plan_.buffer(out);
    Life& old_life = lives_[Index(in)];
    Life& new_life = lives_[Index(out)];
    if (new_life.from >= 0 || old_life.from < 0 || old_life.to >= 0 ||
        facts_.final[Index(in)] || from.bytes != to.bytes ||
        from.space != to.space || from.offset != to.offset ||
        !facts_.LastAccess(plan_, in, step)) {
      return;
    }
    old_life.to = next_moment_;
    new_life.from = next_moment_;
  }

  // The first sample at or after the moment.
  int32_t SampleAt(int64_t moment) const {
    return static_cast<int32_t>(std::lower_bound(sample_moments_.begin(),
                                                 sample_moments_.end(),
                                                 moment) -
                                sample_moments_.begin());
  }

  int64_t TimeAt(int64_t moment, int64_t step_ns) const {
    return moment < next_moment_ ? moment_ns_[static_cast<size_t>(moment)]
                                 : step_ns;
  }

  const planner::Problem& problem_;
  const planner::Plan& plan_;
  const planner::PlanFacts& facts_;
  std::vector<Life> lives_;
  int64_t next_moment_ = 0;
  int64_t now_bytes_ = 0;
  std::vector<int64_t> moment_ns_;
  std::vector<MemorySample> samples_;
  std::vector<int64_t> sample_moments_;
};

// One lane's running step, as in replay.cc.
struct Running {
  StepId step = planner::kNoStep;
  double until_ns = 0;
  bool moving = false;
  double bytes_left = 0;
};

class Simulation {
 public:
  Simulation(const planner::Problem& problem, const planner::Plan& plan,
             const planner::PlanFacts& facts)
      : problem_(problem), plan_(plan), lives_(problem, plan, facts) {
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      lanes_[static_cast<size_t>(plan.steps[s].lane)].push_back(
          StepId(static_cast<int32_t>(s)));
    }
    ended_.assign(plan.steps.size(), false);
    spans_.resize(plan.steps.size());
  }

  Timeline Run() {
    lives_.Begin();
    while (true) {
      StartSteps();
      const double next_ns = std::min({EventNs(0), EventNs(1), EventNs(2)});
      if (next_ns == kNever) break;
      Advance(next_ns);
    }
    Timeline timeline;
    timeline.spans = std::move(spans_);
    timeline.lives = lives_.Result(std::llround(now_ns_));
    timeline.samples = lives_.TakeSamples();
    return timeline;
  }

 private:
  void StartSteps() {
    for (size_t l = 0; l < planner::kLaneCount; ++l) {
      if (running_[l].step != planner::kNoStep ||
          next_[l] == lanes_[l].size() || !MayStart(lanes_[l][next_[l]])) {
        continue;
      }
      const StepId id = lanes_[l][next_[l]++];
      spans_[Index(id)].start_ns = std::llround(now_ns_);
      lives_.Start(id);
      running_[l] = {.step = id, .until_ns = now_ns_ + FixedNs(id)};
      if (l != 0) {
        running_[l].bytes_left = static_cast<double>(
            plan_.buffer(plan_.steps[Index(id)].from).bytes);
      }
    }
    const size_t sample = next_[0] == 0 ? 0 : next_[0] - 1;
    lives_.Count(now_ns_, sample,
                 next_[0] == 0 ? planner::kNoStep : lanes_[0][sample]);
  }

  bool MayStart(StepId id) const {
    for (StepId wait : plan_.steps[Index(id)].wait) {
      if (!ended_[Index(wait)]) return false;
    }
    return true;
  }

  // A compute step's time, or a copy's latency.
  double FixedNs(StepId id) const {
    const Step& step = plan_.steps[Index(id)];
    if (step.kind == StepKind::kCopy) {
      return static_cast<double>(problem_.machine->copy_latency_ns);
    }
    if (step.kind == StepKind::kNode) {
      const planner::Node& node = problem_.node(step.node);
      return static_cast<double>(
          step.variant.empty()
              ? node.time_ns
              : planner::FindVariant(node, step.variant)->time_ns);
    }
    const planner::Codec& codec = *planner::FindCodec(
        problem_.value(plan_.buffer(step.from).value), step.codec);
    return static_cast<double>(
        step.kind == StepKind::kEncode ? codec.encode_ns : codec.decode_ns);
  }

  double Rate(size_t lane) const {
    const planner::Machine& machine = *problem_.machine;
    const double rate =
        (lane == 1 ? machine.d2h_bytes_per_s : machine.h2d_bytes_per_s) * 1e-9;
    return running_[1].moving && running_[2].moving
               ? rate * machine.bidirectional
               : rate;
  }

  double EventNs(size_t lane) const {
    const Running& running = running_[lane];
    if (running.step == planner::kNoStep) return kNever;
    if (!running.moving) return running.until_ns;
    return now_ns_ + running.bytes_left / Rate(lane);
  }

  void Advance(double next_ns) {
    std::array<bool, planner::kLaneCount> happens = {};
    std::array<double, planner::kLaneCount> moved = {};
    for (size_t l = 0; l < planner::kLaneCount; ++l) {
      happens[l] = EventNs(l) <= next_ns + kSameMomentNs;
      if (running_[l].moving) moved[l] = Rate(l) * (next_ns - now_ns_);
    }
    now_ns_ = next_ns;
    for (size_t l = 0; l < planner::kLaneCount; ++l) {
      running_[l].bytes_left = std::max(0.0, running_[l].bytes_left - moved[l]);
      if (happens[l]) Finish(l);
    }
  }

  void Finish(size_t lane) {
    Running& running = running_[lane];
    if (lane != 0 && !running.moving && running.bytes_left > 0) {
      running.moving = true;  // the latency is over
      return;
    }
    lives_.End(running.step);
    spans_[Index(running.step)].end_ns = std::llround(now_ns_);
    ended_[Index(running.step)] = true;
    running = Running();
  }

  const planner::Problem& problem_;
  const planner::Plan& plan_;
  Lives lives_;
  std::array<std::vector<StepId>, planner::kLaneCount> lanes_;
  std::array<size_t, planner::kLaneCount> next_ = {};
  std::array<Running, planner::kLaneCount> running_;
  std::vector<bool> ended_;
  std::vector<StepSpan> spans_;
  double now_ns_ = 0;
};

}  // namespace

absl::StatusOr<Timeline> ReplayTimeline(const planner::Problem& problem,
                                        const planner::Plan& plan) {
  // The simulation trusts what this checks.
  LOADLINE_RETURN_IF_ERROR(planner::Replay(problem, plan).status());
  LOADLINE_ASSIGN_OR_RETURN(const planner::PlanFacts facts,
                            planner::GatherFacts(problem, plan));
  return Simulation(problem, plan, facts).Run();
}

}  // namespace loadline::tools
