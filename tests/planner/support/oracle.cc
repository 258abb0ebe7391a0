// A* (Hart, Nilsson, Raphael 1968) over what is on the device, on the host and
// under way on each lane. Steps start when another ends or at once: some
// fastest plan is of that kind, for starting a step earlier harms no other as
// long as what it waits for is the same. Waiting is a choice; so is dropping a
// value. The estimate of what is left is the compute time of what has not run.
#include "tests/planner/support/oracle.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tests/planner/support/device_state.h"

namespace loadline::planner {
namespace {

class Search {
 public:
  Search(const Problem& problem, int64_t budget_bytes, int64_t most_states)
      : problem_(problem),
        rules_(problem),
        budget_bytes_(budget_bytes),
        most_states_(most_states),
        copies_(problem.machine && problem.machine->CanCopy()) {}

  Oracle Run() {
    for (const DeviceState& state : rules_.Begins()) {
      if (rules_.LiveBytes(state) <= budget_bytes_) Offer(state, 0);
    }
    while (!open_.empty()) {
      const Entry entry = open_.top();
      open_.pop();
      const double now_ns = entry.now_ns;
      const DeviceState state = states_[entry.state];
      if (now_ns > best_[state.Key()]) continue;
      if (++oracle_.states > most_states_) {
        oracle_.gave_up = true;
        return oracle_;
      }
      if (rules_.Finished(state)) {
        oracle_.step_ns = now_ns;
        return oracle_;
      }
      Expand(state, now_ns);
    }
    return oracle_;
  }

 private:
  struct Entry {
    double least_ns = 0;  // now plus what is left at least
    double now_ns = 0;
    size_t state = 0;
    bool operator<(const Entry& other) const {
      return least_ns != other.least_ns ? least_ns > other.least_ns
                                        : state > other.state;
    }
  };

  void Offer(DeviceState state, double now_ns) {
    // What nobody wants goes at once: it is never worse.
    state.device &= rules_.Wanted(state) | ~state.Droppable();
    state.initial &= state.device;
    const auto [found, added] = best_.try_emplace(state.Key(), now_ns);
    if (!added && found->second <= now_ns) return;
    found->second = now_ns;
    states_.push_back(state);
    open_.push(
        {now_ns + rules_.LeastLeftNs(state), now_ns, states_.size() - 1});
  }

  // A step starts: what must go for its bytes goes now, in every way, and no
  // value goes before. `state` is as it would be if it fitted.
  void OfferWithDrops(const DeviceState& state, double now_ns,
                      size_t first_drop) {
    if (rules_.LiveBytes(state) <= budget_bytes_) {
      Offer(state, now_ns);
      return;
    }
    const uint32_t may = state.Droppable();
    const size_t values = problem_.values.size();
    for (size_t i = first_drop; i < values + rules_.codecs(); ++i) {
      DeviceState next = state;
      if (i < values) {
        next.device &= ~(may & Bit(static_cast<int>(i)));
      } else {
        next.encoded &=
            ~(rules_.Idle(state) & Bit(static_cast<int>(i - values)));
      }
      if (next.device == state.device && next.encoded == state.encoded) {
        continue;
      }
      OfferWithDrops(next, now_ns, i + 1);
    }
  }

  void Expand(const DeviceState& state, double now_ns) {
    const uint32_t wanted = rules_.Wanted(state);
    if (state.lanes[0].id < 0) StartCompute(state, wanted, now_ns);
    if (copies_ && state.lanes[1].id < 0) StartOut(state, wanted, now_ns);
    if (copies_ && state.lanes[2].id < 0) StartIn(state, wanted, now_ns);
    Pass(state, now_ns);
  }

  void StartCompute(const DeviceState& state, uint32_t wanted, double now_ns) {
    const std::vector<DeviceJob>& jobs = rules_.jobs();
    for (size_t j = 0; j < jobs.size(); ++j) {
      const DeviceJob& job = jobs[j];
      const bool again = job.node < 0 || (state.done & Bit(job.node)) != 0;
      if (again && job.node >= 0 && !problem_.nodes[job.node].recompute) {
        continue;
      }
      // Of no use.
      if (again && (job.makes & wanted & ~state.device) == 0 &&
          (job.makes_encoded == 0 || (job.reads & wanted) == 0)) {
        continue;
      }
      const uint32_t gone = job.ends & state.initial & ~job.taken;
      if ((job.reads & ~state.Whole()) != 0 || (job.reads & gone) != 0 ||
          (job.reads_encoded & ~state.encoded) != 0 ||
          (job.makes & state.device & ~state.Droppable()) != 0 ||
          (job.makes_encoded & state.encoded) != 0 ||
          (gone & ~state.Droppable()) != 0 ||
          (job.taken & state.Leaving()) != 0) {
        continue;
      }
      DeviceState next = state;
      if (job.node >= 0) next.done |= Bit(job.node);
      // An older instance of what it makes goes first.
      next.device = (next.device & ~job.taken & ~gone) | job.makes;
      next.initial &= ~job.makes;
      next.arriving |= job.makes;
      next.in_use = job.reads & ~job.taken;
      next.encoded |= job.makes_encoded;
      next.extra_bytes = static_cast<uint32_t>(job.workspace_bytes);
      next.lanes[0] = {static_cast<int32_t>(j), job.ns, 0};
      OfferWithDrops(next, now_ns, 0);
    }
  }

  void StartOut(const DeviceState& state, uint32_t wanted, double now_ns) {
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      if ((state.Whole() & ~state.host & wanted & Bit(value)) == 0 ||
          !problem_.values[v].offload) {
        continue;
      }
      DeviceState next = state;
      const int first = rules_.FirstOfLast(value);
      if (first >= 0 && (state.homes & Bit(first)) != 0 &&
          problem_.values[v].bytes > 0) {
        if (state.lanes[2].id == first) continue;
        next.host &= ~Bit(first);  // it takes its place
      }
      next.lanes[1] = Copy(value, problem_.machine->d2h);
      Offer(next, now_ns + OverheadNs());
    }
  }

  void StartIn(const DeviceState& state, uint32_t wanted, double now_ns) {
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      if ((state.host & ~state.device & wanted & Bit(value)) == 0 ||
          !problem_.values[v].offload) {
        continue;
      }
      DeviceState next = state;
      next.device |= Bit(value);
      next.arriving |= Bit(value);
      next.lanes[2] = Copy(value, problem_.machine->h2d);
      OfferWithDrops(next, now_ns + OverheadNs(), 0);
    }
  }

  Running Copy(int v, const Link& link) const {
    return {v, static_cast<double>(link.latency_ns),
            static_cast<double>(problem_.values[v].bytes) /
                (link.bytes_per_s / 1e9)};
  }

  // What is left to do does not depend on when the state was reached, so that
  // the overhead of copies is time that has passed.
  double OverheadNs() const {
    return static_cast<double>(problem_.machine->copy_overhead_ns);
  }

  // Lets time pass to the next moment at which something ends.
  void Pass(const DeviceState& state, double now_ns) {
    const bool both = state.lanes[1].id >= 0 && state.lanes[2].id >= 0 &&
                      state.lanes[1].fixed_ns == 0 &&
                      state.lanes[2].fixed_ns == 0;
    const double speed = both ? problem_.machine->d2h_h2d_factor : 1;
    double span_ns = -1;
    for (const Running& lane : state.lanes) {
      if (lane.id < 0) continue;
      const double left_ns =
          lane.fixed_ns > 0 ? lane.fixed_ns : lane.moving_ns / speed;
      if (span_ns < 0 || left_ns < span_ns) span_ns = left_ns;
    }
    if (span_ns < 0) return;
    DeviceState next = state;
    for (int l = 0; l < 3; ++l) {
      Running& lane = next.lanes[l];
      if (lane.id < 0) continue;
      if (lane.fixed_ns > 0) {
        lane.fixed_ns -= span_ns;
      } else {
        lane.moving_ns -= span_ns * speed;
        // What rounding left over, if the factor is not exact in binary.
        if (lane.moving_ns < 1e-9) lane.moving_ns = 0;
      }
      if (lane.fixed_ns <= 0 && lane.moving_ns <= 0) rules_.End(l, next);
    }
    Offer(next, now_ns + span_ns);
  }

  const Problem& problem_;
  const DeviceRules rules_;
  const int64_t budget_bytes_;
  const int64_t most_states_;
  const bool copies_;
  std::vector<DeviceState> states_;
  absl::flat_hash_map<DeviceState::Bits, double> best_;
  std::priority_queue<Entry> open_;
  Oracle oracle_;
};

}  // namespace

Oracle FindLeastStep(const Problem& problem, int64_t budget_bytes,
                     int64_t most_states) {
  return Search(problem, budget_bytes, most_states).Run();
}

}  // namespace loadline::planner
