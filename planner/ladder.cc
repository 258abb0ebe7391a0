// Down: one greedy descent per order and lane price passes every rung, so all
// rungs together cost one descent. Up: annealing polishes each rung, starting
// from the faster of its own schedule and the one below, so work spent on a
// tight rung also serves the wider ones. Tested in solve_test.cc.
#include "planner/ladder.h"

#include <algorithm>
#include <limits>

#include "planner/bound.h"

namespace loadline::planner {
namespace {

constexpr int kRungs = 40;
constexpr double kLanePrices[] = {0.05, 0.0, 0.3};
// Of the work limit: all descents, and the climb at one rung.
constexpr int64_t kDescentShare = 2;
constexpr int64_t kRungShare = 32;
constexpr double kClimbTemperature = 6e-4;
// Where greedy finds nothing, annealing from an order tries at every fourth
// rung only, with more work.
constexpr int kRescueEvery = 4;
constexpr int64_t kRescueShare = 8;
constexpr int kSqueezeRounds = 8;
constexpr int64_t kSqueezeShare = 32;

}  // namespace

Ladder::Ladder(const Model& model, std::vector<Schedule> orders,
               int64_t work_limit, uint64_t seed)
    : model_(model),
      orders_(std::move(orders)),
      work_limit_(work_limit),
      seed_(seed) {
  const int64_t bound = BoundPeak(model).bytes;
  const Lifetimes lives = FindLifetimes(model, GivenOrder(model));
  // Raw bytes, as a percentage of the budget is meant.
  peak_bytes_ = std::max<int64_t>(1, lives.raw_peak_bytes);
  const double peak = static_cast<double>(lives.raw_peak_bytes);
  for (int k = 1; k <= kRungs; ++k) {
    Rung rung;
    rung.target_bytes = static_cast<int64_t>(peak * k / kRungs);
    if (rung.target_bytes >= bound) rungs_.push_back(std::move(rung));
  }
}

int Ladder::RungFor(int64_t budget_bytes) const {
  int found = -1;
  for (size_t k = 0; k < rungs_.size(); ++k) {
    if (rungs_[k].target_bytes <= budget_bytes) found = static_cast<int>(k);
  }
  return found;
}

void Ladder::Record(int rung, SearchState& state) {
  const double step_ns = state.Makespan();
  if (!rungs_[rung].schedule || step_ns < rungs_[rung].step_ns) {
    rungs_[rung].schedule = state.ToSchedule();
    rungs_[rung].step_ns = step_ns;
  }
}

void Ladder::Descend(Effort outside, const std::function<bool(int)>& enough) {
  DescendAll(outside, enough);
  for (size_t k = 1; k < rungs_.size(); ++k) InheritFrom(k - 1, k);
}

// What fits a lower rung fits a higher one.
void Ladder::InheritFrom(size_t lower, size_t rung) {
  if (!rungs_[lower].schedule) return;
  if (!rungs_[rung].schedule || rungs_[lower].step_ns < rungs_[rung].step_ns) {
    rungs_[rung].schedule = rungs_[lower].schedule;
    rungs_[rung].step_ns = rungs_[lower].step_ns;
  }
}

void Ladder::DescendAll(Effort outside,
                        const std::function<bool(int)>& enough) {
  int64_t left = work_limit_ / kDescentShare;
  const bool copies =
      std::any_of(model_.may_copy.begin(), model_.may_copy.end(),
                  [](char may) { return may != 0; });
  // The order with early updates is usually the best start: first.
  std::vector<size_t> turn;
  for (size_t i = 1; i < orders_.size(); ++i) turn.push_back(i);
  turn.push_back(0);
  for (double price : kLanePrices) {
    for (size_t i : turn) {
      // The first descent goes all the way, whatever it costs.
      if ((!stuck_.empty() && left <= 0) || outside.Interrupted()) return;
      Effort effort = outside;
      effort.left = stuck_.empty() ? INT64_MAX / 2 : left;
      const int64_t granted = effort.left;
      SearchState state(model_, orders_[i], 0);
      GreedyOptions greedy;
      greedy.lane_price = price;
      bool lowered = true;
      for (int k = static_cast<int>(rungs_.size()) - 1; k >= 0 && lowered;
           --k) {
        state.SetTarget(rungs_[k].target_bytes);
        lowered = LowerPeak(state, greedy, effort);
        if (lowered) Record(k, state);
        if (lowered && stuck_.empty() && enough(k)) return;
      }
      if (lowered) {
        state.SetTarget(BoundPeak(model_).bytes);
        LowerPeak(state, greedy, effort);
      }
      left -= granted - effort.left;
      if (state.valid() && !effort.Interrupted()) {
        stuck_.push_back(state.ToSchedule());
      }
    }
    if (!copies) return;
  }
}

void Ladder::Squeeze(Effort outside) {
  if (stuck_.empty()) return;
  size_t lowest = 0;
  int64_t met = INT64_MAX;
  for (size_t i = 0; i < stuck_.size(); ++i) {
    const int64_t peak = FindLifetimes(model_, stuck_[i]).peak_bytes;
    if (peak < met) {
      met = peak;
      lowest = i;
    }
  }
  int64_t missed = BoundPeak(model_).bytes - 1;
  for (int round = 0; round < kSqueezeRounds; ++round) {
    if (met - missed <= 1 || outside.Interrupted()) return;
    const int64_t target = missed + (met - missed) / 2;
    Effort effort = outside;
    effort.left = work_limit_ / kSqueezeShare;
    SearchState state(model_, stuck_[lowest], target);
    AnnealOptions anneal;
    anneal.moves = effort.left / MovePrice(state);
    anneal.seed = seed_ + static_cast<uint64_t>(round);
    std::optional<Schedule> found;
    double step_ns = std::numeric_limits<double>::infinity();
    Anneal(state, anneal, effort, &found, &step_ns);
    if (!found) {
      missed = target;
      continue;
    }
    met = FindLifetimes(model_, *found).peak_bytes;
    lowest = stuck_.size();
    stuck_.push_back(*std::move(found));
  }
}

void Ladder::Rescue(Rung& rung, Effort outside) {
  Effort effort = outside;
  effort.left = work_limit_ / kRescueShare;
  SearchState state(model_, orders_.back(), rung.target_bytes);
  AnnealOptions anneal;
  anneal.moves = effort.left / MovePrice(state);
  anneal.seed = seed_;
  rung.step_ns = std::numeric_limits<double>::infinity();
  Anneal(state, anneal, effort, &rung.schedule, &rung.step_ns);
}

void Ladder::Climb(int64_t budget_bytes, Effort outside) {
  const int top = RungFor(budget_bytes);
  for (int k = 0; k <= top; ++k) {
    if (outside.Interrupted()) return;
    Rung& rung = rungs_[k];
    if (k > 0) InheritFrom(k - 1, k);
    if (!rung.schedule) {
      const int64_t tenth =
          (rung.target_bytes * kRungs * 2 + peak_bytes_) / (2 * peak_bytes_);
      if (tenth % kRescueEvery == 0) Rescue(rung, outside);
    }
    if (!rung.schedule) continue;
    if (rung.step_ns <= static_cast<double>(model_.compute_ns)) continue;
    Effort effort = outside;
    effort.left = work_limit_ / kRungShare;
    SearchState state(model_, *rung.schedule, rung.target_bytes);
    CleanUp(state, effort);
    if (state.area() <= 0) Record(k, state);
    AnnealOptions anneal;
    anneal.moves = std::max<int64_t>(0, effort.left / MovePrice(state));
    anneal.start_temperature = kClimbTemperature;
    anneal.seed = seed_ + static_cast<uint64_t>(k);
    anneal.warm = true;
    Anneal(state, anneal, effort, &rung.schedule, &rung.step_ns);
  }
}

}  // namespace loadline::planner
