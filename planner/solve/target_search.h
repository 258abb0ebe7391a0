// The search of one mode at one budget, until a plan can be laid out there.
#ifndef LOADLINE_PLANNER_SOLVE_TARGET_SEARCH_H_
#define LOADLINE_PLANNER_SOLVE_TARGET_SEARCH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "planner/search/search.h"
#include "planner/solve/search_mode.h"

namespace loadline::planner {

// One budget to search, and the work for it (before the mode's share).
struct BudgetTask {
  int64_t budget_bytes = 0;
  double work = 0;
  uint64_t seed = 0;
  // PointSearchOptions::must_find, until a plan is known.
  bool must_find = false;
  // No plan faster than this is taken. Default: the step of mode.upper.
  std::optional<double> floor_ns;
  int least_walks = 1;  // PointSearchOptions
};

// A schedule within the budget may need more bytes once its buffers have
// addresses. Then the search is repeated with fewer bytes; once something fits,
// with half of the difference more. The repeats repair what the first search
// found; where that leads to nothing near its step, whole searches follow.
class TargetSearch {
 public:
  // `mode` must outlive it. `outside` only interrupts.
  TargetSearch(SearchMode& mode, const BudgetTask& task,
               const WorkBudget& outside);

  // Leaves the mode's best plan for the task, if any, in mode.here: never
  // slower than mode.lower, never faster than the task's floor. `others` are
  // plans of other modes within the budget.
  void Run(const std::vector<const LaidOutSchedule*>& others);

 private:
  void Search(const std::vector<const LaidOutSchedule*>& others);
  // Searches at the budget, then with fewer bytes from what was found.
  void SearchNear();
  // Whole searches with fewer and fewer bytes, for what repairs could not do.
  void SearchFar();
  bool IsFarWorthIt() const;

  // What became of the finds of one search.
  struct Layouts {
    bool best_fits = true;     // the fastest find that would be an improvement
    int64_t excess_bytes = 0;  // of the lowest layout, if it does not
  };

  void Take(const LaidOutSchedule& plan);
  bool FoundFastest() const;
  Layouts LayOutFinds(std::vector<FoundSchedule>& finds);
  // The target of the next search; false: no further search is worth it.
  bool MoveTarget(int round, const Layouts& layouts,
                  const std::vector<FoundSchedule>& finds);
  // Below `excess_bytes`, by more with every round.
  void LowerTarget(int round, int64_t excess_bytes, const Schedule& found);
  bool HalveTarget();
  // At the same target; false: not worth it.
  bool ContinueFromBest();

  SearchMode& mode_;
  const BudgetTask task_;
  const WorkBudget& outside_;
  const SearchTuning::Bisection& tuning_;
  PointSearchOptions options_;  // of the next search
  double first_share_ = 1;      // of the work: the first search
  double next_share_ = 0;       // the next one
  int64_t pressure_work_ = 0;
  std::vector<Schedule> starts_;
  // Targets: the fewest bytes whose best find could not be laid out in the
  // budget, the most whose best find could; -1: none.
  int64_t too_many_ = -1, enough_ = -1;
  // Fastest find that could not be laid out.
  double unplaced_ns_ = std::numeric_limits<double>::infinity();
  // By which layouts of finds were too high, at most.
  int64_t most_excess_bytes_ = 0;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SOLVE_TARGET_SEARCH_H_
