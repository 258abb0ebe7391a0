// A search leaves as many bytes alive everywhere as its target allows, but
// schedules that are near their peak at few positions pack tighter. Between
// those positions bytes can often be freed at no cost: a copy in starts later,
// a copy out earlier, a run stands next to its reader. Tested in
// fit_layout_test.cc.
#include "planner/layout/fit_layout.h"

#include <cmath>
#include <iterator>
#include <utility>

#include "planner/search/search.h"

namespace loadline::planner {
namespace {

// The find with fewer bytes alive above `share` of the budget; none if the work
// does not suffice.
std::optional<FoundSchedule> WithLessPressure(const SearchModel& model,
                                              const FoundSchedule& found,
                                              double share,
                                              const FitLayoutOptions& options,
                                              const WorkBudget& outside) {
  SearchState state(
      model, found.schedule,
      static_cast<int64_t>(share *
                           static_cast<double>(options.place.budget_bytes)));
  if (!model.tuning.reduce_pressure.enabled) return std::nullopt;
  WorkBudget work = outside;
  work.left = options.pressure_work;
  const int64_t items = static_cast<int64_t>(found.schedule.items.size());
  if (!state.valid() ||
      work.left / MovePrice(state) <
          model.tuning.layout.least_pressure_moves_per_item * items) {
    return std::nullopt;
  }
  ReducePressure(state, {.floor_ns = options.floor_ns, .seed = options.seed},
                 work);
  const double step_ns = std::round(state.Makespan());
  return FoundSchedule{state.ToSchedule(), step_ns};
}

}  // namespace

std::optional<LaidOutSchedule> FitLayout(const SearchModel& model,
                                         FoundSchedule& found,
                                         const FitLayoutOptions& options,
                                         const WorkBudget& outside,
                                         int64_t* excess_bytes) {
  std::optional<LaidOutSchedule> laid_out =
      LayOut(model, found.schedule, found.step_ns, options.place, excess_bytes);
  FoundSchedule reduced = found;
  for (double share : model.tuning.layout.pressure_targets) {
    if (laid_out || outside.Interrupted()) break;
    std::optional<FoundSchedule> lower =
        WithLessPressure(model, reduced, share, options, outside);
    if (!lower) break;
    reduced = *std::move(lower);
    int64_t over_bytes = 0;
    laid_out = LayOut(model, reduced.schedule, reduced.step_ns, options.place,
                      &over_bytes);
    const bool halved = 2 * over_bytes < *excess_bytes;
    if (laid_out || over_bytes < *excess_bytes) {
      found = reduced;
      *excess_bytes = over_bytes;
    }
    if (!halved) break;
  }
  return laid_out;
}

}  // namespace loadline::planner
