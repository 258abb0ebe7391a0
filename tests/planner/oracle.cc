// A* (Hart, Nilsson, Raphael 1968) over what is on the device, on the host and
// under way on each lane. Steps start when another ends or at once: some
// fastest plan is of that kind, for starting a step earlier harms no other as
// long as what it waits for is the same. Waiting is a choice; so is dropping a
// value. The estimate of what is left is the compute time of what has not run.
#include "tests/planner/oracle.h"

#include <algorithm>
#include <array>
#include <queue>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/container/flat_hash_map.h"

namespace loadline::planner {
namespace {

uint32_t Bit(int i) { return uint32_t{1} << i; }

// One lane's step under way.
struct Running {
  int32_t id = -1;       // what it is; -1: idle
  double fixed_ns = 0;   // left of compute, or of a copy's latency
  double moving_ns = 0;  // left of a copy's bytes, were it alone
};

struct State {
  uint32_t done = 0;      // nodes that have run or run now
  uint32_t device = 0;    // values there, whole or being made or copied there
  uint32_t arriving = 0;  // of those, the ones not whole yet
  uint32_t in_use = 0;    // of the others, what compute reads now
  uint32_t encoded = 0;   // codecs (numbered over all values) there
  uint32_t host = 0;      // values whole on the host
  uint32_t homes = 0;     // persistent values that live on the host
  uint32_t extra_bytes = 0;  // workspace of what runs
  Running lanes[3];

  using Bits = std::array<uint64_t, 13>;
  Bits Key() const {
    const auto both = [](uint32_t high, uint32_t low) {
      return (uint64_t{high} << 32) | low;
    };
    Bits key = {both(done, device), both(arriving, in_use), both(encoded, host),
                both(homes, extra_bytes)};
    size_t at = 4;
    for (const Running& lane : lanes) {
      key[at++] = static_cast<uint64_t>(lane.id);
      key[at++] = absl::bit_cast<uint64_t>(lane.fixed_ns);
      key[at++] = absl::bit_cast<uint64_t>(lane.moving_ns);
    }
    return key;
  }
};

// What a compute lane id stands for.
struct Job {
  double ns = 0;
  uint32_t reads = 0;
  uint32_t makes = 0;
  uint32_t taken = 0;  // reads whose bytes outputs take over
  uint32_t reads_encoded = 0;
  uint32_t makes_encoded = 0;
  int64_t workspace_bytes = 0;
  int node = -1;  // -1: a codec
};

class Search {
 public:
  Search(const Problem& problem, int64_t budget_bytes, int64_t most_states)
      : problem_(problem),
        index_(IndexProblem(problem)),
        budget_bytes_(budget_bytes),
        most_states_(most_states) {
    for (size_t n = 0; n < problem.nodes.size(); ++n) {
      AddNode(static_cast<int>(n));
    }
    for (size_t v = 0; v < problem.values.size(); ++v) {
      for (const Codec& codec : problem.values[v].stash) {
        AddCodec(static_cast<int>(v), codec);
      }
    }
    copies_ = problem.machine && problem.machine->CanCopy();
    all_ = static_cast<uint32_t>((uint64_t{1} << problem.nodes.size()) - 1);
  }

  Oracle Run() {
    Begin();
    while (!open_.empty()) {
      const Entry entry = open_.top();
      open_.pop();
      const double now_ns = entry.now_ns;
      const State state = states_[entry.state];
      if (now_ns > best_[state.Key()]) continue;
      if (++oracle_.states > most_states_) {
        oracle_.gave_up = true;
        return oracle_;
      }
      if (Finished(state)) {
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

  const Value& ValueAt(int v) const { return problem_.values[v]; }

  void AddNode(int n) {
    const Node& node = problem_.nodes[n];
    reads_.push_back(0);
    makes_.push_back(0);
    Job job;
    job.node = n;
    for (ValueId id : node.inputs) job.reads |= Bit(static_cast<int>(id));
    for (ValueId id : node.outputs) job.makes |= Bit(static_cast<int>(id));
    reads_.back() = job.reads;
    makes_.back() = job.makes;
    job.ns = static_cast<double>(node.time_ns);
    job.workspace_bytes = node.workspace_bytes;
    least_ns_.push_back(job.ns);
    AddTakes(job, 0, 0);
    for (const Variant& variant : node.variants) {
      job.ns = static_cast<double>(variant.time_ns);
      job.workspace_bytes = variant.workspace_bytes;
      least_ns_.back() = std::min(least_ns_.back(), job.ns);
      AddTakes(job, 0, 0);
    }
  }

  // One job for every set of in-place pairs that use no value twice.
  void AddTakes(const Job& job, size_t pair, uint32_t used) {
    const auto& inplace = problem_.nodes[job.node].inplace;
    if (pair == inplace.size()) {
      jobs_.push_back(job);
      return;
    }
    AddTakes(job, pair + 1, used);
    const uint32_t in = Bit(static_cast<int>(inplace[pair].first));
    const uint32_t out = Bit(static_cast<int>(inplace[pair].second));
    if ((used & (in | out)) != 0) return;
    Job taking = job;
    taking.taken |= in;
    AddTakes(taking, pair + 1, used | in | out);
  }

  void AddCodec(int v, const Codec& codec) {
    const uint32_t bit = Bit(static_cast<int>(codec_bytes_.size()));
    codec_bytes_.push_back(codec.bytes);
    Job encode;
    encode.ns = static_cast<double>(codec.encode_ns);
    encode.reads = Bit(v);
    encode.makes_encoded = bit;
    Job decode;
    decode.ns = static_cast<double>(codec.decode_ns);
    decode.reads_encoded = bit;
    decode.makes = Bit(v);
    jobs_.push_back(encode);
    jobs_.push_back(decode);
  }

  int64_t LiveBytes(const State& state) const {
    int64_t bytes = state.extra_bytes;
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      if ((state.device & Bit(static_cast<int>(v))) != 0) {
        bytes += problem_.values[v].bytes;
      }
    }
    for (size_t c = 0; c < codec_bytes_.size(); ++c) {
      if ((state.encoded & Bit(static_cast<int>(c))) != 0) {
        bytes += codec_bytes_[c];
      }
    }
    return bytes;
  }

  // One begin for every choice of homes.
  void Begin() {
    std::vector<int> persistent;
    State base;
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      if (index_.producer[v] >= 0) continue;
      if (ValueAt(value).persistent) {
        persistent.push_back(value);
      } else if (!index_.consumers[v].empty() || index_.is_output[v]) {
        base.device |= Bit(value);
      }
    }
    for (uint32_t choice = 0; choice < Bit(static_cast<int>(persistent.size()));
         ++choice) {
      State state = base;
      bool allowed = true;
      for (size_t i = 0; i < persistent.size(); ++i) {
        const bool on_host = (choice & Bit(static_cast<int>(i))) != 0;
        allowed = allowed && (!on_host || MayLiveOnHost(persistent[i]));
        (on_host ? state.host : state.device) |= Bit(persistent[i]);
      }
      if (!allowed) continue;
      state.homes = state.host;
      if (LiveBytes(state) <= budget_bytes_) Offer(state, 0);
    }
  }

  bool MayLiveOnHost(int v) const {
    return ValueAt(v).offload && problem_.machine &&
           problem_.machine->host_bytes > 0;
  }

  int LastVersion(int v) const {
    while (index_.next_version[v] != kNoValue) {
      v = static_cast<int>(index_.next_version[v]);
    }
    return v;
  }

  bool Finished(const State& state) const {
    if (state.done != all_) return false;
    for (const Running& lane : state.lanes) {
      if (lane.id >= 0) return false;
    }
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      if (index_.is_output[v] && (state.device & Bit(value)) == 0) return false;
      if (!ValueAt(value).persistent || index_.producer[v] >= 0) continue;
      const bool on_host = (state.homes & Bit(value)) != 0;
      const uint32_t where = on_host ? state.host : state.device;
      if ((where & Bit(LastVersion(value))) == 0) return false;
    }
    return true;
  }

  double LeastLeft(const State& state) const {
    double left = 0;
    if (state.lanes[0].id >= 0) left += state.lanes[0].fixed_ns;
    for (size_t n = 0; n < least_ns_.size(); ++n) {
      if ((state.done & Bit(static_cast<int>(n))) == 0) left += least_ns_[n];
    }
    return left;
  }

  void Offer(State state, double now_ns) {
    // What nobody wants goes at once: it is never worse.
    state.device &= Wanted(state) | ~Droppable(state);
    const auto [found, added] = best_.try_emplace(state.Key(), now_ns);
    if (!added && found->second <= now_ns) return;
    found->second = now_ns;
    states_.push_back(state);
    open_.push({now_ns + LeastLeft(state), now_ns, states_.size() - 1});
  }

  // A step starts: what must go for its bytes goes now, in every way, and no
  // value goes before. `state` is as it would be if it fitted.
  void OfferWithDrops(const State& state, double now_ns, size_t first_drop) {
    if (LiveBytes(state) <= budget_bytes_) {
      Offer(state, now_ns);
      return;
    }
    const uint32_t may = Droppable(state);
    const size_t values = problem_.values.size();
    for (size_t i = first_drop; i < values + codec_bytes_.size(); ++i) {
      State next = state;
      if (i < values) {
        next.device &= ~(may & Bit(static_cast<int>(i)));
      } else {
        next.encoded &= ~(Idle(state) & Bit(static_cast<int>(i - values)));
      }
      if (next.device == state.device && next.encoded == state.encoded) {
        continue;
      }
      OfferWithDrops(next, now_ns, i + 1);
    }
  }

  // Encoded values that nothing touches now.
  uint32_t Idle(const State& state) const {
    if (state.lanes[0].id < 0) return state.encoded;
    const Job& job = jobs_[state.lanes[0].id];
    return state.encoded & ~job.reads_encoded & ~job.makes_encoded;
  }

  // What some way to the end may still read: what nodes that have not run
  // read, what must be there in the end, and what it takes to make such values
  // again.
  uint32_t Wanted(const State& state) const {
    uint32_t wanted = 0;
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      if (index_.is_output[v]) wanted |= Bit(value);
      if (ValueAt(value).persistent && index_.producer[v] < 0) {
        wanted |= Bit(LastVersion(value));
      }
    }
    for (int n = static_cast<int>(problem_.nodes.size()) - 1; n >= 0; --n) {
      const bool first = (state.done & Bit(n)) == 0;
      const bool again =
          problem_.nodes[n].recompute && (makes_[n] & wanted) != 0;
      if (first || again) wanted |= reads_[n];
    }
    return wanted;
  }

  void Expand(const State& state, double now_ns) {
    const uint32_t wanted = Wanted(state);
    if (state.lanes[0].id < 0) StartCompute(state, wanted, now_ns);
    if (copies_ && state.lanes[1].id < 0) StartOut(state, wanted, now_ns);
    if (copies_ && state.lanes[2].id < 0) StartIn(state, wanted, now_ns);
    Pass(state, now_ns);
  }

  uint32_t Whole(const State& state) const {
    return state.device & ~state.arriving;
  }
  uint32_t Droppable(const State& state) const {
    return Whole(state) & ~state.in_use & ~Leaving(state);
  }
  // What the copy out reads now.
  static uint32_t Leaving(const State& state) {
    return state.lanes[1].id >= 0 ? Bit(state.lanes[1].id) : 0;
  }

  void StartCompute(const State& state, uint32_t wanted, double now_ns) {
    for (size_t j = 0; j < jobs_.size(); ++j) {
      const Job& job = jobs_[j];
      const bool again = job.node < 0 || (state.done & Bit(job.node)) != 0;
      if (again && job.node >= 0 && !problem_.nodes[job.node].recompute) {
        continue;
      }
      // Of no use.
      if (again && (job.makes & wanted & ~state.device) == 0 &&
          (job.makes_encoded == 0 || (job.reads & wanted) == 0)) {
        continue;
      }
      if ((job.reads & ~Whole(state)) != 0 ||
          (job.reads_encoded & ~state.encoded) != 0 ||
          (job.makes & state.device & ~Droppable(state)) != 0 ||
          (job.makes_encoded & state.encoded) != 0 ||
          (job.taken & Leaving(state)) != 0) {
        continue;
      }
      State next = state;
      if (job.node >= 0) next.done |= Bit(job.node);
      // An older instance of what it makes goes first.
      next.device = (next.device & ~job.taken) | job.makes;
      next.arriving |= job.makes;
      next.in_use = job.reads & ~job.taken;
      next.encoded |= job.makes_encoded;
      next.extra_bytes = static_cast<uint32_t>(job.workspace_bytes);
      next.lanes[0] = {static_cast<int32_t>(j), job.ns, 0};
      OfferWithDrops(next, now_ns, 0);
    }
  }

  void StartOut(const State& state, uint32_t wanted, double now_ns) {
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      if ((Whole(state) & ~state.host & wanted & Bit(value)) == 0 ||
          !ValueAt(value).offload) {
        continue;
      }
      State next = state;
      next.lanes[1] = Copy(value, problem_.machine->d2h_bytes_per_s);
      Offer(next, now_ns);
    }
  }

  void StartIn(const State& state, uint32_t wanted, double now_ns) {
    for (size_t v = 0; v < problem_.values.size(); ++v) {
      const int value = static_cast<int>(v);
      if ((state.host & ~state.device & wanted & Bit(value)) == 0 ||
          !ValueAt(value).offload) {
        continue;
      }
      State next = state;
      next.device |= Bit(value);
      next.arriving |= Bit(value);
      next.lanes[2] = Copy(value, problem_.machine->h2d_bytes_per_s);
      OfferWithDrops(next, now_ns, 0);
    }
  }

  Running Copy(int v, double bytes_per_s) const {
    return {v, static_cast<double>(problem_.machine->copy_latency_ns),
            static_cast<double>(ValueAt(v).bytes) / (bytes_per_s / 1e9)};
  }

  // Lets time pass to the next moment at which something ends.
  void Pass(const State& state, double now_ns) {
    const bool both = state.lanes[1].id >= 0 && state.lanes[2].id >= 0 &&
                      state.lanes[1].fixed_ns == 0 &&
                      state.lanes[2].fixed_ns == 0;
    const double speed = both ? problem_.machine->bidirectional : 1;
    double span_ns = -1;
    for (const Running& lane : state.lanes) {
      if (lane.id < 0) continue;
      const double left_ns =
          lane.fixed_ns > 0 ? lane.fixed_ns : lane.moving_ns / speed;
      if (span_ns < 0 || left_ns < span_ns) span_ns = left_ns;
    }
    if (span_ns < 0) return;
    State next = state;
    for (int l = 0; l < 3; ++l) {
      Running& lane = next.lanes[l];
      if (lane.id < 0) continue;
      if (lane.fixed_ns > 0) {
        lane.fixed_ns -= span_ns;
      } else {
        lane.moving_ns -= span_ns * speed;
      }
      if (lane.fixed_ns <= 0 && lane.moving_ns <= 0) End(l, next);
    }
    Offer(next, now_ns + span_ns);
  }

  void End(int l, State& state) const {
    const int id = state.lanes[l].id;
    if (l == 0) {
      state.arriving &= ~jobs_[id].makes;
      state.in_use = 0;
      state.extra_bytes = 0;
    } else if (l == 1) {
      state.host |= Bit(id);
    } else {
      state.arriving &= ~Bit(id);
    }
    state.lanes[l] = Running();
  }

  const Problem& problem_;
  const ProblemIndex index_;
  const int64_t budget_bytes_;
  const int64_t most_states_;
  bool copies_ = false;
  uint32_t all_ = 0;
  std::vector<Job> jobs_;
  std::vector<double> least_ns_;         // by node
  std::vector<uint32_t> reads_, makes_;  // by node
  std::vector<int64_t> codec_bytes_;
  std::vector<State> states_;
  absl::flat_hash_map<State::Bits, double> best_;
  std::priority_queue<Entry> open_;
  Oracle oracle_;
};

}  // namespace

Oracle FindLeastStep(const Problem& problem, int64_t budget_bytes,
                     int64_t most_states) {
  return Search(problem, budget_bytes, most_states).Run();
}

}  // namespace loadline::planner
