// Tested in solve_test.cc (budgets that only a second search meets).
#include "planner/solve/target_search.h"

#include <algorithm>
#include <optional>

#include "planner/layout/fit_layout.h"
#include "planner/schedule/simulate.h"
#include "planner/solve/drop_redundant_transfers.h"

namespace loadline::planner {
namespace {

int64_t Share(double share, double work) {
  return static_cast<int64_t>(share * work);
}

}  // namespace

TargetSearch::TargetSearch(SearchMode& mode, const BudgetTask& task,
                           const WorkBudget& outside)
    : mode_(mode),
      task_(task),
      outside_(outside),
      tuning_(mode.model.tuning.bisection),
      next_share_(tuning_.retry_share) {
  if (!mode.upper) return;
  options_.target_bytes = task.budget_bytes;
  options_.floor_ns = task.floor_ns.value_or(mode.upper->step_ns);
  if (mode.model.problem->addresses) {
    first_share_ = mode.search->IsCostly() ? tuning_.layered_first_share
                                           : tuning_.first_share;
  }
  options_.work = Share(first_share_ * mode.share, task.work);
  options_.seed = task.seed;
  options_.least_walks = task.least_walks;
  pressure_work_ = Share(tuning_.pressure_share * mode.share, task.work);
}

void TargetSearch::Run(const std::vector<const LaidOutSchedule*>& others) {
  Search(others);
  // Only where a copy costs time although it hides behind compute: elsewhere
  // the search's own clean-up has dropped what makes a step shorter.
  if (!mode_.here || mode_.model.copy_overhead_ns == 0) return;
  WorkBudget work = outside_;
  work.left = Share(mode_.share, task_.work);
  if (const auto fewer =
          DropRedundantTransfers(mode_.model, *mode_.here, task_.budget_bytes,
                                 options_.floor_ns, work)) {
    mode_.here = *fewer;
  }
}

void TargetSearch::Search(const std::vector<const LaidOutSchedule*>& others) {
  mode_.here = mode_.lower;
  if (!mode_.upper || mode_.bound_bytes > task_.budget_bytes) return;
  starts_ = {mode_.upper->schedule};
  for (const LaidOutSchedule* other : others) Take(*other);
  if (mode_.least_target_bytes > task_.budget_bytes) return;
  options_.must_find = task_.must_find && !mode_.here;
  if (mode_.here) starts_.insert(starts_.begin(), mode_.here->schedule);
  SearchNear();
  SearchFar();
}

void TargetSearch::SearchNear() {
  const int most_rounds =
      tuning_.layout_retries ? tuning_.most_layout_tries : 1;
  for (int round = 0; round < most_rounds && !FoundFastest(); ++round) {
    std::vector<FoundSchedule> finds =
        mode_.search->Find(starts_, options_, outside_);
    const Layouts layouts = LayOutFinds(finds);
    if (outside_.Interrupted()) return;
    if (!MoveTarget(round, layouts, finds)) return;
    options_.work = Share(next_share_ * mode_.share, task_.work);
    next_share_ = tuning_.retry_share;
    options_.repair = true;
    ++options_.seed;
  }
}

bool TargetSearch::IsFarWorthIt() const {
  return tuning_.layout_retries && !outside_.Interrupted() &&
         unplaced_ns_ < kMostStepNs &&
         (!mode_.here || unplaced_ns_ <= (1 - tuning_.worth_whole_search) *
                                             mode_.here->step_ns);
}

void TargetSearch::SearchFar() {
  const int64_t same_bytes = task_.budget_bytes / tuning_.same_budget_part;
  // Bytes below the budget: with which finds could not be laid out, of the next
  // search, and with which they could, or with which there were none.
  int64_t too_few = 0, fewer = std::max(most_excess_bytes_, same_bytes);
  int64_t enough = task_.budget_bytes - mode_.bound_bytes;
  options_.repair = false;
  options_.work = Share(first_share_ * mode_.share, task_.work);
  for (int tries = 0; tries < tuning_.whole_layout_tries; ++tries) {
    if (!IsFarWorthIt() || enough - too_few <= same_bytes) return;
    fewer = std::min(fewer, too_few + (enough - too_few) / 2);
    options_.target_bytes = task_.budget_bytes - fewer;
    ++options_.seed;
    std::vector<FoundSchedule> finds =
        mode_.search->Find(starts_, options_, outside_);
    const Layouts layouts = LayOutFinds(finds);
    if (layouts.best_fits) {
      enough = fewer;
    } else {
      too_few = fewer;
      starts_.insert(starts_.begin(), finds.front().schedule);
    }
    fewer *= 2;
  }
}

void TargetSearch::Take(const LaidOutSchedule& plan) {
  if (plan.step_ns < options_.floor_ns || plan.step_ns > kMostStepNs) return;
  if (!mode_.here || plan.step_ns < mode_.here->step_ns) mode_.here = plan;
}

bool TargetSearch::FoundFastest() const {
  return mode_.here && mode_.here->step_ns <= options_.floor_ns;
}

TargetSearch::Layouts TargetSearch::LayOutFinds(
    std::vector<FoundSchedule>& finds) {
  Layouts layouts;
  int tried = 0;
  for (FoundSchedule& found : finds) {
    if (mode_.here && found.step_ns >= mode_.here->step_ns) break;
    if (tried == mode_.search->layout_policy().most_finds) break;
    const int64_t pack_work =
        std::min(mode_.model.tuning.layout.pack_work,
                 std::max(tuning_.least_pack_work,
                          tuning_.pack_work_per_unit * options_.work));
    const FitLayoutOptions fit = {
        {task_.budget_bytes, pack_work, outside_.stop},
        options_.floor_ns,
        tried++ < tuning_.pressure_finds ? pressure_work_ : 0,
        options_.seed};
    int64_t excess_bytes = 0;
    const std::optional<LaidOutSchedule> laid_out =
        FitLayout(mode_.model, found, fit, outside_, &excess_bytes);
    if (laid_out) {
      Take(*laid_out);
      break;
    }
    most_excess_bytes_ = std::max(most_excess_bytes_, excess_bytes);
    layouts.excess_bytes = layouts.best_fits
                               ? excess_bytes
                               : std::min(layouts.excess_bytes, excess_bytes);
    layouts.best_fits = false;
  }
  return layouts;
}

bool TargetSearch::MoveTarget(int round, const Layouts& layouts,
                              const std::vector<FoundSchedule>& finds) {
  if (layouts.best_fits) {
    if (too_many_ < 0) return round == 0 && ContinueFromBest();
    enough_ = options_.target_bytes;
  } else {
    too_many_ = options_.target_bytes;
    unplaced_ns_ = std::min(unplaced_ns_, finds.front().step_ns);
    starts_.insert(starts_.begin(), finds.front().schedule);
  }
  if (enough_ >= 0) return HalveTarget();
  LowerTarget(round, layouts.excess_bytes, finds.front().schedule);
  return true;
}

// The work that later searches would have had is not needed for layouts.
bool TargetSearch::ContinueFromBest() {
  if (!mode_.here || first_share_ == 1 || mode_.search->IsCostly()) {
    return false;
  }
  starts_.insert(starts_.begin(), mode_.here->schedule);
  next_share_ = 1 - first_share_;
  return true;
}

bool TargetSearch::HalveTarget() {
  const std::optional<double> negligible =
      mode_.search->layout_policy().negligible;
  if (negligible && mode_.here &&
      mode_.here->step_ns <= (1 + *negligible) * unplaced_ns_) {
    return false;
  }
  if (too_many_ - enough_ < task_.budget_bytes / tuning_.same_budget_part) {
    return false;
  }
  options_.target_bytes = enough_ + (too_many_ - enough_) / 2;
  return true;
}

// By less than the excess at first: often another schedule packs better.
void TargetSearch::LowerTarget(int round, int64_t excess_bytes,
                               const Schedule& found) {
  const double step =
      mode_.search->layout_policy().retry_step + tuning_.retry_growth * round;
  const int64_t excess =
      std::max(excess_bytes, task_.budget_bytes / tuning_.same_budget_part);
  // A find may take fewer bytes than its target: then fewer than those.
  const int64_t taken_bytes = FindLifetimes(mode_.model, found).peak_bytes;
  options_.target_bytes =
      std::min(options_.target_bytes, taken_bytes) -
      static_cast<int64_t>(1 + step * static_cast<double>(excess));
  // No schedule takes fewer than the bound: at most half the way there.
  options_.target_bytes =
      std::max(options_.target_bytes,
               mode_.bound_bytes + (too_many_ - mode_.bound_bytes) / 2);
}

}  // namespace loadline::planner
