// How a mode finds schedules within a number of bytes: over the whole problem,
// or over a few of many equal layers.
#ifndef LOADLINE_PLANNER_SOLVE_SCHEDULE_SEARCH_H_
#define LOADLINE_PLANNER_SOLVE_SCHEDULE_SEARCH_H_

#include <memory>
#include <optional>
#include <vector>

#include "planner/layers/coarsen_layers.h"
#include "planner/search/point_search.h"

namespace loadline::planner {

// What happens to the finds of a search.
struct LayoutPolicy {
  int most_finds = 0;  // laid out before the next search
  // SearchTuning::Bisection::retry_step of this search.
  double retry_step = 0;
  // No further try once a laid-out plan is within this share of the fastest
  // find's step; none: always.
  std::optional<double> negligible;
};

class ScheduleSearch {
 public:
  virtual ~ScheduleSearch() = default;

  // As planner::SearchAtPoint from the start orders (options.proof is ignored).
  virtual std::vector<FoundSchedule> Find(const std::vector<Schedule>& starts,
                                          PointSearchOptions options,
                                          const WorkBudget& outside) = 0;
  // Whether a search takes so much more time than its work says that budgets
  // between two points are searched only where no plan is known at all.
  virtual bool IsCostly() const = 0;
  virtual const LayoutPolicy& layout_policy() const = 0;
  // What is proven of the bytes searched last.
  virtual const PointBound& proof() const = 0;
};

// Searches the whole problem. `model` and `orders` (as SeedOrders gives them)
// must outlive it.
std::unique_ptr<ScheduleSearch> MakeWholeSearch(
    const SearchModel& model, const std::vector<Schedule>& orders);

// Searches a few of the layers and expands (layer_search.h). `model` and
// `layers`, which are of its problem, must outlive it; `options` are those of
// the model.
std::unique_ptr<ScheduleSearch> MakeLayeredSearch(
    const SearchModel& model, const CoarseLayers& layers,
    const SearchModelOptions& options);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_SCHEDULE_SEARCH_H_
