// Observes planner/verify/replay.cc and records spans of steps, and moments. A
// moment is one count of the live bytes, after everything that starts at the
// same time has started. Buffers record the moments at which they become live
// and dead; samples are the moments with most bytes, one per compute step.
// Tested against planner::Replay in tests/tools/report/report_timeline_test.cc.
#include "tools/pipeline/timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/verify/replay.h"
#include "planner/verify/verify.h"

namespace loadline::tools {
namespace {

using planner::BufferId;
using planner::Lane;
using planner::Step;
using planner::StepId;
using planner::StepKind;

std::vector<BufferId> Touched(const Step& step) {
  if (step.kind != StepKind::kNode) return {step.from, step.to};
  std::vector<BufferId> touched = step.in;
  touched.insert(touched.end(), step.out.begin(), step.out.end());
  if (step.workspace != planner::kNoBuffer) touched.push_back(step.workspace);
  return touched;
}

class Watcher : public planner::ReplayObserver {
 public:
  explicit Watcher(const planner::Plan& plan) : plan_(plan) {
    spans_.resize(plan.steps.size());
    lives_.resize(plan.buffers.size());
    for (const Step& step : plan.steps) {
      if (step.lane != Lane::kCompute) continue;
      for (BufferId id : Touched(step)) {
        ++lives_[Index(id)].compute_accesses_left;
      }
    }
  }

  void StepStarts(StepId id, double now_ns) override {
    const Step& step = plan_.steps[Index(id)];
    spans_[Index(id)].start_ns = std::llround(now_ns);
    if (step.lane == Lane::kCompute) {
      latest_ = id;
      ++started_;
    }
    if (step.kind == StepKind::kCopy) return;
    for (BufferId buffer : Touched(step)) BecomesReady(buffer);
  }

  void StepEnds(StepId id, double now_ns) override {
    const Step& step = plan_.steps[Index(id)];
    spans_[Index(id)].end_ns = std::llround(now_ns);
    for (BufferId buffer : Touched(step)) {
      BecomesReady(buffer);
      Life& life = lives_[Index(buffer)];
      if (step.lane == Lane::kCompute && --life.compute_accesses_left == 0) {
        life.done = Moment();
      }
    }
  }

  void Enters(BufferId id) override {
    lives_[Index(id)].from = Moment();
    if (Moment() == 0) BecomesReady(id);  // existed before the first step
  }

  void Leaves(BufferId id) override { lives_[Index(id)].to = Moment(); }

  void PassesOn(BufferId in, BufferId out) override {
    Leaves(in);
    Enters(out);
  }

  // One moment, during the compute lane's step number `sample`.
  void Counts(double now_ns, int64_t device_bytes) override {
    const size_t sample = started_ == 0 ? 0 : started_ - 1;
    const int64_t time_ns = std::llround(now_ns);
    if (sample == samples_.size()) {
      samples_.push_back({latest_, time_ns, device_bytes});
      sample_moments_.push_back(Moment());
    } else if (device_bytes > samples_[sample].live_bytes) {
      samples_[sample].time_ns = time_ns;
      samples_[sample].live_bytes = device_bytes;
      sample_moments_[sample] = Moment();
    }
    if (samples_[sample].step == planner::kNoStep) {
      samples_[sample].step = latest_;
    }
    moment_ns_.push_back(time_ns);
  }

  Timeline Result(int64_t step_ns) && {
    Timeline timeline;
    for (const Life& life : lives_) {
      const int64_t from = life.from < 0 ? Moment() : life.from;
      const int64_t to = life.to < 0 ? Moment() : life.to;
      const int64_t ready =
          std::clamp(life.ready < 0 ? to : life.ready, from, to);
      // A buffer that lives to the end is not waiting for a copy.
      const bool waits = life.done >= 0 && life.to >= 0;
      const int64_t done = std::clamp(waits ? life.done : to, ready, to);
      timeline.lives.push_back({SampleAt(from), SampleAt(ready), SampleAt(done),
                                SampleAt(to), TimeAt(from, step_ns),
                                TimeAt(to, step_ns)});
    }
    timeline.spans = std::move(spans_);
    timeline.samples = std::move(samples_);
    return timeline;
  }

 private:
  struct Life {
    int64_t from = -1, ready = -1, done = -1, to = -1;  // moments; -1: none yet
    int64_t compute_accesses_left = 0;
  };

  // The moment that the next count will be.
  int64_t Moment() const { return static_cast<int64_t>(moment_ns_.size()); }

  void BecomesReady(BufferId id) {
    if (lives_[Index(id)].ready < 0) lives_[Index(id)].ready = Moment();
  }

  // The first sample at or after the moment.
  int32_t SampleAt(int64_t moment) const {
    return static_cast<int32_t>(std::lower_bound(sample_moments_.begin(),
                                                 sample_moments_.end(),
                                                 moment) -
                                sample_moments_.begin());
  }

  int64_t TimeAt(int64_t moment, int64_t step_ns) const {
    return moment < Moment() ? moment_ns_[static_cast<size_t>(moment)]
                             : step_ns;
  }

  const planner::Plan& plan_;
  std::vector<executor::TraceSpan> spans_;
  std::vector<Life> lives_;
  std::vector<int64_t> moment_ns_;
  std::vector<MemorySample> samples_;
  std::vector<int64_t> sample_moments_;
  StepId latest_ = planner::kNoStep;  // of the compute lane
  size_t started_ = 0;                // steps of the compute lane
};

}  // namespace

absl::StatusOr<Timeline> ReplayTimeline(const planner::Problem& problem,
                                        const planner::Plan& plan) {
  Watcher watcher(plan);
  LOADLINE_ASSIGN_OR_RETURN(const planner::Prediction prediction,
                            planner::Replay(problem, plan, &watcher));
  return std::move(watcher).Result(prediction.step_ns);
}

}  // namespace loadline::tools
