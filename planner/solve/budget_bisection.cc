// See budget_bisection.h. Tested in solve_test.cc: monotone over budgets, joint
// never worse than each mode alone; nearest to the bound in
// budget_bisection_test.cc and, against the optimum, bound_test.cc.
#include "planner/solve/budget_bisection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/time/clock.h"
#include "planner/bound/bound.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

// Of the problem with everything that the permissions and the machine permit:
// the range of budgets must not depend on what else is allowed, so that plans
// with more means are comparable point by point.
SearchModel ModelOfAll(const Problem& problem,
                       const SearchModelOptions& options) {
  Permissions permissions = options.permissions;
  permissions.codecs = true;
  return MakeSearchModel(
      problem, {.permissions = permissions, .tuning = options.tuning});
}

std::unique_ptr<const CoarseLayers> LayersOf(
    const Problem& problem, const BudgetBisectionOptions& options) {
  return FindCoarseLayers(problem, IndexProblem(problem), options.work_limit,
                          options.model.tuning.layers);
}

int64_t PeakOfGivenOrder(const Problem& problem) {
  const SearchModel plain =
      MakeSearchModel(problem, false, false, Permissions::None());
  return std::max<int64_t>(
      1, FindLifetimes(plain, GivenOrder(plain)).raw_peak_bytes);
}

// What the points divide: the peak, unless addresses that are aligned far more
// coarsely than buffers are large need many times as much.
int64_t WholeOf(const Problem& problem, const LaidOutSchedule& kept,
                const SearchTuning::Bisection& tuning) {
  const int64_t peak_bytes = PeakOfGivenOrder(problem);
  return kept.arena_bytes / tuning.most_peaks > peak_bytes ? kept.arena_bytes
                                                           : peak_bytes;
}

}  // namespace

BudgetBisection::BudgetBisection(const Problem& problem,
                                 const std::vector<Schedule>& orders,
                                 const LaidOutSchedule& kept,
                                 const BudgetBisectionOptions& options,
                                 const WorkBudget& outside)
    : options_(options),
      outside_(outside),
      coarse_layers_(LayersOf(problem, options)),
      modes_(MakeSearchModes(problem, options.model, orders,
                             coarse_layers_.get())),
      points_(WholeOf(problem, kept, options_.model.tuning.bisection),
              options_.model.tuning.bisection),
      bound_bytes_(BoundPeak(ModelOfAll(problem, options.model)).bytes) {
  while (lowest_ < points_.count() &&
         points_.BytesAt(lowest_ + 1) < bound_bytes_) {
    ++lowest_;
  }
  for (const auto& mode : modes_) mode->met = kept;
  RestartBelow(kept.arena_bytes);
}

void BudgetBisection::RestartBelow(int64_t arena_bytes) {
  lower_ = lowest_;
  lower_bytes_ = bound_bytes_ - 1;
  lower_searched_ = false;
  upper_ = lower_ + 1;
  while (points_.BytesAt(upper_) < arena_bytes) ++upper_;
  upper_bytes_ = arena_bytes;
  for (const auto& mode : modes_) {
    mode->lower.reset();
    mode->upper = mode->met;
  }
}

Searched BudgetBisection::searched() const {
  if (!coarse_layers_) return {};
  return {coarse_layers_->all.count, coarse_layers_->shrunk.layers.count,
          static_cast<int64_t>(coarse_layers_->shrunk.problem.nodes.size())};
}

bool BudgetBisection::IsSteep(const SearchMode& mode) const {
  const SearchTuning::Bisection& tuning = options_.model.tuning.bisection;
  if (!tuning.search_between_points) return false;
  if (mode.search->IsCostly() && lower_ != lowest_) return false;
  if (!mode.upper) return false;  // then there is nothing below it either
  return !mode.lower ||
         mode.lower->step_ns > (1 + tuning.steep_share) * mode.upper->step_ns;
}

bool BudgetBisection::IsDone(const SearchMode& mode,
                             int64_t budget_bytes) const {
  return mode.lower && mode.upper &&
         (budget_bytes < BytesAfterLower() ||
          mode.lower->step_ns <= mode.upper->step_ns);
}

int64_t BudgetBisection::BytesAfterLower() const {
  return IsSteep() ? lower_bytes_ + points_.GrainBytes()
                   : points_.BytesAt(lower_ + 1);
}

std::optional<BudgetBisection::Point> BudgetBisection::NextPoint() const {
  const int number = points_.Between(lower_, upper_);
  if (number != 0) {
    return Point{points_.BytesAt(number), points_.WorkShare(number), number};
  }
  if (!IsSteep()) return std::nullopt;
  const double share = options_.model.tuning.bisection.grain_share;
  if (lower_bytes_ < bound_bytes_ && bound_bytes_ < upper_bytes_) {
    return Point{bound_bytes_, share, 0};
  }
  if (upper_bytes_ - lower_bytes_ <= points_.GrainBytes()) return std::nullopt;
  return Point{lower_bytes_ + (upper_bytes_ - lower_bytes_) / 2, share, 0};
}

void BudgetBisection::SearchPoint(const Point& point) {
  const auto seed = static_cast<uint64_t>(
      point.number != 0 ? point.number : points_.count() + point.bytes);
  const BudgetTask task = {
      point.bytes, point.share * static_cast<double>(options_.work_limit),
      options_.seed * static_cast<uint64_t>(points_.count()) + seed, must_find_,
      floor_ns_};
  const int last = static_cast<int>(modes_.size()) - 1;
  const int others = Asked().codecs ? last - 1 : last;
  outside_.ForEach(others, [&](int mode) {
    TargetSearch(*modes_[mode], task, outside_).Run({});
  });
  std::vector<const LaidOutSchedule*> plans;
  for (int mode = 0; mode < others; ++mode) {
    if (modes_[mode]->here) plans.push_back(&Timed(*modes_[mode]));
  }
  TargetSearch(*modes_[others], task, outside_).Run(plans);
  if (others == last) return;
  if (Plain().here) plans = {&*Plain().here};
  TargetSearch(Asked(), task, outside_).Run(plans);
}

const LaidOutSchedule& BudgetBisection::Timed(SearchMode& mode) const {
  if (!mode.apart_lanes) return *mode.here;
  mode.here_timed = mode.here;
  mode.here_timed->step_ns =
      std::round(FindTimes(Asked().model, mode.here->schedule).step_ns);
  return *mode.here_timed;
}

void BudgetBisection::GoUp(const Point& point) {
  if (point.number != 0) lower_ = point.number;
  lower_bytes_ = point.bytes;
  lower_searched_ = true;
  for (const auto& mode : modes_) mode->lower = mode->here;
}

void BudgetBisection::GoDown(const Point& point) {
  if (point.number != 0) upper_ = point.number;
  upper_bytes_ = point.bytes;
  for (const auto& mode : modes_) {
    mode->upper = mode->here;
    if (mode->here) mode->met = mode->here;
  }
}

const LaidOutSchedule* BudgetBisection::BisectTo(
    int64_t budget_bytes,
    const std::function<void(const LaidOutSchedule&)>& improved) {
  const SearchMode& asked = Asked();
  const SearchMode& plain = Plain();
  while (!outside_.Interrupted()) {
    if (plain.upper && plain.upper->arena_bytes <= budget_bytes) {
      improved(*plain.upper);
    }
    if (asked.upper->arena_bytes <= budget_bytes) return &*asked.upper;
    if (lower_searched_ && IsDone(asked, budget_bytes) &&
        (!plain.upper || IsDone(plain, budget_bytes))) {
      break;
    }
    const std::optional<Point> point = NextPoint();
    if (!point) break;
    SearchPoint(*point);
    for (const SearchMode* mode : {&plain, &asked}) {
      if (mode->here && mode->here->arena_bytes <= budget_bytes) {
        improved(*mode->here);
      }
    }
    // Without a plan at the point there is none for less.
    if (point->bytes <= budget_bytes || !asked.here) {
      GoUp(*point);
    } else {
      GoDown(*point);
    }
  }
  return asked.lower ? &*asked.lower : nullptr;
}

void BudgetBisection::BisectDown() {
  while (!outside_.Interrupted()) {
    const std::optional<Point> point = NextPoint();
    if (!point) return;
    SearchPoint(*point);
    if (Asked().here) {
      GoDown(*point);
    } else {
      GoUp(*point);
    }
  }
}

void BudgetBisection::ContinueBelow(const LaidOutSchedule& plan) {
  floor_ns_ = Asked().upper->step_ns;
  Asked().met = plan;
  RestartBelow(plan.arena_bytes);
}

void BudgetBisection::ContinueAbove(const LaidOutSchedule& plan) {
  RestartBelow(smallest().arena_bytes);
  while (lower_ + 1 < upper_ &&
         points_.BytesAt(lower_ + 1) <= plan.arena_bytes) {
    ++lower_;
  }
  Asked().lower = plan;
  const Point point = {plan.arena_bytes,
                       options_.model.tuning.bisection.grain_share, 0};
  SearchPoint(point);
  GoUp(point);
}

LaidOutSchedule BudgetBisection::Faster(const LaidOutSchedule& plan) {
  Asked().lower = plan;
  SearchPoint({plan.arena_bytes, 1, 0});
  return *Asked().here;
}

void BudgetBisection::SearchHarder(int64_t times) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  options_.work_limit =
      options_.work_limit > kMost / times ? kMost : options_.work_limit * times;
  must_find_ = true;
  RestartBelow(smallest().arena_bytes);
}

// Little is lost when a round is interrupted, but nothing should be.
double BudgetBisection::NextTimedWork() const {
  const SearchTuning::Bisection& tuning = options_.model.tuning.bisection;
  if (round_.number == 0) return tuning.first_timed_work;
  const double rounds_left =
      absl::FDivDuration(round_.last_deadline - absl::Now(),
                         std::max(round_.took, absl::Nanoseconds(1)));
  return std::min(
      tuning.last_timed_work,
      std::clamp(tuning.timed_fill * rounds_left * round_.work,
                 tuning.first_timed_work, tuning.timed_growth * round_.work));
}

void BudgetBisection::FindWithin(
    double share, int64_t budget_bytes,
    const std::function<void(const LaidOutSchedule&)>& improved) {
  const absl::Time deadline = outside_.stop.deadline;
  const absl::Time now = absl::Now();
  outside_.stop.deadline = now + share * (deadline - now);
  round_.last_deadline = deadline;
  while (!Asked().lower && MaySearchAt(budget_bytes)) {
    SearchRound(budget_bytes, improved);
  }
  outside_.stop.deadline = deadline;
}

void BudgetBisection::SearchUntilDeadline(
    int64_t budget_bytes,
    const std::function<void(const LaidOutSchedule&)>& improved,
    const LaidOutSchedule* known) {
  if (known != nullptr) Asked().lower = *known;
  round_.last_deadline = outside_.stop.deadline;
  while (MaySearchAt(budget_bytes) && !IsBestAt(budget_bytes)) {
    SearchRound(budget_bytes, improved);
  }
}

bool BudgetBisection::MaySearchAt(int64_t budget_bytes) const {
  return std::max(Asked().bound_bytes, Asked().least_target_bytes) <=
             budget_bytes &&
         !outside_.Interrupted();
}

bool BudgetBisection::IsBestAt(int64_t budget_bytes) const {
  if (!Asked().lower) return false;
  double enough_ns = Asked().upper->step_ns;
  const PointBound& proof = Asked().search->proof();
  if (proof.target_bytes == budget_bytes) {
    enough_ns = std::max(enough_ns, proof.enough_ns);
  }
  return Asked().lower->step_ns <= enough_ns;
}

void BudgetBisection::SearchRound(
    int64_t budget_bytes,
    const std::function<void(const LaidOutSchedule&)>& improved) {
  SearchMode& asked = Asked();
  asked.share = 1;
  round_.work = NextTimedWork();
  const absl::Time begin = absl::Now();
  // The round's work follows from its time, so a walk more on a thread of its
  // own shortens no other.
  const BudgetTask task = {
      .budget_bytes = budget_bytes,
      .work = round_.work,
      .seed = options_.seed + round_.number,
      .must_find = true,
      .least_walks =
          std::min(outside_.threads(),
                   options_.model.tuning.bisection.most_timed_walks)};
  TargetSearch(asked, task, outside_).Run({});
  round_.took = absl::Now() - begin;
  ++round_.number;
  if (!asked.here) return;
  if (!asked.lower || asked.here->step_ns < asked.lower->step_ns) {
    improved(*asked.here);
  }
  asked.lower = asked.here;
}

const StepBound* BudgetBisection::ProofAt(int64_t budget_bytes) const {
  const PointBound& proof = Asked().search->proof();
  return proof.target_bytes == budget_bytes ? &proof.bound : nullptr;
}

}  // namespace loadline::planner
