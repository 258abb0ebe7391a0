// See budget_bisection.h. Tested in solve_test.cc: monotone over budgets, joint
// never worse than each alone; nearest to the bound in budget_bisection_test.cc
// and, against the optimum, bound_test.cc.
#include "planner/solve/budget_bisection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/bound/bound.h"
#include "planner/layout/fit_layout.h"
#include "planner/schedule/simulate.h"

namespace loadline::planner {
namespace {

constexpr int kPoints = 400;  // quarter percents
// Round distances between points, and the share of the work limit that the
// search at such a point gets. Two to four of the first are on a walk.
struct Roundness {
  int distance;
  double share;
};
constexpr Roundness kRoundness[] = {
    {40, 0.5}, {20, 0.12}, {4, 0.06}, {2, 0.03}, {1, 0.03}};
// Where little is left, plans are hard to find and to lay out: more work for
// points up to 40 %. Below 20 % more would only take longer.
constexpr int kLowPoint = kPoints * 2 / 5;
constexpr int kTightPoint = kPoints / 5;
constexpr double kMoreForLow = 1.4;
// Where the bisection goes on by bytes, budgets closer than this part of the
// peak are not told apart. Each search there gets this share of the work limit.
constexpr int64_t kGrains = 16 * kPoints;
constexpr double kGrainShare = 0.03;
// It does where the lower plan is slower than the upper by more than this part.
constexpr double kSteep = 5e-3;
constexpr int kLayoutTries = 5;
constexpr int64_t kNearlySame = 1000;  // a part of the budget
constexpr int64_t kLeastPackWork = 2000;
// A layout gets this times the work of the search before it, at a small part of
// its time: a layout that fits saves the searches with fewer bytes.
constexpr int64_t kPackWorkPerMove = 2;
constexpr double kFirstHurry = 2e5;  // work
// Far more than anybody waits for; rounds in which nothing is left to search
// take no time, so there may be many.
constexpr double kLastHurry = 1e15;
// Shares of a point's work where there are three ways.
constexpr double kRecomputeShare = 0.15;
constexpr double kCopiesShare = 0.05;
constexpr double kOrdersShare = 0.2;  // where nothing can be copied
// Of the joint search's, where there are so many nodes that edits cost less to
// price with lanes apart.
constexpr double kApartLanesShare = 0.5;
constexpr size_t kLeastApartNodes = 100;
// Of the work at a point: the first search, and each after it for what can be
// laid out.
constexpr double kFirstShare = 0.8;
constexpr double kRetryShare = 0.05;
constexpr double kRetryShareWithoutPlan = 0.12;  // as long as none is laid out
// And of each try to take bytes away from a schedule that lies too high, of
// the fastest finds of a search.
constexpr int kSlimFinds = 2;
constexpr double kSlimShare = 0.03;
// Of the bytes by which a layout is too high, and so much more with each that
// does not fit: in the end there must be one.
constexpr double kRetryStep = 0.6;
constexpr double kRetryGrowth = 0.3;
// Where layers are stitched a search costs much more than its work says, and a
// layout too: fewer bytes at once, and fewer finds laid out.
constexpr double kLayeredRetryStep = 1.2;
constexpr int kLayeredFinds = 2;
// Nor is a part of the step as small as this worth another one.
constexpr double kLayeredNegligible = 5e-4;

// The roundest point strictly between that is nearest to the middle; 0: none.
int PointBetween(int lower, int upper) {
  for (const Roundness& round : kRoundness) {
    const int middle = ((lower + upper) / 2 + round.distance / 2) /
                       round.distance * round.distance;
    for (int point : {middle, middle - round.distance}) {
      if (point > lower && point < upper) return point;
    }
  }
  return 0;
}

double WorkShare(int point) {
  for (const Roundness& round : kRoundness) {
    if (point % round.distance != 0) continue;
    const bool more = point >= kTightPoint && point <= kLowPoint;
    return more ? kMoreForLow * round.share : round.share;
  }
  return 0;
}

}  // namespace

BudgetBisection::BudgetBisection(const Problem& problem,
                                 const std::vector<Schedule>& orders,
                                 const LaidOutSchedule& kept,
                                 const BudgetBisectionOptions& options,
                                 const WorkBudget& outside)
    : problem_(problem), orders_(orders), options_(options), outside_(outside) {
  const SearchModel all = MakeSearchModel(
      problem, {.permissions = options.permissions, .tuning = options.tuning});
  const bool codecs = all.form_count() > all.value_count;
  // A schedule without codecs means the same to a model with them: their jobs
  // come last.
  Permissions permissions = options.permissions;
  if (codecs) permissions.codecs = permissions.lossy = false;
  coarse_layers_ = FindCoarseLayers(problem, all.index, options.work_limit);
  const auto add = [&](bool recompute, bool offload, double share) {
    modes_.push_back(std::make_unique<SearchMode>());
    modes_.back()->model = MakeSearchModel(
        problem, {recompute, offload, permissions, options.tuning});
    modes_.back()->share = share;
    modes_.back()->bound_bytes = BoundPeak(modes_.back()->model).bytes;
    if (coarse_layers_) {
      modes_.back()->layered =
          std::make_unique<LayerSearch>(modes_.back()->model, *coarse_layers_,
                                        recompute, offload, permissions);
    }
  };
  const bool copies = problem.machine && problem.machine->CanCopy();
  if (!copies) {
    // An order that fits needs no reruns, and is hard to find among them.
    add(false, false, kOrdersShare);
    if (options.allow_recompute) add(true, false, 1);
  } else {
    // The same work for one alone, whether or not the other is allowed.
    if (options.allow_recompute) add(true, false, kRecomputeShare);
    if (options.allow_offload) add(false, true, kCopiesShare);
    if (modes_.empty()) add(false, false, kRecomputeShare);
    if (options.allow_recompute && options.allow_offload) {
      double share = 1 - kRecomputeShare - kCopiesShare;
      if (all.bidirectional < 1 && problem.nodes.size() >= kLeastApartNodes &&
          !coarse_layers_) {
        add(true, true, kApartLanesShare * share);
        share *= 1 - kApartLanesShare;
        modes_.back()->apart_lanes = true;
        modes_.back()->model = WithApartLanes(modes_.back()->model);
      }
      add(true, true, share);
    }
  }
  if (codecs) {
    permissions = options.permissions;
    add(options.allow_recompute, options.allow_offload, 1);
  }
  const SearchModel plain = MakeSearchModel(
      problem, {false, false, Permissions::None(), options.tuning});
  peak_bytes_ = std::max<int64_t>(
      1, FindLifetimes(plain, GivenOrder(plain)).raw_peak_bytes);
  // The range must not depend on what is allowed: the walks go together.
  bound_bytes_ = BoundPeak(all).bytes;
  while (lowest_ < kPoints && BytesAt(lowest_ + 1) < bound_bytes_) ++lowest_;
  for (const auto& mode : modes_) mode->met = kept;
  DescendFrom(kept.arena_bytes);
}

void BudgetBisection::DescendFrom(int64_t arena_bytes) {
  lower_ = lowest_;
  lower_bytes_ = bound_bytes_ - 1;
  lower_searched_ = false;
  upper_ = lower_ + 1;
  while (BytesAt(upper_) < arena_bytes) ++upper_;
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

int64_t BudgetBisection::BytesAt(int point) const {
  return static_cast<int64_t>(static_cast<__int128>(peak_bytes_) * point /
                              kPoints);
}

LayOutOptions BudgetBisection::PlaceWithin(int64_t budget_bytes,
                                           int64_t work) const {
  LayOutOptions place;
  place.budget_bytes = budget_bytes;
  place.pack_work_limit =
      std::min(options_.pack_work_limit,
               std::max(kLeastPackWork, kPackWorkPerMove * work));
  place.cancel = outside_.cancel;
  return place;
}

// Leaves the mode's plan for the task, if any, in mode.here.
void BudgetBisection::Search(
    SearchMode& mode, const Task& task,
    const std::vector<const LaidOutSchedule*>& others) {
  mode.here = mode.lower;
  if (!mode.upper || mode.bound_bytes > task.budget_bytes) {
    return;
  }
  PointSearchOptions pursuit;
  pursuit.target_bytes = task.budget_bytes;
  pursuit.floor_ns = mode.upper->step_ns;
  pursuit.work = static_cast<int64_t>((problem_.addresses ? kFirstShare : 1) *
                                      mode.share * task.work);
  pursuit.seed = task.seed;
  if (!mode.layered) pursuit.proof = &mode.proof;
  std::vector<Schedule> starts = {mode.upper->schedule};
  const auto take = [&](const LaidOutSchedule& placed) {
    if (placed.step_ns < pursuit.floor_ns) return;
    if (!mode.here || placed.step_ns < mode.here->step_ns) {
      mode.here = placed;
    }
  };
  for (const LaidOutSchedule* other : others) take(*other);
  if (mode.here) starts.insert(starts.begin(), mode.here->schedule);
  const int64_t pressure_work =
      static_cast<int64_t>(kSlimShare * mode.share * task.work);
  // Bytes to search with: the fewest whose best find could not be laid out in
  // the budget, the most whose best could.
  int64_t too_many = -1, enough = -1;
  double unplaced_ns = std::numeric_limits<double>::infinity();
  const auto reached = [&] {
    return mode.here && mode.here->step_ns <= pursuit.floor_ns;
  };
  for (int round = 0; round < kLayoutTries && !reached(); ++round) {
    std::vector<FoundSchedule> finds =
        mode.layered
            ? mode.layered->SearchAtPoint(starts, pursuit, outside_)
            : SearchAtPoint(mode.model, orders_, starts, pursuit, outside_);
    int64_t excess = 0;
    bool placed_best = true;
    int tried = 0;
    for (FoundSchedule& found : finds) {
      if (mode.here && found.step_ns >= mode.here->step_ns) break;
      if (mode.layered && tried == kLayeredFinds) break;
      int64_t over = 0;
      const FitLayoutOptions fit = {
          PlaceWithin(task.budget_bytes, pursuit.work), pursuit.floor_ns,
          tried++ < kSlimFinds ? pressure_work : 0, pursuit.seed};
      const std::optional<LaidOutSchedule> placed =
          FitLayout(mode.model, found, fit, outside_, &over);
      if (placed) {
        take(*placed);
        break;
      }
      placed_best = false;
      excess = excess == 0 ? over : std::min(excess, over);
    }
    if (outside_.Interrupted()) return;
    // What lies too high by some bytes is searched again with fewer; often
    // another schedule packs better, so not with as many fewer at once. Once
    // something fits, half way back.
    if (placed_best) {
      if (too_many < 0) return;
      enough = pursuit.target_bytes;
    } else {
      too_many = pursuit.target_bytes;
      unplaced_ns = std::min(unplaced_ns, finds.front().step_ns);
      starts.insert(starts.begin(), finds.front().schedule);
    }
    if (enough >= 0) {
      if (mode.layered && mode.here &&
          mode.here->step_ns <= (1 + kLayeredNegligible) * unplaced_ns) {
        return;
      }
      if (too_many - enough < task.budget_bytes / kNearlySame) return;
      pursuit.target_bytes = enough + (too_many - enough) / 2;
    } else {
      const double step = (mode.layered ? kLayeredRetryStep : kRetryStep) +
                          kRetryGrowth * round;
      excess = std::max(excess, task.budget_bytes / kNearlySame);
      // A find may take fewer bytes than it might have: then fewer than these.
      const int64_t taken_bytes =
          FindLifetimes(mode.model, finds.front().schedule).peak_bytes;
      pursuit.target_bytes =
          std::min(pursuit.target_bytes, taken_bytes) -
          static_cast<int64_t>(1 + step * static_cast<double>(excess));
      // No schedule takes fewer than the bound: at most half the way there.
      pursuit.target_bytes =
          std::max(pursuit.target_bytes,
                   mode.bound_bytes + (too_many - mode.bound_bytes) / 2);
    }
    const double share = mode.here ? kRetryShare : kRetryShareWithoutPlan;
    pursuit.work = static_cast<int64_t>(share * mode.share * task.work);
    pursuit.repair = true;
    ++pursuit.seed;
  }
}

int64_t BudgetBisection::GrainBytes() const {
  return std::max<int64_t>(1, peak_bytes_ / kGrains);
}

bool BudgetBisection::IsSteep() const {
  // Where layers are stitched a search costs much more than its work says.
  if (coarse_layers_ && lower_ != lowest_) return false;
  const SearchMode& asked = *modes_.back();
  return !asked.lower ||
         asked.lower->step_ns > (1 + kSteep) * asked.upper->step_ns;
}

int64_t BudgetBisection::BytesAfterLower() const {
  return IsSteep() ? lower_bytes_ + GrainBytes() : BytesAt(lower_ + 1);
}

std::optional<BudgetBisection::Point> BudgetBisection::NextPoint() const {
  const int number = PointBetween(lower_, upper_);
  if (number != 0) return Point{BytesAt(number), WorkShare(number), number};
  if (!IsSteep()) return std::nullopt;
  if (lower_bytes_ < bound_bytes_ && bound_bytes_ < upper_bytes_) {
    return Point{bound_bytes_, kGrainShare, 0};
  }
  if (upper_bytes_ - lower_bytes_ <= GrainBytes()) return std::nullopt;
  return Point{lower_bytes_ + (upper_bytes_ - lower_bytes_) / 2, kGrainShare,
               0};
}

void BudgetBisection::SearchPoint(const Point& point) {
  const auto seed = static_cast<uint64_t>(
      point.number != 0 ? point.number : kPoints + point.bytes);
  const Task task = {point.bytes,
                     point.share * static_cast<double>(options_.work_limit),
                     options_.seed * kPoints + seed};
  std::vector<const LaidOutSchedule*> others;
  for (const auto& mode : modes_) {
    Search(
        *mode, task,
        mode == modes_.back() ? others : std::vector<const LaidOutSchedule*>());
    if (mode->here) others.push_back(&Timed(*mode));
  }
}

// What the mode found, with the times that it has for the mode asked.
const LaidOutSchedule& BudgetBisection::Timed(SearchMode& mode) const {
  if (!mode.apart_lanes) return *mode.here;
  mode.here_timed = mode.here;
  mode.here_timed->step_ns =
      std::round(FindTimes(modes_.back()->model, mode.here->schedule).step_ns);
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
  const SearchMode& asked = *modes_.back();
  while (!outside_.Interrupted()) {
    if (asked.upper->arena_bytes <= budget_bytes) return &*asked.upper;
    if (lower_searched_ && asked.lower &&
        (budget_bytes < BytesAfterLower() ||
         asked.lower->step_ns <= asked.upper->step_ns)) {
      break;
    }
    const std::optional<Point> point = NextPoint();
    if (!point) break;
    SearchPoint(*point);
    const bool fits = point->bytes <= budget_bytes;
    if (asked.here && asked.here->arena_bytes <= budget_bytes) {
      improved(*asked.here);
    }
    // Without a plan at the point there is none for less.
    if (fits || !asked.here) {
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
    if (modes_.back()->here) {
      GoDown(*point);
    } else {
      GoUp(*point);
    }
  }
}

void BudgetBisection::SearchHarder(int64_t times) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  options_.work_limit =
      options_.work_limit > kMost / times ? kMost : options_.work_limit * times;
  DescendFrom(smallest().arena_bytes);
}

void BudgetBisection::SearchUntilDeadline(
    int64_t budget_bytes,
    const std::function<void(const LaidOutSchedule&)>& improved) {
  SearchMode& asked = *modes_.back();
  asked.share = 1;
  Task task = {budget_bytes, 0, options_.seed};
  // Each round has twice the work of the one before, so that little is lost
  // when the last is interrupted.
  for (task.work = kFirstHurry; !outside_.Interrupted();
       task.work = std::min(2 * task.work, kLastHurry)) {
    Search(asked, task, {});
    ++task.seed;
    if (!asked.here) continue;
    if (!asked.lower || asked.here->step_ns < asked.lower->step_ns) {
      improved(*asked.here);
    }
    asked.lower = asked.here;
    double enough_ns = asked.upper->step_ns;
    if (asked.proof.target_bytes == budget_bytes) {
      enough_ns = std::max(enough_ns, asked.proof.enough_ns);
    }
    if (asked.lower->step_ns <= enough_ns) return;
  }
}

}  // namespace loadline::planner
