// Simulated annealing over schedules. Energy: step time plus lambda times the
// excess area over the target. Excess area and not the peak, because it tells
// near misses apart. Lambda rises geometrically while the temperature falls: at
// first the order settles, reruns and copies enter as lambda rises. The
// acceptance threshold is drawn before the move, so the cheap terms (broken
// rules, compute time, excess area) reject most moves before the lanes are
// simulated, and that simulation stops at the threshold. The moves are in
// anneal_moves.h.
//
// Where one walk ends is luck, so several anneal together. After each segment
// of the course the walks of higher energy continue from where those of lower
// energy are ("go with the winners": Aldous, Vazirani 1994): chance is selected
// while it still matters. Tested in anneal_test.cc.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "planner/base/random.h"
#include "planner/search/anneal_moves.h"
#include "planner/search/search.h"

namespace loadline::planner {
namespace {

class Annealer {
 public:
  Annealer(SearchState& state, uint64_t seed, const AnnealOptions& options,
           WorkBudget& effort)
      : state_(state),
        model_(state.model()),
        tuning_(model_.tuning.anneal),
        options_(options),
        effort_(effort),
        random_(seed),
        moves_(state, random_) {}

  // Makes the moves of the course up to `end`, which ends early at a schedule
  // that is fast enough.
  void RunTo(int64_t end, AnnealWalk& walk) {
    if (moves_.values().empty() || model_.node_count == 0) return;
    SetScales();
    const int64_t price = MovePrice(state_);
    step_ns_ = state_.Makespan();
    for (int64_t made = 0; move_ < end; ++made, ++move_) {
      if (made % tuning_.refresh_moves == 0) {
        if (effort_.Spent()) break;
        moves_.Refresh();
        Cool(static_cast<double>(move_) / static_cast<double>(options_.moves));
      }
      effort_.left -= price;
      if (!Step()) continue;
      const double step_ns = std::round(step_ns_);
      if (state_.excess_area() <= 0 && step_ns < walk.best_step_ns &&
          step_ns >= options_.floor_ns) {
        walk.best_step_ns = step_ns;
        walk.best = state_.ToSchedule();
        if (step_ns <= options_.enough_ns) break;
      }
    }
  }

  double lambda() const { return lambda_; }
  double Energy(double lambda) {
    return step_ns_ + lambda * state_.excess_area();
  }
  // Continues from where another walk is.
  void Follow(const Annealer& other) {
    state_.Load(other.state_.ToSchedule());
    pressure_ = other.pressure_;
  }

  // See ReducePressure.
  void RunReducePressure() {
    if (moves_.values().empty() || model_.node_count == 0) return;
    SetScales();
    const int64_t price = MovePrice(state_);
    const double most_bytes = state_.PeakBytes();
    step_ns_ = state_.Makespan();
    const double most_ns = step_ns_;
    for (int64_t move = 0; state_.excess_area() > 0; ++move) {
      if (move % tuning_.refresh_moves == 0) {
        if (effort_.Spent()) break;
        moves_.Refresh();
      }
      effort_.left -= price;
      allowed_ = most_ns - step_ns_;
      if (!LowersPressure(most_ns, most_bytes)) {
        state_.Undo(0);
        continue;
      }
      state_.Commit();
    }
  }

 private:
  // One move, left pending; true if neither step nor peak grows.
  bool LowersPressure(double most_ns, double most_bytes) {
    const double excess_area = state_.excess_area();
    if (!moves_.Propose({allowed_, lambda_, step_ns_}) || !state_.valid() ||
        state_.excess_area() > excess_area ||
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

  // Units of temperature and lambda, see Cooling: the mean run time, and the
  // price per excess area at which one mean run pays for freeing a mean value
  // over a tenth of the sequence.
  void SetScales() {
    double bytes = 0;
    for (int v : moves_.values()) {
      bytes += static_cast<double>(model_.bytes[v]) / moves_.values().size();
    }
    run_ns_ = std::max(
        1e-6, static_cast<double>(model_.compute_ns) / model_.node_count);
    lambda_unit_ =
        run_ns_ / (bytes * tuning_.lambda_span * state_.slot_count());
  }

  void Cool(double done) {
    const Cooling& cooling = options_.cooling;
    lambda_ = lambda_unit_ * cooling.first_lambda *
              std::pow(cooling.last_lambda / cooling.first_lambda,
                       std::min(1.0, done * tuning_.lambda_speed));
    // Late in the run lambda adapts until the bytes are under the target.
    if (done > tuning_.pressure_from) {
      pressure_ *= state_.excess_area() > 0 ? tuning_.pressure_rise
                                            : tuning_.pressure_fall;
      pressure_ =
          std::clamp(pressure_, tuning_.least_pressure, tuning_.most_pressure);
    }
    lambda_ *= pressure_;
    temperature_ =
        run_ns_ * cooling.first_temperature *
        std::pow(cooling.last_temperature / cooling.first_temperature, done);
  }

  // One move, kept or undone; true if kept.
  bool Step() {
    const double excess_area = state_.excess_area();
    const int64_t compute = state_.compute_ns();
    allowed_ = -temperature_ * std::log(1 - random_.Uniform());
    if (!moves_.Propose({allowed_, lambda_, step_ns_}) || !state_.valid()) {
      state_.Undo(0);
      return false;
    }
    const double slower = static_cast<double>(state_.compute_ns() - compute);
    // Fewer stalls can make up for the present stall at most.
    const double stall = step_ns_ - static_cast<double>(compute);
    const double left =
        allowed_ - lambda_ * (state_.excess_area() - excess_area);
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

  SearchState& state_;
  const SearchModel& model_;
  const SearchTuning::Anneal& tuning_;
  const AnnealOptions options_;
  WorkBudget& effort_;
  Random random_;
  Moves moves_;
  int64_t move_ = 0;  // of the course
  double run_ns_ = 1, lambda_unit_ = 1;
  double lambda_ = 0, temperature_ = 0, step_ns_ = 0;
  double pressure_ = 1;
  double allowed_ = 0;  // what the present move may cost
};

// The worse half continues from where the better half is. Energies are compared
// at one price of excess area.
void Select(std::vector<std::unique_ptr<Annealer>>& annealers) {
  double lambda = 0;
  for (const auto& annealer : annealers) {
    lambda = std::max(lambda, annealer->lambda());
  }
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < annealers.size(); ++i) {
    order.emplace_back(annealers[i]->Energy(lambda), i);
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size() / 2; ++i) {
    annealers[order[order.size() - 1 - i].second]->Follow(
        *annealers[order[i].second]);
  }
}

}  // namespace

int64_t MovePrice(const SearchState& state) {
  const SearchTuning::Work& work = state.model().tuning.work;
  return 1 + state.slot_count() / (state.model().bidirectional < 1
                                       ? work.move_slots_coupled
                                       : work.move_slots);
}

void ReducePressure(SearchState& state, const ReducePressureOptions& options,
                    WorkBudget& effort) {
  if (!state.model().tuning.reduce_pressure.enabled) return;
  AnnealOptions anneal;
  anneal.floor_ns = options.floor_ns;
  Annealer(state, options.seed, anneal, effort).RunReducePressure();
}

void Anneal(absl::Span<AnnealWalk> walks, const AnnealOptions& options,
            WorkBudget& effort) {
  const int count = static_cast<int>(walks.size());
  // Each its own, so that none depends on another's speed.
  std::vector<WorkBudget> budgets(walks.size(), effort);
  std::vector<std::unique_ptr<Annealer>> annealers;
  for (int i = 0; i < count; ++i) {
    budgets[i].left = effort.left / count;
    annealers.push_back(std::make_unique<Annealer>(
        *walks[i].state, walks[i].seed, options, budgets[i]));
  }
  const int64_t granted = count * (effort.left / std::max(1, count));
  const auto enough = [&] {
    return std::any_of(walks.begin(), walks.end(), [&](const AnnealWalk& walk) {
      return walk.best_step_ns <= options.enough_ns;
    });
  };
  for (int segment = 1; segment <= options.segments && !enough(); ++segment) {
    if (segment > 1) Select(annealers);
    effort.ForEach(count, [&](int i) {
      annealers[i]->RunTo(options.moves * segment / options.segments, walks[i]);
    });
    if (effort.Interrupted()) break;
  }
  effort.left -= granted;
  for (const WorkBudget& budget : budgets) effort.left += budget.left;
}

}  // namespace loadline::planner
