// A search leaves as many bytes alive everywhere as its target allows, but a
// layout is low where only few points are full. Between them bytes are often
// free: copy in later, out earlier, run next to the reader. Tested in
// fit_layout_test.cc.
#include "planner/layout/fit_layout.h"

#include <cmath>
#include <iterator>
#include <utility>

#include "planner/search/search.h"

namespace loadline::planner {
namespace {

// What is alive above this much of the budget is lowered, try by try, as long
// as each more than halves what is too high.
constexpr double kSlimTargets[] = {0.9, 0.85};
// Fewer moves than this per item change too little.
constexpr int64_t kLeastMovesPerItem = 8;

// The find with fewer bytes alive; none if the work does not suffice.
std::optional<FoundSchedule> WithLessPressure(const SearchModel& model,
                                              const FoundSchedule& found,
                                              double share,
                                              const FitLayoutOptions& options,
                                              const WorkBudget& outside) {
  SearchState state(
      model, found.schedule,
      static_cast<int64_t>(share *
                           static_cast<double>(options.place.budget_bytes)));
  WorkBudget effort = outside;
  effort.left = options.pressure_work;
  const int64_t items = static_cast<int64_t>(found.schedule.items.size());
  if (!state.valid() ||
      effort.left / MovePrice(state) < kLeastMovesPerItem * items) {
    return std::nullopt;
  }
  ReducePressure(state, {.floor_ns = options.floor_ns, .seed = options.seed},
                 effort);
  const double step_ns = std::round(state.Makespan());
  return FoundSchedule{state.ToSchedule(), step_ns};
}

}  // namespace

std::optional<LaidOutSchedule> FitLayout(const SearchModel& model,
                                         FoundSchedule& found,
                                         const FitLayoutOptions& options,
                                         const WorkBudget& outside,
                                         int64_t* excess_bytes) {
  std::optional<LaidOutSchedule> placed =
      LayOut(model, found.schedule, found.step_ns, options.place, excess_bytes);
  FoundSchedule slim = found;
  for (double share : kSlimTargets) {
    if (placed || outside.Interrupted()) break;
    std::optional<FoundSchedule> slimmed =
        WithLessPressure(model, slim, share, options, outside);
    if (!slimmed) break;
    slim = *std::move(slimmed);
    int64_t over_bytes = 0;
    placed =
        LayOut(model, slim.schedule, slim.step_ns, options.place, &over_bytes);
    const bool halved = 2 * over_bytes < *excess_bytes;
    if (placed || over_bytes < *excess_bytes) {
      found = slim;
      *excess_bytes = over_bytes;
    }
    if (!halved) break;
  }
  return placed;
}

}  // namespace loadline::planner
