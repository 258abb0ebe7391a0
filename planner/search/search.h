// The searches over schedules: start orders, the greedy descent that lowers the
// highest point, simulated annealing, reducing memory pressure, and the
// clean-up. Their constants and switches are SearchModel::tuning.
#ifndef LOADLINE_PLANNER_SEARCH_SEARCH_H_
#define LOADLINE_PLANNER_SEARCH_SEARCH_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "planner/base/stop.h"
#include "planner/base/workers.h"
#include "planner/schedule/schedule.h"
#include "planner/search/search_state.h"

namespace loadline::planner {

// When a search stops: after counted work, at a deadline, or when cancelled;
// and the threads that it may use.
struct WorkBudget {
  // Work left, in candidate edits of a short sequence.
  int64_t left = 0;
  Stop stop;
  Workers* workers = nullptr;  // null: the caller's thread alone

  // Work of pricing one edit: it reads the whole sequence.
  int64_t PriceOf(const SearchState& state) const {
    const SearchTuning::Work& work = state.model().tuning.work;
    return 1 + state.slot_count() / (state.model().bidirectional < 1
                                         ? work.edit_slots_coupled
                                         : work.edit_slots);
  }
  // Workers::Run.
  void ForEach(int count, absl::FunctionRef<void(int)> task) const {
    if (workers != nullptr) return workers->Run(count, task);
    for (int i = 0; i < count; ++i) task(i);
  }
  int threads() const { return workers == nullptr ? 1 : workers->threads(); }
  bool Interrupted() const { return stop.Now(); }
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
  int64_t moves = 0;  // of each walk
  Cooling cooling;
  double floor_ns = 0;   // faster schedules are not recorded
  double enough_ns = 0;  // stops at a schedule as fast as this
  // Equal parts of the course. After each the walks of higher energy continue
  // from where the others are.
  int segments = 1;
};

// One of the walks that anneal together, each from its own state.
struct AnnealWalk {
  std::unique_ptr<SearchState> state;
  uint64_t seed = 0;
  // The best schedule within the target that was seen, and its step time.
  std::optional<Schedule> best;
  double best_step_ns = std::numeric_limits<double>::infinity();
};

// Simulated annealing of a population of walks: they run at the same time on
// the threads of `effort`, meet after each segment, and give the same result
// for any number of threads. The work is the moves of all. With one walk and
// one segment this is plain simulated annealing.
void Anneal(absl::Span<AnnealWalk> walks, const AnnealOptions& options,
            WorkBudget& effort);

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
