// The search for the fastest schedule within one number of bytes.
#ifndef LOADLINE_PLANNER_SEARCH_POINT_SEARCH_H_
#define LOADLINE_PLANNER_SEARCH_POINT_SEARCH_H_

#include <cstdint>
#include <vector>

#include "planner/search/search.h"

namespace loadline::planner {

struct FoundSchedule {
  Schedule schedule;
  double step_ns = 0;
};

// What is proven of all schedules within one number of bytes.
struct PointBound {
  int64_t target_bytes = -1;  // -1: nothing is proven
  double enough_ns = 0;       // none is faster by more than rounding
  bool none = false;          // there are none
};

struct PointSearchOptions {
  int64_t target_bytes = 0;
  // Nothing faster is wanted, and the search stops once it is reached.
  double floor_ns = 0;
  int64_t work = 0;
  uint64_t seed = 0;
  // Only repairs the first start, which is close to what is wanted.
  bool repair = false;
  // Of the same model, kept from one search to the next; may be null.
  PointBound* proof = nullptr;
};

// Schedules within the target and not faster than the floor, fastest first;
// the later ones are other finds, for when the first cannot be laid out.
// `orders` as SeedOrders gives them; `starts` are schedules from elsewhere
// (other targets, fewer means), within the target or not. Greedy descents
// first, then annealing from an order, then again and again, less hot, from
// the best. Deterministic; `outside` only interrupts.
std::vector<FoundSchedule> SearchAtPoint(const SearchModel& model,
                                         const std::vector<Schedule>& orders,
                                         const std::vector<Schedule>& starts,
                                         const PointSearchOptions& options,
                                         const WorkBudget& outside);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SEARCH_POINT_SEARCH_H_
