// See eviction_start.h. Tested in eviction_start_test.cc.
#include "planner/search/eviction_start.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "planner/base/random.h"
#include "planner/schedule/simulate.h"
#include "planner/search/late_homes.h"
#include "planner/search/next_uses.h"

namespace loadline::planner {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
// EvictionStartOptions::usual_bytes: smaller values than this part of the
// target stay. There are many of them, and each eviction adds items.
constexpr int64_t kSmallPart = 1024;

// What one pass may do.
struct PassOptions {
  int most_source_nodes = 0;  // that run again for one evicted value
  bool move_homes = false;    // of persistent values to the host
};

class EvictionPass {
 public:
  EvictionPass(const SearchModel& model, const Schedule& order,
               const EvictionStartOptions& start, const PassOptions& options)
      : model_(model),
        tuning_(model.tuning.eviction),
        order_(order),
        target_bytes_(start.target_bytes),
        usual_bytes_(std::min(start.usual_bytes, start.target_bytes)),
        most_source_nodes_(options.most_source_nodes),
        random_(start.seed),
        uses_(model, order),
        homes_(model, options.move_homes),
        job_of_(model.node_count),
        position_of_(model.node_count),
        values_(model.value_count),
        visited_(model.value_count, -1) {
    for (int p = 0; p < uses_.end(); ++p) {
      job_of_[model.jobs[order.items[p].id].node] = order.items[p].id;
      position_of_[model.jobs[order.items[p].id].node] = p;
    }
    compute_ns_.push_back(0);
    for (const Item& item : order.items) {
      compute_ns_.push_back(compute_ns_.back() +
                            static_cast<double>(model.node_ns[item.id]));
    }
  }

  std::optional<Schedule> Run() {
    for (int v = 0; v < model_.value_count; ++v) {
      if (model_.producer[v] >= 0 || !Needed(v)) continue;
      Place(v);
      values_[v].initial = true;
    }
    // Before the first item only a value that was never there frees bytes.
    while (live_bytes_ > target_bytes_) {
      if (!EvictOne()) return std::nullopt;
    }
    for (int p = 0; p < uses_.end(); ++p) {
      uses_.SetClock(p);
      running_ = p;
      CopyBackInTime();
      if (!RunFirst(order_.items[p].id)) return std::nullopt;
    }
    std::vector<int> outs;
    for (const Chain& chain : model_.chains) {
      const int last = chain.versions.back();
      if (homes_.OnHost(last) && !values_[last].on_host) outs.push_back(last);
    }
    return homes_.Finish(items_, cancelled_, outs);
  }

 private:
  struct ValueState {
    bool resident = false;
    bool on_host = false;
    bool initial = false;   // there since the start of the step
    int out_item = -1;      // the item that copied it out
    bool returned = false;  // copied back since
    int unread_copy = -1;   // the item of a copy back that nobody has read yet
    bool retired = false;   // replaced by its next version
    int pins = 0;           // runs that are about to read it
    int pool_index = -1;    // in pool_
    double made_ns = 0;
  };

  // A node that is about to run, and how many of its inputs are pinned.
  struct Frame {
    int job = 0;
    size_t pinned = 0;
  };

  int ProducerJob(int value) const {
    const int node = model_.producer[value];
    return node < 0 ? -1 : job_of_[node];
  }
  bool MayRerun(int value) const {
    const int job = ProducerJob(value);
    return job >= 0 && model_.may_rerun[job] && model_.chain_of[value] < 0;
  }
  bool MayCopy(int value) const {
    return model_.d2h_bytes_per_ns > 0 && model_.may_copy[value];
  }
  bool Needed(int value) { return uses_.Next(value) != NextUses::kNever; }

  void Place(int value) {
    ValueState& state = values_[value];
    if (state.resident) return;
    state.resident = true;
    live_bytes_ += model_.bytes[value];
    state.made_ns = now_ns_;
    if (model_.bytes[value] == 0 || !(MayRerun(value) || MayCopy(value))) {
      return;
    }
    state.pool_index = static_cast<int>(pool_.size());
    pool_.push_back(value);
  }

  void Drop(int value) {
    ValueState& state = values_[value];
    if (!state.resident) return;
    state.resident = state.initial = false;
    live_bytes_ -= model_.bytes[value];
    if (state.pool_index < 0) return;
    const int moved = pool_.back();
    pool_[state.pool_index] = moved;
    values_[moved].pool_index = state.pool_index;
    pool_.pop_back();
    state.pool_index = -1;
  }

  void Unpin(int value) {
    ValueState& state = values_[value];
    state.unread_copy = -1;
    if (--state.pins == 0 && !Needed(value)) Drop(value);
  }

  bool AddItem(ItemKind kind, int id) {
    items_.push_back({kind, id});
    cancelled_.push_back(0);
    return std::ssize(items_) <=
           static_cast<std::ptrdiff_t>(tuning_.most_items_per_node) *
               (uses_.end() + 1);
  }

  // The first run of the node at the clock, after whatever its inputs need.
  bool RunFirst(int job) {
    frames_.assign(1, {job, 0});
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const std::vector<int>& reads = model_.reads[frame.job];
      if (frame.pinned == reads.size()) {
        if (!Execute(frame.job)) return false;
        frames_.pop_back();
        continue;
      }
      const int value = reads[frame.pinned];
      ValueState& state = values_[value];
      if (state.resident) {
        ++state.pins;
        ++frame.pinned;
      } else if (state.on_host && !state.retired) {
        if (!MakeRoom(model_.bytes[value]) || !CopyBack(value)) return false;
      } else if (MayRerun(value)) {
        frames_.push_back({ProducerJob(value), 0});
      } else {
        return false;
      }
    }
    return true;
  }

  // Runs the node of the last frame, whose inputs are all resident.
  bool Execute(int job) {
    const bool first = frames_.size() == 1;
    if (first) uses_.SetClock(uses_.clock() + 1);
    int64_t bytes = model_.workspace_bytes[job];
    for (int v : model_.makes[job]) bytes += model_.bytes[v];
    for (const auto& [in, out] : model_.overwrites[job]) {
      if (values_[in].pins == 1 && !Needed(in)) bytes -= model_.bytes[out];
    }
    if (!MakeRoom(bytes) || !AddItem(ItemKind::kRun, job)) return false;
    now_ns_ += static_cast<double>(model_.node_ns[job]);
    for (int v : model_.reads[job]) {
      if (values_[v].initial && model_.chain_of[v] >= 0) {
        homes_.NoteRead(v, LastItem());
      }
    }
    for (int v : model_.makes[job]) {
      Place(v);
      const ValueId old = model_.index.previous_version[v];
      if (old != kNoValue) values_[Index(old)].retired = true;
    }
    for (int v : model_.reads[job]) Unpin(v);
    const Frame* reader = first ? nullptr : &frames_[frames_.size() - 2];
    for (int v : model_.makes[job]) {
      const bool wanted =
          reader != nullptr && model_.reads[reader->job][reader->pinned] == v;
      if (!wanted && !Needed(v)) Drop(v);
    }
    return true;
  }

  bool MakeRoom(int64_t bytes) {
    while (live_bytes_ + bytes > target_bytes_) {
      if (!EvictOne() && !RecomputeInsteadOfCopy()) return false;
    }
    while (live_bytes_ + bytes > usual_bytes_) {
      if (!EvictOne(target_bytes_ / kSmallPart)) break;
    }
    return true;
  }

  // How a value may be evicted, and the time that this adds.
  struct Eviction {
    int value = -1;
    double cost_ns = kImpossible;
    double score = kImpossible;  // added time per byte and per idle time
    bool copy = false;
    bool moves_home = false;  // of a persistent value, to the host
  };

  // False: no value of at least so many bytes can be evicted.
  bool EvictOne(int64_t least_bytes = 0) {
    const int count = static_cast<int>(pool_.size());
    Eviction best;
    for (int i = 0; i < tuning_.sampled_candidates && count > 0; ++i) {
      Improve(pool_[random_.Below(count)], least_bytes, best);
    }
    // Rare: most values are about to be read.
    for (int i = 0; best.value < 0 && i < count; ++i) {
      Improve(pool_[i], least_bytes, best);
    }
    if (best.value < 0) return false;
    if (best.moves_home) MoveHome(best.value);
    return best.copy ? CopyOut(best.value) : Forget(best.value);
  }

  void Improve(int value, int64_t least_bytes, Eviction& best) {
    const ValueState& state = values_[value];
    if (state.pins > 0 || model_.bytes[value] < least_bytes) return;
    const int next = uses_.Next(value);
    if (next <= running_) return;  // its reader waits for the other inputs
    Eviction eviction;
    eviction.value = value;
    eviction.moves_home = MovesHome(value, next);
    if (running_ < 0 && !eviction.moves_home) return;
    const bool leaves = eviction.moves_home || homes_.OnHost(value);
    if (next >= uses_.end() && (!leaves || model_.is_output[value])) return;
    const double idle_ns = 1 + compute_ns_[next] - compute_ns_[uses_.clock()];
    const double scale =
        1 / (idle_ns * static_cast<double>(model_.bytes[value]));
    eviction.cost_ns =
        CopyCost(value, next < uses_.end(), eviction.moves_home, idle_ns);
    eviction.copy = eviction.cost_ns < kImpossible;
    // A rerun that cannot be cheap enough is not looked at.
    const double most_ns = std::min(eviction.cost_ns, best.score / scale);
    const double rerun_ns =
        state.unread_copy >= 0 ? kImpossible : RerunCost(value, next, most_ns);
    if (rerun_ns < eviction.cost_ns) {
      eviction.cost_ns = rerun_ns;
      eviction.copy = eviction.moves_home = false;
    }
    if (eviction.cost_ns == kImpossible) return;
    eviction.score = (1 + eviction.cost_ns) * scale;
    if (eviction.score < best.score) best = eviction;
  }

  // Only a value at home on the host is absent at the start or the end of the
  // step.
  bool MovesHome(int value, int next) const {
    const ValueState& state = values_[value];
    return homes_.MayMove(value) &&
           host_bytes_ + model_.bytes[value] <= model_.host_limit_bytes &&
           (next >= uses_.end() || (state.initial && !homes_.WasRead(value)));
  }

  // `returns`: whether the value is copied back.
  double CopyCost(int value, bool returns, bool moves_home,
                  double idle_ns) const {
    const ValueState& state = values_[value];
    if (!MayCopy(value)) return kImpossible;
    const bool there =
        state.on_host || (moves_home && value == homes_.First(value));
    double wait_ns = 0, lanes_ns = 0, copies = 0;
    if (!there) {
      if (!moves_home && !homes_.OnHost(value) &&
          host_bytes_ + model_.bytes[value] > model_.host_limit_bytes) {
        return kImpossible;
      }
      wait_ns = std::max(0.0, std::max(d2h_free_ns_, state.made_ns) +
                                  model_.out_ns[value] - now_ns_);
      lanes_ns += model_.out_ns[value];
      ++copies;
    }
    if (returns) {
      wait_ns += std::max(0.0, model_.in_ns[value] - idle_ns);
      lanes_ns += model_.in_ns[value];
      ++copies;
    }
    // What the new home asks for at the other end of the step.
    if (moves_home && there && homes_.IsUpdated(value)) {
      lanes_ns += model_.out_ns[value];
      ++copies;
    }
    if (moves_home && homes_.WasRead(value)) {
      lanes_ns += model_.in_ns[value];
      ++copies;
    }
    const double overhead_ns = copies * model_.copy_overhead_ns;
    if (model_.copies_exclude_compute) return lanes_ns + overhead_ns;
    return wait_ns + tuning_.lane_price * lanes_ns + overhead_ns;
  }

  // Time of the nodes that must run again so that `value` can be read at
  // `next`; infinite if that is impossible, takes too many nodes or more than
  // `most_ns`. Leaves in sources_ the values that must be held until then.
  double RerunCost(int value, int next, double most_ns) {
    if (!MayRerun(value)) return kImpossible;
    ++visit_;
    sources_.clear();
    to_run_.assign(1, value);
    visited_[value] = visit_;
    double cost_ns = 0;
    for (size_t i = 0; i < to_run_.size(); ++i) {
      const int job = ProducerJob(to_run_[i]);
      cost_ns += static_cast<double>(model_.node_ns[job]);
      if (static_cast<int>(i) >= most_source_nodes_ || cost_ns >= most_ns) {
        return kImpossible;
      }
      for (int input : model_.reads[job]) {
        if (visited_[input] == visit_) continue;
        visited_[input] = visit_;
        if (!AddSource(input, next)) return kImpossible;
      }
    }
    return cost_ns;
  }

  // One input of a node that would run again at position `next`.
  bool AddSource(int input, int next) {
    const ValueState& state = values_[input];
    const int updater = model_.Updater(input);
    if (updater >= 0 && position_of_[updater] < next) return false;
    const bool lives_on = uses_.Last(input) >= next;
    if (lives_on && (state.resident || state.on_host)) return true;
    if (MayRerun(input)) {
      to_run_.push_back(input);
      return true;
    }
    if (state.on_host && !state.retired) return true;
    if (!state.resident) return false;
    sources_.push_back(input);
    return true;
  }

  bool Forget(int value) {
    const int next = uses_.Next(value);
    RerunCost(value, next, kImpossible);
    for (int source : sources_) uses_.HoldTo(source, next);
    Drop(value);
    return true;
  }

  bool CopyOut(int value) {
    ValueState& state = values_[value];
    if (state.unread_copy >= 0) {
      // Copied back too early: the copy is taken out, and made when needed.
      cancelled_[state.unread_copy] = 1;
      state.unread_copy = -1;
      Drop(value);
      return true;
    }
    if (!state.on_host) {
      if (!AddItem(ItemKind::kOut, value)) return false;
      state.on_host = true;
      state.out_item = LastItem();
      if (!homes_.OnHost(value)) {
        host_bytes_ += model_.bytes[value];
        copied_out_.push_back(value);
      }
      d2h_free_ns_ =
          std::max(d2h_free_ns_, state.made_ns) + model_.out_ns[value];
      now_ns_ = std::max(now_ns_, d2h_free_ns_);
    }
    copied_.emplace(uses_.Next(value), value);
    Drop(value);
    return true;
  }

  // Frees host memory. The schedule no longer copies out the value, of those
  // that were not copied back yet, that takes the least time per byte to
  // compute again. False: there is none.
  bool RecomputeInsteadOfCopy() {
    int best = -1;
    double best_score = kImpossible;
    for (size_t i = 0; i < copied_out_.size();) {
      const int value = copied_out_[i];
      const ValueState& state = values_[value];
      if (!state.on_host || state.returned || homes_.OnHost(value)) {
        copied_out_[i] = copied_out_.back();
        copied_out_.pop_back();
        continue;
      }
      ++i;
      const int next = uses_.Next(value);
      if (next <= running_ || next >= uses_.end()) continue;
      const auto bytes = static_cast<double>(model_.bytes[value]);
      const double score =
          (1 + RerunCost(value, next, best_score * bytes)) / bytes;
      if (score < best_score) {
        best_score = score;
        best = value;
      }
    }
    if (best < 0) return false;
    ValueState& state = values_[best];
    cancelled_[state.out_item] = 1;
    state.on_host = false;
    state.out_item = -1;
    host_bytes_ -= model_.bytes[best];
    return Forget(best);
  }

  // The chain's first version is then on the host all the time, and its last
  // one goes to the same place.
  void MoveHome(int value) {
    homes_.Move(value);
    host_bytes_ += model_.bytes[value];
    ValueState& first = values_[homes_.First(value)];
    first.on_host = true;
    if (homes_.IsUpdated(value) && values_[homes_.Last(value)].out_item >= 0) {
      host_bytes_ -= model_.bytes[value];
    }
    if (first.out_item < 0) return;
    cancelled_[first.out_item] = 1;
    host_bytes_ -= model_.bytes[value];
  }

  int LastItem() const { return static_cast<int>(items_.size()) - 1; }

  bool CopyBack(int value) {
    if (!AddItem(ItemKind::kIn, value)) return false;
    h2d_free_ns_ = std::max(h2d_free_ns_, now_ns_) + model_.in_ns[value];
    Place(value);
    values_[value].returned = true;
    values_[value].unread_copy = LastItem();
    values_[value].made_ns = h2d_free_ns_;
    return true;
  }

  // Starts copies back early enough for their next reads, where there is room.
  void CopyBackInTime() {
    while (!copied_.empty()) {
      const auto [next, value] = copied_.top();
      const ValueState& state = values_[value];
      const bool is_at_home = next >= uses_.end() && homes_.OnHost(value);
      if (next < uses_.clock() || state.resident || state.retired ||
          !state.on_host || is_at_home) {
        copied_.pop();
        continue;
      }
      const double lead_ns = tuning_.copy_back_lead * model_.InLeadNs(value) +
                             std::max(0.0, h2d_free_ns_ - now_ns_);
      if (compute_ns_[next] - compute_ns_[uses_.clock()] > lead_ns ||
          live_bytes_ + model_.bytes[value] > usual_bytes_) {
        return;
      }
      copied_.pop();
      CopyBack(value);
    }
  }

  const SearchModel& model_;
  const SearchTuning::Eviction& tuning_;
  const Schedule& order_;
  const int64_t target_bytes_, usual_bytes_;
  const int most_source_nodes_;
  Random random_;
  NextUses uses_;
  LateHomes homes_;
  std::vector<int> job_of_;         // by node
  std::vector<int> position_of_;    // by node: of its first run, in the order
  std::vector<double> compute_ns_;  // by position: of all first runs before it
  std::vector<Item> items_;
  std::vector<char> cancelled_;  // by item
  // Position whose node is being run for the first time; -1: before all items.
  int running_ = -1;
  std::vector<ValueState> values_;
  std::vector<int> pool_;  // resident values that may be evicted at some time
  std::vector<Frame> frames_;
  int64_t live_bytes_ = 0;
  int64_t host_bytes_ = 0;
  // Estimates: when compute has passed the last item, and when lanes are free.
  double now_ns_ = 0, d2h_free_ns_ = 0, h2d_free_ns_ = 0;
  using NextAndValue = std::pair<int, int>;
  std::priority_queue<NextAndValue, std::vector<NextAndValue>,
                      std::greater<NextAndValue>>
      copied_;  // on the host only; may hold outdated pairs
  // On the host, but not at home there; may hold outdated entries.
  std::vector<int> copied_out_;
  // Of RerunCost.
  std::vector<int> to_run_, sources_;
  std::vector<int> visited_;  // by value: the last visit
  int visit_ = 0;
};

}  // namespace

std::optional<Schedule> EvictionStart(const SearchModel& model,
                                      const Schedule& order,
                                      const EvictionStartOptions& options) {
  std::vector<PassOptions> passes;
  for (int most_nodes : model.tuning.eviction.most_source_nodes) {
    passes.push_back({most_nodes, false});
  }
  // Only where nodes may run again as well: a search with copies alone is also
  // a start of the search with both, which must not miss what a retry would
  // find.
  const bool reruns =
      std::any_of(model.may_rerun.begin(), model.may_rerun.end(),
                  [](char may) { return may != 0; });
  const bool homes =
      reruns && std::any_of(model.chains.begin(), model.chains.end(),
                            [](const Chain& chain) { return chain.can_host; });
  if (homes) {
    // Copies alone last: what is on the host is never missing.
    passes.push_back({model.tuning.eviction.most_source_nodes.front(), true});
    passes.push_back({0, true});
  }
  for (const PassOptions& pass : passes) {
    std::optional<Schedule> schedule =
        EvictionPass(model, order, options, pass).Run();
    if (!schedule) continue;
    const Lifetimes lives = FindLifetimes(model, *schedule);
    if (lives.valid && lives.peak_bytes <= options.target_bytes) {
      return schedule;
    }
  }
  return std::nullopt;
}

}  // namespace loadline::planner
