// Plans at fixed points of the range of budgets, found by bisection, so that a
// larger budget never gets a slower plan although every search is a heuristic.
//
// The points are round percentages of the given order's peak. Between a lower
// and an upper point the roundest point in the middle comes next, whatever the
// user's budget; the budget only decides on which side to continue. The search
// at a point may use the lower point's plan, so it is never slower than that,
// and takes no plan faster than the upper point's. So if two budgets part at a
// point, the larger gets a plan at least as fast as the point's and the smaller
// one at most as fast. What is found at a point never depends on the budget,
// and log2 of the number of points are searched.
//
// No plan needs fewer bytes than the bound, so nothing is found at the points
// below it. Between two neighbouring points of which the lower has no plan, or
// one that is much slower, the bisection continues byte by byte, with the bound
// itself first if it lies there: a problem may just fit by a copy of a few
// bytes.
//
// To search with more work, the bisection starts again from the smallest plan
// found so far, so that no plan below is faster than that plan, and larger
// budgets stay no slower.
//
// At a point the modes (search_mode.h) are searched one after the other; plans
// of the others are starts of the last, which is the one asked for.
#ifndef LOADLINE_PLANNER_SOLVE_BUDGET_BISECTION_H_
#define LOADLINE_PLANNER_SOLVE_BUDGET_BISECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "planner/bound/bound.h"
#include "planner/layers/coarsen_layers.h"
#include "planner/layout/laid_out_schedule.h"
#include "planner/problem/plan.h"
#include "planner/search/search.h"
#include "planner/solve/budget_points.h"
#include "planner/solve/search_mode.h"
#include "planner/solve/target_search.h"

namespace loadline::planner {

struct BudgetBisectionOptions {
  SearchModelOptions model;  // what plans may do, and the tuning
  int64_t work_limit = 0;
  uint64_t seed = 0;
};

class BudgetBisection {
 public:
  // `orders` as SeedOrders gives them, all valid; `kept` is one of them laid
  // out: the plan without overhead, whatever bytes it takes. `problem` and
  // `orders` must outlive it.
  BudgetBisection(const Problem& problem, const std::vector<Schedule>& orders,
                  const LaidOutSchedule& kept,
                  const BudgetBisectionOptions& options,
                  const WorkBudget& outside);
  BudgetBisection(const BudgetBisection&) = delete;
  BudgetBisection& operator=(const BudgetBisection&) = delete;

  // Bisects to a budget; `improved` is called with plans that fit it. Null:
  // none was found; smallest() then has the plan of the fewest bytes that was.
  const LaidOutSchedule* BisectTo(
      int64_t budget_bytes,
      const std::function<void(const LaidOutSchedule&)>& improved);
  // Bisects downwards as long as anything is found.
  void BisectDown();
  // After BisectDown: starts again below the smallest plan found, with so many
  // times the work at every point.
  void SearchHarder(int64_t times);
  // Continues below a plan that was found elsewhere, as if BisectDown had, but
  // plans of fewer bytes may then be faster than it: only smallest() counts.
  void ContinueBelow(const LaidOutSchedule& plan);
  // After BisectDown: continues between the smallest plan found and `plan`,
  // which was found elsewhere, needs fewer bytes and is not faster. Searches at
  // its bytes first. BisectTo any budget from there on then finds a plan.
  void ContinueAbove(const LaidOutSchedule& plan);
  // `plan`, which was found elsewhere, or a faster one in its bytes.
  LaidOutSchedule Faster(const LaidOutSchedule& plan);
  const LaidOutSchedule& smallest() const { return *Asked().met; }
  bool Interrupted() const { return outside_.Interrupted(); }
  // Of what follows.
  void SetDeadline(absl::Time deadline) { outside_.stop.deadline = deadline; }

  // SearchUntilDeadline's first rounds, until a plan is found or so large a
  // share of the time is over.
  void FindWithin(double share, int64_t budget_bytes,
                  const std::function<void(const LaidOutSchedule&)>& improved);
  // Searches at the budget alone, round after round, until interrupted or until
  // what was found is proven the best there is: better within a time limit, and
  // not monotone in the budget.
  // `known`, if any, is a plan within the budget.
  void SearchUntilDeadline(
      int64_t budget_bytes,
      const std::function<void(const LaidOutSchedule&)>& improved,
      const LaidOutSchedule* known = nullptr);

  // What SearchUntilDeadline proved of its budget; null: nothing.
  const StepBound* ProofAt(int64_t budget_bytes) const;

  Searched searched() const;

 private:
  // What is searched next. `number` is 0 between two neighbouring points.
  struct Point {
    int64_t bytes = 0;
    double share = 0;  // of the work limit
    int number = 0;
  };

  SearchMode& Asked() { return *modes_.back(); }
  const SearchMode& Asked() const { return *modes_.back(); }
  // The mode that would be asked for without codecs: its plans are what they
  // are then, and bisection goes on for as long as it would then.
  const SearchMode& Plain() const {
    return Asked().codecs ? *modes_[modes_.size() - 2] : Asked();
  }
  std::optional<Point> NextPoint() const;
  // Of a search until a deadline: whether it may go on, what it knows, and its
  // next round.
  bool MaySearchAt(int64_t budget_bytes) const;
  bool IsBestAt(int64_t budget_bytes) const;
  void SearchRound(int64_t budget_bytes,
                   const std::function<void(const LaidOutSchedule&)>& improved);
  double NextTimedWork() const;
  void SearchPoint(const Point& point);
  // What the mode found, with the step time that the mode asked for gives it.
  const LaidOutSchedule& Timed(SearchMode& mode) const;
  // Whether budgets between the two neighbouring points are distinguished: with
  // the lower bytes nothing was found, or a much slower plan.
  bool IsSteep() const { return IsSteep(Asked()) || IsSteep(Plain()); }
  bool IsSteep(const SearchMode& mode) const;
  // Whether no plan of the mode between its two points is of use for a budget.
  bool IsDone(const SearchMode& mode, int64_t budget_bytes) const;
  // The fewest bytes that any search above the lower point is made with.
  int64_t BytesAfterLower() const;
  // To between the bound and a plan of these bytes.
  void RestartBelow(int64_t arena_bytes);
  void GoUp(const Point& point);
  void GoDown(const Point& point);

  BudgetBisectionOptions options_;
  WorkBudget outside_;                                 // only interrupts
  std::unique_ptr<const CoarseLayers> coarse_layers_;  // null: no layers
  std::vector<std::unique_ptr<SearchMode>> modes_;     // the last is asked for
  const BudgetPoints points_;
  bool must_find_ = false;  // SearchHarder was called
  // What no plan need be faster than, where that is not the upper one.
  std::optional<double> floor_ns_;
  int64_t bound_bytes_ = 0;  // no plan needs fewer
  int lowest_ = 0;           // the last point below the bound
  int lower_ = 0, upper_ = 0;
  int64_t lower_bytes_ = 0, upper_bytes_ = 0;
  bool lower_searched_ = false;
  // The last round of a search until a deadline.
  struct Round {
    uint64_t number = 0;  // how many there were
    double work = 0;
    absl::Duration took;
    absl::Time last_deadline;  // of all rounds
  };
  Round round_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_BUDGET_BISECTION_H_
