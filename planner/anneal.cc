// Simulated annealing over schedules. Energy: step time plus lambda times the
// area over the target (not the peak: the area tells near misses apart).
// Lambda rises geometrically while the temperature falls: at first the order
// settles, reruns and copies enter as lambda rises. The acceptance threshold is
// drawn before the move, so the cheap terms (broken rules, compute time, area)
// reject most moves before the lanes are simulated, and the lanes stop at the
// threshold. Moves: shift an item, put a rerun, a copy or a codec where a value
// lies idle across a high point, take one out, exchange them, run a node
// another way, drag a run with those that block it. Tested in solve_test.cc and
// choices_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/edits.h"
#include "planner/random.h"
#include "planner/search.h"

namespace loadline::planner {
namespace {

constexpr int kChainLimit = 6;
constexpr int kDragLimit = 6;
constexpr int kTries = 24;
constexpr int kRefreshEvery = 256;  // moves between updates of the lists

class Annealer {
 public:
  Annealer(SearchState& state, const AnnealOptions& options, Effort& effort)
      : state_(state),
        model_(state.model()),
        options_(options),
        effort_(effort),
        random_(options.seed) {
    for (size_t c = 0; c < model_.chains.size(); ++c) {
      if (model_.chains[c].can_host) homes_.push_back(static_cast<int>(c));
    }
    for (int v = 0; v < model_.value_count; ++v) {
      if (model_.bytes[v] > 0) values_.push_back(v);
    }
    copies_ = model_.d2h_bytes_per_ns > 0;
    codecs_ = model_.form_count() > model_.value_count;
  }

  void Run(std::optional<Schedule>* best, double* best_step_ns) {
    if (values_.empty() || model_.node_count == 0) return;
    SetScales();
    const int64_t price = MovePrice(state_);
    step_ns_ = state_.Makespan();
    for (int64_t move = 0; move < options_.moves; ++move) {
      if (move % kRefreshEvery == 0) {
        if (effort_.Spent()) break;
        Refresh();
        Cool(static_cast<double>(move) / static_cast<double>(options_.moves));
      }
      effort_.left -= price;
      if (!Step()) continue;
      const double step_ns = std::round(step_ns_);
      if (state_.area() <= 0 && step_ns < *best_step_ns &&
          step_ns >= options_.floor_ns) {
        *best_step_ns = step_ns;
        *best = state_.ToSchedule();
        if (step_ns <= options_.floor_ns) break;
      }
    }
  }

  // Moves until the effort is spent; see Slim.
  void RunSlim() {
    if (values_.empty() || model_.node_count == 0) return;
    SetScales();
    const int64_t price = MovePrice(state_);
    const double most_bytes = state_.PeakBytes();
    step_ns_ = state_.Makespan();
    const double most_ns = step_ns_;
    for (int64_t move = 0; state_.area() > 0; ++move) {
      if (move % kRefreshEvery == 0) {
        if (effort_.Spent()) break;
        Refresh();
      }
      effort_.left -= price;
      allowed_ = most_ns - step_ns_;
      if (!Slimmer(most_ns, most_bytes)) {
        state_.Undo(0);
        continue;
      }
      state_.Commit();
    }
  }

 private:
  // One move, pending; true if it costs nothing.
  bool Slimmer(double most_ns, double most_bytes) {
    const double area = state_.area();
    if (!Propose() || !state_.valid() || state_.area() > area ||
        static_cast<double>(state_.compute_ns()) > most_ns ||
        state_.Exceeds(most_bytes)) {
      return false;
    }
    const double step_ns = state_.Makespan(most_ns);
    if (step_ns > most_ns || std::round(step_ns) < options_.floor_ns) {
      return false;
    }
    step_ns_ = step_ns;
    return true;
  }

  // Natural units: a typical run's time, and the price per area at which one
  // run pays for taking a typical value away from a tenth of the sequence.
  void SetScales() {
    double bytes = 0;
    for (int v : values_) {
      bytes += static_cast<double>(model_.bytes[v]) / values_.size();
    }
    run_ns_ = std::max(
        1e-6, static_cast<double>(model_.compute_ns) / model_.node_count);
    lambda_unit_ = run_ns_ / (bytes * 0.1 * state_.slot_count());
  }

  void Cool(double done) {
    lambda_ = lambda_unit_ * options_.first_lambda *
              std::pow(options_.last_lambda / options_.first_lambda,
                       std::min(1.0, done * 1.2));
    // Late in the run, whatever lambda it takes to get under the target.
    if (done > 0.5) {
      pressure_ *= state_.area() > 0 ? 1.05 : 0.98;
      pressure_ = std::clamp(pressure_, 0.3, 1e3);
    }
    lambda_ *= pressure_;
    temperature_ =
        run_ns_ * options_.first_temperature *
        std::pow(options_.last_temperature / options_.first_temperature, done);
  }

  void Refresh() {
    state_.Respread();
    runs_.clear();
    extras_.clear();
    choices_.clear();
    tokens_.clear();
    over_.clear();
    near_.clear();
    for (int item = state_.next(-1); item >= 0; item = state_.next(item)) {
      (state_.item(item).kind == ItemKind::kRun ? runs_ : tokens_)
          .push_back(item);
      if (state_.Spare(item)) extras_.push_back(item);
      if (WaysOf(item).size() > 1) choices_.push_back(item);
      const double bytes = state_.BytesAt(state_.slot_of(item));
      if (bytes > state_.target()) over_.push_back(item);
      if (bytes > 0.98 * state_.target()) near_.push_back(item);
    }
  }

  // One move, kept or undone; true if kept.
  bool Step() {
    const double area = state_.area();
    const int64_t compute = state_.compute_ns();
    allowed_ = -temperature_ * std::log(1 - random_.Uniform());
    if (!Propose() || !state_.valid()) {
      state_.Undo(0);
      return false;
    }
    const double slower = static_cast<double>(state_.compute_ns() - compute);
    // Copies hide at most the present stall.
    const double stall = step_ns_ - static_cast<double>(compute);
    const double left = allowed_ - lambda_ * (state_.area() - area);
    if (slower - stall > left) {
      state_.Undo(0);
      return false;
    }
    const double step_ns = state_.Makespan(step_ns_ + left);
    if (step_ns - step_ns_ > left) {
      state_.Undo(0);
      return false;
    }
    step_ns_ = step_ns;
    state_.Commit();
    return true;
  }

  bool Propose() {
    if (!choices_.empty() && random_.Below(12) == 0) return ChangeWay();
    const int kind = random_.Below(100);
    if (!copies_) {
      if (kind < 50) return Shift();
      if (kind < 75) return state_.area() > 0 ? Free() : Shift();
      if (kind < 87) return Drop();
      if (kind < 94) return Replace();
      return Drag();
    }
    if (kind < 30) return Shift();
    if (kind < 50 && !tokens_.empty()) return ShiftToken();
    if (kind < 70) return state_.area() > 0 ? Free() : Replace();
    if (kind < 80) return Drop();
    if (kind < 90) return Replace();
    if (kind < 95 && !homes_.empty()) return ChangeHome();
    return Drag();
  }

  int Pick(const std::vector<int>& list) {
    return list[random_.Below(static_cast<int>(list.size()))];
  }

  bool IsRun(int item) const {
    return state_.alive(item) && state_.item(item).kind == ItemKind::kRun;
  }

  // The jobs that the item might run as; none for a token or a codec.
  const std::vector<int>& WaysOf(int item) const {
    const Item& what = state_.item(item);
    const int node =
        what.kind == ItemKind::kRun ? model_.jobs[what.id].node : -1;
    return node >= 0 ? model_.ways[node] : none_;
  }

  bool ChangeWay() {
    const int item = Pick(choices_);
    if (!state_.alive(item)) return false;
    const std::vector<int>& ways = WaysOf(item);
    if (ways.size() < 2) return false;
    const int job = Pick(ways);
    if (job == state_.item(item).id) return false;
    EditWay(state_, item, job);
    return true;
  }

  bool PlaceBefore(int item, int slot) {
    const int gap = state_.GapBefore(slot);
    if (gap < 0) return false;
    state_.Move(item, gap);
    return true;
  }

  // A touch of a value that `node` reads or makes.
  int PickNeighbour(int node) {
    const std::vector<int>& reads = model_.reads[node];
    const std::vector<int>& makes = model_.makes[node];
    const int count = static_cast<int>(reads.size() + makes.size());
    if (count == 0) return -1;
    const int which = random_.Below(count);
    const bool read = which < static_cast<int>(reads.size());
    const int value = read ? reads[which] : makes[which - reads.size()];
    const std::vector<Touch>& touches = state_.touches(value);
    return touches[random_.Below(static_cast<int>(touches.size()))].item;
  }

  // Slots between which a run may stand without breaking a first read.
  void Window(int item, int* lower, int* upper) const {
    const int node = state_.item(item).id;
    *lower = 0;
    *upper = state_.slot_count();
    for (int v : model_.reads[node]) {
      const std::vector<Touch>& touches = state_.touches(v);
      if (touches.front().makes()) {
        *lower = std::max(*lower, touches.front().slot + 1);
      }
      if (touches.back().flags & kUpdates) {
        if (touches.back().item != item) {
          *upper = std::min(*upper, touches.back().slot);
        } else if (touches.size() > 1) {
          *lower = std::max(*lower, touches[touches.size() - 2].slot + 1);
        }
      }
    }
    for (int v : model_.makes[node]) {
      const std::vector<Touch>& touches = state_.touches(v);
      if (touches.front().item == item && touches.size() > 1 &&
          !touches[1].makes()) {
        *upper = std::min(*upper, touches[1].slot);
      }
    }
  }

  bool Shift() {
    const int item = Pick(runs_);
    if (!IsRun(item)) return false;
    const int here = state_.slot_of(item);
    int lower = 0, upper = 0;
    Window(item, &lower, &upper);
    if (upper - lower < 2) return false;
    const int how = random_.Below(10);
    if (how < 4) return Nudge(item, lower, upper);
    if (how < 7) {
      const int other = PickNeighbour(state_.item(item).id);
      if (other < 0 || other == item) return false;
      const int at = state_.slot_of(other);
      const int slot = random_.Below(2) == 0 ? at : at + 1;
      if (slot < lower || slot > upper) return false;
      return PlaceBefore(item, slot);
    }
    int slot = lower + random_.Below(upper - lower + 1);
    if (how == 8) slot = lower;
    if (how == 9) slot = upper;
    if (slot == here || slot == here + 1) return false;
    return PlaceBefore(item, slot);
  }

  // By a few items.
  bool Nudge(int item, int lower, int upper) {
    int steps = 1;
    while (steps < 64 && random_.Below(4) != 0) ++steps;
    const bool left = random_.Below(2) == 0;
    int other = item;
    for (; steps > 0; --steps) {
      const int next = left ? state_.previous(other) : state_.next(other);
      if (next < 0 || state_.slot_of(next) < lower ||
          state_.slot_of(next) >= upper) {
        break;
      }
      other = next;
    }
    if (other == item) return false;
    return PlaceBefore(item, state_.slot_of(other) + (left ? 0 : 1));
  }

  bool ShiftToken() {
    const int item = Pick(tokens_);
    if (!state_.alive(item) || state_.item(item).kind == ItemKind::kRun) {
      return false;
    }
    int steps = 1;
    const int more = random_.Below(4) == 0 ? 16 : 3;
    while (steps < 200 && random_.Below(more) != 0) ++steps;
    const bool left = random_.Below(2) == 0;
    const int value = state_.item(item).id;
    int other = item;
    for (; steps > 0; --steps) {
      const int next = left ? state_.previous(other) : state_.next(other);
      if (next < 0 || Touches(next, value)) break;
      other = next;
    }
    if (other == item) return false;
    return PlaceBefore(item, state_.slot_of(other) + (left ? 0 : 1));
  }

  bool Touches(int item, int value) const {
    const Item& what = state_.item(item);
    if (what.kind != ItemKind::kRun) return what.id == value;
    const auto has = [value](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    return has(model_.reads[what.id]) || has(model_.makes[what.id]);
  }

  // A slot over the target, or close below it if there is none.
  int PickHigh() {
    const std::vector<int>& list = over_.empty() ? near_ : over_;
    for (int tries = 0; tries < 4 && !list.empty(); ++tries) {
      const int item = Pick(list);
      if (!state_.alive(item)) continue;
      const int slot = state_.slot_of(item);
      if (state_.BytesAt(slot) > state_.target() || tries == 3 ||
          over_.empty()) {
        return slot;
      }
    }
    return -1;
  }

  bool PickGap(int slot, Gap* gap) {
    for (int tries = 0; tries < kTries; ++tries) {
      if (FindGap(state_, Pick(values_), slot, gap)) return true;
    }
    return false;
  }

  double DrawLead() { return 0.2 - 1.2 * std::log(1 - random_.Uniform()); }

  ChainLimits DrawLimits() {
    ChainLimits limits;
    limits.items = 1 + random_.Below(kChainLimit);
    if (copies_ || codecs_) {
      limits.copies = static_cast<uint32_t>(random_.Bits() & random_.Bits());
      limits.lead = DrawLead();
    }
    return limits;
  }

  bool FreeGap(const Gap& gap, int slot, bool copy, double removed_ns) {
    const int codings = static_cast<int>(model_.codings[gap.value].size());
    if (codings > 0 && random_.Below(2) == 0) {
      return EditStash(state_, gap, random_.Below(codings),
                       random_.Below(4) == 0);
    }
    if (copy) return EditCopy(state_, gap, slot, DrawLead());
    // No rerun can win more than all the area there is.
    ChainLimits limits = DrawLimits();
    limits.most_ns = allowed_ + removed_ns + lambda_ * state_.area();
    return EditRecompute(state_, gap, limits);
  }

  bool Free() {
    const int slot = PickHigh();
    Gap gap;
    if (slot < 0 || !PickGap(slot, &gap)) return false;
    return FreeGap(gap, slot,
                   model_.may_copy[gap.value] && random_.Below(2) == 0, 0);
  }

  int PickExtra() {
    if (extras_.empty()) return -1;
    const int item = Pick(extras_);
    return state_.alive(item) && state_.Spare(item) ? item : -1;
  }

  bool Drop() {
    const int item = PickExtra();
    return item >= 0 && EditDrop(state_, item);
  }

  // Takes a rerun or copy out; frees the same value another way, or another
  // value at a point the first was away from.
  bool Replace() {
    const int item = PickExtra();
    if (item < 0) return false;
    const Item what = state_.item(item);
    const int end = state_.slot_of(item);
    if (!EditDrop(state_, item)) return false;
    // A copy may have stalled the step by anything up to the whole stall.
    const double removed_ns =
        what.kind == ItemKind::kRun
            ? static_cast<double>(model_.node_ns[what.id])
            : step_ns_ - static_cast<double>(state_.compute_ns());
    const int value = what.kind == ItemKind::kIn ? what.id
                      : model_.makes[what.id].empty()
                          ? -1
                          : Pick(model_.makes[what.id]);
    Gap gap;
    if (value < 0 || !FindGap(state_, value, end, &gap)) return false;
    const int width = end - gap.from_slot - 1;
    if (width < 1) return false;
    const int slot = gap.from_slot + 1 + random_.Below(width);
    if (random_.Below(2) == 0 && copies_) {
      const bool copy = what.kind != ItemKind::kIn && model_.may_copy[value];
      return FreeGap(gap, slot, copy, removed_ns);
    }
    if (!PickGap(slot, &gap)) return false;
    return FreeGap(gap, slot,
                   model_.may_copy[gap.value] && random_.Below(2) == 0,
                   removed_ns);
  }

  bool ChangeHome() {
    const int chain = Pick(homes_);
    if (state_.host_home(chain)) return EditUnhome(state_, chain);
    const int slot = PickHigh();
    return slot >= 0 && EditHome(state_, chain, slot, DrawLead());
  }

  // Moves a run far, with the first runs that block its way.
  bool Drag() {
    const int item = Pick(runs_);
    if (!IsRun(item)) return false;
    const bool left = random_.Below(2) == 0;
    int other = item;
    for (int steps = 4 + random_.Below(60); steps > 0; --steps) {
      const int next = left ? state_.previous(other) : state_.next(other);
      if (next < 0) break;
      other = next;
    }
    if (other == item) return false;
    int budget = kDragLimit;
    return left ? DragLeft(item, other, &budget)
                : DragRight(item, other, &budget);
  }

  bool DragLeft(int item, int before, int* budget) {
    if (item == before || --*budget < 0) return false;
    for (int v : model_.reads[state_.item(item).id]) {
      const Touch first = state_.touches(v).front();
      if (!first.makes() || first.item == item ||
          first.slot < state_.slot_of(before)) {
        continue;
      }
      if (!IsRun(first.item) || !DragLeft(first.item, before, budget)) {
        return false;
      }
    }
    return PlaceBefore(item, state_.slot_of(before));
  }

  bool DragRight(int item, int after, int* budget) {
    if (item == after || --*budget < 0) return false;
    for (int v : model_.makes[state_.item(item).id]) {
      const std::vector<Touch>& touches = state_.touches(v);
      if (touches.front().item != item) continue;
      for (size_t t = touches.size() - 1; t > 0; --t) {
        if (t >= touches.size()) return false;  // the drag changed them
        const Touch touch = touches[t];
        if (touch.slot > state_.slot_of(after)) continue;
        if (!IsRun(touch.item) || !DragRight(touch.item, after, budget)) {
          return false;
        }
      }
    }
    return PlaceBefore(item, state_.slot_of(after) + 1);
  }

  SearchState& state_;
  const Model& model_;
  const AnnealOptions options_;
  Effort& effort_;
  Random random_;
  bool copies_ = false, codecs_ = false;
  const std::vector<int> none_;
  std::vector<int> homes_, values_;
  std::vector<int> runs_, extras_, choices_, tokens_, over_, near_;
  double run_ns_ = 1, lambda_unit_ = 1;
  double lambda_ = 0, temperature_ = 0, step_ns_ = 0;
  double pressure_ = 1;
  double allowed_ = 0;  // what the present move may cost
};

}  // namespace

int64_t MovePrice(const SearchState& state) {
  // Copy lanes that slow each other down cost an event simulation.
  const int slots = state.model().bidirectional < 1 ? 250 : 600;
  return 1 + state.slot_count() / slots;
}

void Slim(SearchState& state, const SlimOptions& slim, Effort& effort) {
  AnnealOptions options;
  options.floor_ns = slim.floor_ns;
  options.seed = slim.seed;
  Annealer(state, options, effort).RunSlim();
}

void Anneal(SearchState& state, const AnnealOptions& options, Effort& effort,
            std::optional<Schedule>* best, double* best_step_ns) {
  Annealer(state, options, effort).Run(best, best_step_ns);
}

}  // namespace loadline::planner
