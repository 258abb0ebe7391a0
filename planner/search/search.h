// The searches over schedules: start orders, the greedy descent that lowers the
// highest point, simulated annealing, reducing memory pressure, and the
// clean-up. Their constants and switches are SearchModel::tuning.
#ifndef LOADLINE_PLANNER_SEARCH_SEARCH_H_
#define LOADLINE_PLANNER_SEARCH_SEARCH_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "planner/schedule/schedule.h"
#include "planner/search/search_state.h"

namespace loadline::planner {

// When a search stops: after counted work, at a deadline, or when cancelled.
struct WorkBudget {
  // Work left, in candidate edits of a short sequence.
  int64_t left = 0;
  absl::Time deadline = absl::InfiniteFuture();
  const std::atomic<bool>* cancel = nullptr;

  // Work of pricing one edit: it reads the whole sequence.
  int64_t PriceOf(const SearchState& state) const {
    const SearchTuning::Work& work = state.model().tuning.work;
    return 1 + state.slot_count() / (state.model().bidirectional < 1
                                         ? work.edit_slots_coupled
                                         : work.edit_slots);
  }
  // Whether the deadline has passed or the search was cancelled.
  bool Interrupted() const {
    return (cancel != nullptr && cancel->load(std::memory_order_relaxed)) ||
           (deadline != absl::InfiniteFuture() && absl::Now() >= deadline);
  }
  bool Spent() const { return left <= 0 || Interrupted(); }
};

// Start orders without repeats: the given order; each update as soon as its
// inputs exist; list scheduling for a low peak (SearchTuning::Orders).
std::vector<Schedule> SeedOrders(const SearchModel& model);

struct GreedyOptions {
  double lane_price = 0;  // step time that one nanosecond of copying is worth
  bool allow_rerun = true;
  bool allow_copy = true;
};

// Lowers the highest point until all bytes are within the state's target.
// False if no edit helps any more or the work is spent; the state then holds
// the lowest schedule that was reached.
bool LowerPeak(SearchState& state, const GreedyOptions& options,
               WorkBudget& effort);

// Removes reruns, copies and codecs that are no longer needed, and runs nodes
// as faster variants. Excess area and step do not grow, and the step does not
// get shorter than `floor_ns`.
void CleanUp(SearchState& state, WorkBudget& effort, double floor_ns = 0);

// Work of one move of Anneal: less than PriceOf, most are rejected early.
int64_t MovePrice(const SearchState& state);

struct AnnealOptions {
  int64_t moves = 0;
  Cooling cooling;
  double floor_ns = 0;   // faster schedules are not recorded
  double enough_ns = 0;  // stops at a schedule as fast as this
  uint64_t seed = 0;
};

// Simulated annealing around the state's schedule; leaves the best schedule
// within the target in `best` (with its step time) if one was seen.
void Anneal(SearchState& state, const AnnealOptions& options,
            WorkBudget& effort, std::optional<Schedule>* best,
            double* best_step_ns);

struct ReducePressureOptions {
  double floor_ns = 0;  // the step does not get shorter
  uint64_t seed = 0;
};

// Lowers the excess area over the state's target, which lies below the peak of
// the schedule, by edits that lengthen neither the step nor the peak: schedules
// that are near their peak at few positions pack tighter. Runs until the work
// is spent.
void ReducePressure(SearchState& state, const ReducePressureOptions& options,
                    WorkBudget& effort);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_SEARCH_H_
