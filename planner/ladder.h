// One schedule for each of a fixed ladder of targets, independent of the
// user's budget: that is what makes plans monotone. A budget gets the rung at
// or below it, and no rung is slower than the one below.
#ifndef LOADLINE_PLANNER_LADDER_H_
#define LOADLINE_PLANNER_LADDER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/search.h"

namespace loadline::planner {

struct Rung {
  int64_t target_bytes = 0;
  double step_ns = 0;
  std::optional<Schedule> schedule;  // none found yet
};

class Ladder {
 public:
  // Rungs at every 2.5 % of the given order's peak. `work_limit` is shared by
  // all of them; the share of a rung does not depend on the budget.
  Ladder(const Model& model, std::vector<Schedule> orders, int64_t work_limit,
         uint64_t seed);

  // Greedy descents from each order through all rungs. `enough` is asked after
  // each rung of the first; once it says so, no more is needed.
  void Descend(Effort outside, const std::function<bool(int)>& enough);
  // Anneals below the lowest peak of the descents; adds what it finds to
  // stuck().
  void Squeeze(Effort outside);
  // Improves the rungs from the lowest up to the one at or below
  // `budget_bytes`, each starting from the better of its own and the one
  // below.
  void Climb(int64_t budget_bytes, Effort outside);

  // Highest rung whose target is at most `budget_bytes`; -1: none.
  int RungFor(int64_t budget_bytes) const;
  const std::vector<Rung>& rungs() const { return rungs_; }
  // Where the descents got stuck: the lowest peaks reached.
  const std::vector<Schedule>& stuck() const { return stuck_; }

 private:
  void DescendAll(Effort outside, const std::function<bool(int)>& enough);
  void InheritFrom(size_t lower, size_t rung);
  void Record(int rung, SearchState& state);
  void Rescue(Rung& rung, Effort outside);

  const Model& model_;
  const std::vector<Schedule> orders_;
  const int64_t work_limit_;
  const uint64_t seed_;
  int64_t peak_bytes_ = 1;  // of the given order
  std::vector<Rung> rungs_;
  std::vector<Schedule> stuck_;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_LADDER_H_
