// The search for the fastest schedule within one budget.
#ifndef LOADLINE_PLANNER_SEARCH_POINT_SEARCH_H_
#define LOADLINE_PLANNER_SEARCH_POINT_SEARCH_H_

#include <cstdint>
#include <vector>

#include "planner/bound/bound.h"
#include "planner/search/search.h"

namespace loadline::planner {

struct FoundSchedule {
  Schedule schedule;
  double step_ns = 0;
};

// What is proven about all schedules within one budget.
struct PointBound {
  int64_t target_bytes = -1;  // the budget; -1: nothing is proven
  double enough_ns = 0;       // no schedule is faster by more than rounding
  bool none = false;          // no schedule exists
  StepBound bound;            // how it is proven
};

struct PointSearchOptions {
  int64_t target_bytes = 0;
  // Faster schedules are not returned; the search stops once it reaches this.
  double floor_ns = 0;
  int64_t work = 0;
  uint64_t seed = 0;
  int least_walks = 1;  // that share an anneal, however little its work is
  // Only repairs the first start, which is nearly within the target.
  bool repair = false;
  // Where descents find nothing, tries EvictionStart as well.
  bool must_find = false;
  // Of the same model: read, and written if this search proves a bound, so that
  // the next search at this budget can use it; may be null.
  PointBound* proof = nullptr;
};

// Schedules within the target and not faster than the floor, fastest first, at
// most SearchTuning::PointSearch::most_finds: the later ones are for the case
// that the first cannot be laid out. `orders` come from SeedOrders. `starts`
// are schedules found at other budgets or with fewer permissions, within the
// target or not. Greedy descents run first, then annealing from an order, then
// reheats at lower temperatures from the best. Deterministic; of `outside` only
// the deadline and the cancellation count.
std::vector<FoundSchedule> SearchAtPoint(const SearchModel& model,
                                         const std::vector<Schedule>& orders,
                                         const std::vector<Schedule>& starts,
                                         const PointSearchOptions& options,
                                         const WorkBudget& outside);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_POINT_SEARCH_H_
