// The searches over schedules: orders to start from, the greedy that lowers
// the highest point, the annealing around what it found, and the clean-up.
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

// When to stop: counted work, and from outside.
struct WorkBudget {
  // Candidate edits still to be priced, in edits of a short sequence.
  int64_t left = 0;
  absl::Time deadline = absl::InfiniteFuture();
  const std::atomic<bool>* cancel = nullptr;

  // What pricing one edit costs: it reads the whole sequence.
  int64_t PriceOf(const SearchState& state) const {
    const int slots = state.model().bidirectional < 1 ? 12 : 24;
    return 1 + state.slot_count() / slots;
  }
  // Polls the outside.
  bool Interrupted() const {
    return (cancel != nullptr && cancel->load(std::memory_order_relaxed)) ||
           (deadline != absl::InfiniteFuture() && absl::Now() >= deadline);
  }
  bool Spent() const { return left <= 0 || Interrupted(); }
};

// Start orders, best first guess last tried: the given order; each update as
// soon as all it needs is there; list scheduling for low peak.
std::vector<Schedule> SeedOrders(const SearchModel& model);

struct GreedyOptions {
  double lane_price = 0;  // of a nanosecond of copying, in nanoseconds of step
  bool allow_rerun = true;
  bool allow_copy = true;
};

// Lowers the highest point until everything is within the state's target.
// False if it gets stuck above it (the state then holds how far it came).
bool LowerPeak(SearchState& state, const GreedyOptions& options,
               WorkBudget& effort);

// Takes out what is no longer needed, as long as nothing exceeds the target
// and the step gets no slower, nor faster than `floor_ns`.
void CleanUp(SearchState& state, WorkBudget& effort, double floor_ns = 0);

// What one move of Anneal takes from WorkBudget: most are rejected early.
int64_t MovePrice(const SearchState& state);

struct AnnealOptions {
  int64_t moves = 0;
  // In mean run times.
  double first_temperature = 0.5;
  double last_temperature = 0.003;
  // Price of excess area over the target: 1 is where one mean run pays for
  // taking a mean value away from a tenth of the sequence.
  double first_lambda = 0.2;
  double last_lambda = 60;
  double floor_ns = 0;   // takes nothing faster
  double enough_ns = 0;  // stops once it has as fast
  uint64_t seed = 0;
};

// Simulated annealing around the state's schedule; leaves the best schedule
// within the target in `best` (with its step time) if one was seen.
void Anneal(SearchState& state, const AnnealOptions& options,
            WorkBudget& effort, std::optional<Schedule>* best,
            double* best_step_ns);

struct ReducePressureOptions {
  double floor_ns = 0;  // no faster
  uint64_t seed = 0;
};

// Lowers the excess area over the state's target, which is below what the
// schedule takes, with edits that make the step no slower and the highest point
// no higher: a schedule that is near its most bytes at few points only is laid
// out in fewer. Until the effort is spent.
void ReducePressure(SearchState& state, const ReducePressureOptions& options,
                    WorkBudget& effort);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_SEARCH_H_
