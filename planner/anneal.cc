// Simulated annealing over schedules. Energy: step time plus lambda times the
// area over the target (not the peak: the area tells near misses apart).
// Lambda rises geometrically while the temperature falls. The acceptance
// threshold is drawn before the move, so the cheap terms (compute time, area)
// reject most moves before the lanes are simulated. Tested in solve_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "planner/edits.h"
#include "planner/search.h"

namespace loadline::planner {
namespace {

constexpr int kChainLimit = 6;
constexpr int kTries = 24;
constexpr int kRefreshEvery = 256;  // moves between updates of times and gaps

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
  }

  void Run(std::optional<Schedule>* best, double* best_step_ns) {
    const double compute = static_cast<double>(model_.compute_ns);
    double most_bytes = 1;
    for (int v : values_) {
      most_bytes += static_cast<double>(model_.bytes[v]) / values_.size();
    }
    // One typical value over the target on a tenth of the sequence costs, at
    // the start, 0.1 % of the step and 30 % at the end.
    const double unit = most_bytes * 0.1 * state_.slot_count() + 1;
    const double last_lambda = 0.3 * compute / unit;
    const double first_lambda = last_lambda / (options_.warm ? 30 : 300);
    step_ns_ = state_.Makespan();
    const int64_t price = MovePrice(state_);
    for (int64_t move = 0; move < options_.moves; ++move) {
      effort_.left -= price;
      if (move % kRefreshEvery == 0) {
        if (effort_.Spent()) break;
        Refresh();
        const double done =
            static_cast<double>(move) / static_cast<double>(options_.moves);
        lambda_ = first_lambda * std::pow(last_lambda / first_lambda,
                                          std::min(1.0, done * 1.2));
        // Late in the run, whatever lambda it takes to get under the target.
        if (2 * move > options_.moves) {
          pressure_ *= state_.area() > 0 ? 1.2 : 0.95;
          pressure_ = std::clamp(pressure_, 0.1, 1e4);
        }
        lambda_ *= pressure_;
        temperature_ =
            compute * options_.start_temperature *
            std::pow(options_.end_temperature / options_.start_temperature,
                     done);
      }
      if (!Step()) continue;
      if (state_.area() <= 0 && step_ns_ < *best_step_ns - 0.5) {
        *best_step_ns = step_ns_;
        *best = state_.ToSchedule();
      }
    }
  }

 private:
  int Draw(int count) { return static_cast<int>(random_() % count); }
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }
  double DrawLead() { return 0.2 - 1.2 * std::log(1 - Uniform()); }

  void Refresh() {
    state_.Respread();
    state_.UpdateTimes();
    runs_.clear();
    extras_.clear();
    tokens_.clear();
    hot_.clear();
    for (int s = 0; s < state_.slot_count(); ++s) {
      const int item = state_.item_at(s);
      if (item < 0) continue;
      const Item& what = state_.item(item);
      if (what.kind == ItemKind::kRun) {
        runs_.push_back(item);
        if (state_.run_count(what.id) > 1) extras_.push_back(item);
      } else {
        tokens_.push_back(item);
        if (what.kind == ItemKind::kIn) extras_.push_back(item);
      }
      if (state_.BytesAt(s) > 0.97 * state_.target()) hot_.push_back(item);
    }
  }

  // One move, kept or undone; true if kept.
  bool Step() {
    const double area = state_.area();
    const int64_t compute = state_.compute_ns();
    const double allowed = -temperature_ * std::log(1 - Uniform());
    if (!Propose() || !state_.valid()) {
      state_.Undo(0);
      return false;
    }
    const double area_cost = lambda_ * (state_.area() - area);
    const double cheap =
        static_cast<double>(state_.compute_ns() - compute) + area_cost;
    // Copies hide at most the present stall.
    const double stall = step_ns_ - static_cast<double>(compute);
    if (cheap - stall > allowed) {
      state_.Undo(0);
      return false;
    }
    const double step_ns = state_.Makespan();
    if (step_ns - step_ns_ + area_cost > allowed) {
      state_.Undo(0);
      return false;
    }
    step_ns_ = step_ns;
    state_.Commit();
    return true;
  }

  bool Propose() {
    const int kind = Draw(100);
    if (kind < 40) return Shift();
    if (kind < 55 && !tokens_.empty()) return ShiftToken();
    if (kind < 70) return Free();
    if (kind < 85) return Drop();
    if (kind < 92) return Swap();
    if (!homes_.empty()) return ChangeHome();
    return Shift();
  }

  bool Alive(int item, ItemKind kind) const {
    const int slot = state_.slot_of(item);
    return slot < state_.slot_count() && state_.item_at(slot) == item &&
           state_.item(item).kind == kind;
  }

  // Slots a run may stand in without changing what reads bind to.
  std::pair<int, int> Window(int item) const {
    const int node = state_.item(item).id;
    const int here = state_.slot_of(item);
    int lower = 0, upper = state_.slot_count();
    const auto limit = [&](int value, bool makes) {
      const bool updates = !makes && model_.Updater(value) == node;
      for (const Touch& touch : state_.touches(value)) {
        const int at = state_.slot_of(touch.item);
        if (at == here) continue;
        if (at < here && (touch.makes || updates)) {
          lower = std::max(lower, at + 1);
        }
        if (at > here &&
            (makes || touch.makes ||
             (state_.item(touch.item).kind == ItemKind::kRun &&
              state_.item(touch.item).id == model_.Updater(value)))) {
          upper = std::min(upper, at);
          break;
        }
      }
    };
    for (int v : model_.reads[node]) limit(v, false);
    for (int v : model_.makes[node]) limit(v, true);
    return {lower, upper};
  }

  bool MoveTo(int item, int slot) {
    const int gap = state_.GapBefore(slot);
    if (gap < 0) return false;
    state_.Move(item, gap);
    return true;
  }

  bool Shift() {
    const int item = runs_[Draw(static_cast<int>(runs_.size()))];
    if (!Alive(item, ItemKind::kRun)) return false;
    const auto [lower, upper] = Window(item);
    if (upper - lower < 2) return false;
    const int how = Draw(4);
    int slot = lower + Draw(upper - lower);
    if (how == 0) slot = lower;
    if (how == 1) slot = upper;
    return MoveTo(item, slot);
  }

  bool ShiftToken() {
    const int item = tokens_[Draw(static_cast<int>(tokens_.size()))];
    if (!Alive(item, ItemKind::kIn) && !Alive(item, ItemKind::kOut)) {
      return false;
    }
    const int reach = Draw(3) == 0 ? state_.slot_count() / 4 : 24;
    const int slot = state_.slot_of(item) + Draw(2 * reach + 1) - reach;
    if (slot < 0 || slot > state_.slot_count()) return false;
    return MoveTo(item, slot);
  }

  // A value that is idle across a high point.
  bool PickGap(int* slot, Gap* gap) {
    if (hot_.empty() || values_.empty()) return false;
    const int item = hot_[Draw(static_cast<int>(hot_.size()))];
    *slot = state_.slot_of(item);
    if (*slot >= state_.slot_count()) return false;
    for (int tries = 0; tries < kTries; ++tries) {
      const int value = values_[Draw(static_cast<int>(values_.size()))];
      if (FindGap(state_, value, *slot, gap)) return true;
    }
    return false;
  }

  bool Free() {
    int slot = 0;
    Gap gap;
    if (!PickGap(&slot, &gap)) return false;
    if (model_.may_copy[gap.value] && Draw(2) == 0) {
      return EditCopy(state_, gap, slot, DrawLead());
    }
    return EditRecompute(state_, gap, 1 + Draw(kChainLimit));
  }

  int PickExtra() {
    if (extras_.empty()) return -1;
    const int item = extras_[Draw(static_cast<int>(extras_.size()))];
    if (Alive(item, ItemKind::kIn)) return item;
    return Alive(item, ItemKind::kRun) ? item : -1;
  }

  bool Drop() {
    const int item = PickExtra();
    return item >= 0 && EditDrop(state_, item);
  }

  // A rerun becomes a copy, or a copy a rerun, or one copy another.
  bool Swap() {
    const int item = PickExtra();
    if (item < 0) return false;
    const Item what = state_.item(item);
    const int slot = state_.slot_of(item);
    if (!EditDrop(state_, item)) return false;
    const int value = what.kind == ItemKind::kIn ? what.id
                      : model_.makes[what.id].empty()
                          ? -1
                          : model_.makes[what.id][Draw(static_cast<int>(
                                model_.makes[what.id].size()))];
    Gap gap;
    if (value < 0 || !FindGap(state_, value, slot, &gap)) return false;
    int avoid = slot;
    if (!hot_.empty()) {
      const int at = state_.slot_of(hot_[Draw(static_cast<int>(hot_.size()))]);
      if (at > gap.from_slot && at < gap.to_slot) avoid = at;
    }
    if (what.kind == ItemKind::kIn) {
      return EditRecompute(state_, gap, 1 + Draw(kChainLimit));
    }
    return EditCopy(state_, gap, avoid, DrawLead());
  }

  bool ChangeHome() {
    const int chain = homes_[Draw(static_cast<int>(homes_.size()))];
    if (state_.host_home(chain)) return EditUnhome(state_, chain);
    if (hot_.empty()) return false;
    const int slot = state_.slot_of(hot_[Draw(static_cast<int>(hot_.size()))]);
    return slot < state_.slot_count() &&
           EditHome(state_, chain, slot, DrawLead());
  }

  SearchState& state_;
  const Model& model_;
  const AnnealOptions options_;
  Effort& effort_;
  std::mt19937_64 random_;
  std::vector<int> homes_, values_;
  std::vector<int> runs_, extras_, tokens_, hot_;
  double lambda_ = 0, temperature_ = 0, step_ns_ = 0;
  double pressure_ = 1;
};

}  // namespace

int64_t MovePrice(const SearchState& state) {
  // Copy lanes that slow each other down cost an event simulation.
  const int slots = state.model().bidirectional < 1 ? 36 : 72;
  return std::max<int64_t>(1, state.slot_count() / slots);
}

void Anneal(SearchState& state, const AnnealOptions& options, Effort& effort,
            std::optional<Schedule>* best, double* best_step_ns) {
  Annealer(state, options, effort).Run(best, best_step_ns);
}

}  // namespace loadline::planner
