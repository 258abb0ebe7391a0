// Plans at fixed points of the range of budgets, found by bisection, so that a
// larger budget never gets a slower plan although every search is a heuristic.
//
// The points are round percentages of the given order's peak. Between a lower
// and an upper point the roundest point in the middle comes next, whatever the
// user's budget; the budget only says on which side to go on. The search at a
// point may use the lower point's plan, so it is never slower than that, and
// takes no plan faster than the upper point's. So if two budgets part at a
// point, the larger gets a plan at least as fast as the point's and the
// smaller one at most as fast. What is found at a point never depends on the
// budget, and log2 of the number of points are searched.
//
// No plan needs fewer bytes than the bound, so nothing is found at the round
// points below it. Between two neighbouring points of which the lower has no
// plan, or one that is much slower, the bisection goes on by bytes, with the
// bound itself first where it lies there: a problem may just fit by a copy of a
// few bytes.
//
// Below the smallest plan that all this finds, the walk is made once more with
// more work: from that plan on, so that what is found is never faster than it
// and law 3 holds across both.
//
// Where recomputation and copies are both allowed, the same walk is made with
// each alone, and their finds are starts of the joint search: within one walk
// joint is never worse than the better of the two. Where copy lanes slow each
// other down, part of a large joint search is made with lanes that are slow
// always: an edit costs far less to price there, and its finds are starts too.
// Where nothing can be copied, orders alone are searched before recomputation,
// to the same end. Where codecs may be used, all that is done without them
// first, and then once more, with as much work, with them.
#ifndef LOADLINE_PLANNER_SOLVE_BUDGET_BISECTION_H_
#define LOADLINE_PLANNER_SOLVE_BUDGET_BISECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "planner/layers/coarsen_layers.h"
#include "planner/layers/layer_search.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/search/point_search.h"

namespace loadline::planner {

// One way of planning (recompute alone, copies alone, both, with codecs) on the
// walk.
struct SearchMode {
  SearchModel model;
  double share = 1;         // of a point's work
  int64_t bound_bytes = 0;  // no plan needs fewer
  // How it searches where many layers are alike; null elsewhere.
  std::unique_ptr<LayerSearch> layered;
  // Plans of the lower and the upper point; none if nothing was found there.
  std::optional<LaidOutSchedule> lower, upper;
  std::optional<LaidOutSchedule> here;  // of the point searched last
  std::optional<LaidOutSchedule>
      met;           // of the lowest point where one was found
  PointBound proof;  // of the point proven last
  // Its model has WithApartLanes; `here` with the times of the true lanes.
  bool apart_lanes = false;
  std::optional<LaidOutSchedule> here_timed;
};

struct BudgetBisectionOptions {
  bool allow_recompute = true;
  bool allow_offload = true;
  Permissions permissions;
  int64_t work_limit = 0;
  int64_t pack_work_limit = 0;
  uint64_t seed = 0;
  SearchTuning tuning;
};

class BudgetBisection {
 public:
  // `orders` as SeedOrders gives them, all valid; `kept` is one of them laid
  // out: the plan of no overhead, whatever bytes it takes.
  BudgetBisection(const Problem& problem, const std::vector<Schedule>& orders,
                  const LaidOutSchedule& kept,
                  const BudgetBisectionOptions& options,
                  const WorkBudget& outside);

  // Walks to a budget; `improved` hears of plans that fit it. Null: none was
  // found; smallest() then has the plan of the fewest bytes that was.
  const LaidOutSchedule* BisectTo(
      int64_t budget_bytes,
      const std::function<void(const LaidOutSchedule&)>& improved);
  // Walks down as long as anything is found.
  void BisectDown();
  // Where nothing was found, after BisectDown: from the smallest plan found
  // once more down, with so many times the work at every point.
  void SearchHarder(int64_t times);
  const LaidOutSchedule& smallest() const { return *modes_.back()->upper; }

  // Searches at the budget alone, round after round, until interrupted or until
  // what was found is proven the best there is: better within a time limit, and
  // monotone in nothing.
  void SearchUntilDeadline(
      int64_t budget_bytes,
      const std::function<void(const LaidOutSchedule&)>& improved);

  const SearchModel& model() const { return modes_.back()->model; }
  Searched searched() const;

 private:
  struct Task {
    int64_t budget_bytes = 0;
    double work = 0;
    uint64_t seed = 0;
  };

  // What is searched next. `number` is 0 between two neighbouring points.
  struct Point {
    int64_t bytes = 0;
    double share = 0;  // of the work limit
    int number = 0;
  };

  std::optional<Point> NextPoint() const;
  void SearchPoint(const Point& point);
  const LaidOutSchedule& Timed(SearchMode& mode) const;
  void Search(SearchMode& mode, const Task& task,
              const std::vector<const LaidOutSchedule*>& others);
  LayOutOptions PlaceWithin(int64_t budget_bytes, int64_t work) const;
  int64_t BytesAt(int point) const;
  // Whether budgets between two neighbouring points are to be told apart: with
  // the lower bytes nothing was found, or a much slower plan.
  bool IsSteep() const;
  // Fewer bytes than this are not told apart.
  int64_t GrainBytes() const;
  // Less than this is searched at no point above the lower one.
  int64_t BytesAfterLower() const;
  // Between the bound and a plan of these bytes.
  void DescendFrom(int64_t arena_bytes);
  void GoUp(const Point& point);
  void GoDown(const Point& point);

  const Problem& problem_;
  const std::vector<Schedule>& orders_;
  BudgetBisectionOptions options_;
  const WorkBudget outside_;
  int64_t peak_bytes_ = 1;                             // of the given order
  std::unique_ptr<const CoarseLayers> coarse_layers_;  // null: no layers
  int lowest_ = 0;  // the last point below the bound
  int lower_ = 0, upper_ = 0;
  int64_t bound_bytes_ = 0;  // no plan of any kind needs fewer
  int64_t lower_bytes_ = 0, upper_bytes_ = 0;
  bool lower_searched_ = false;
  // The last is the one asked for.
  std::vector<std::unique_ptr<SearchMode>> modes_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_BUDGET_BISECTION_H_
