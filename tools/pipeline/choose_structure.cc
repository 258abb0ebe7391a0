// Bounds and an estimate for every structure, and full searches of those with
// the best estimates. Where one has no plan, structures with more room follow.
// Tested by
// tests/end_to_end/micro_batches_test.cc and
// tests/end_to_end/choose_structure_test.cc.
#include "tools/pipeline/choose_structure.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/units.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/structure_candidates.h"

namespace loadline::tools {
namespace {

// How much is searched where the plain step has so few nodes, and where it has
// more.
struct Effort {
  int searches = 0;  // in full at most
  // The largest estimate that is worth one, in times of the best plan: where a
  // short search found a plan, and where it found none.
  double worth = 0;
  double promise = 0;
  // Of estimates without a plan that are so many times the best of them at
  // most, that of the structure with the fewest nodes is searched: such a
  // search gets further.
  double alike = 0;
};
constexpr Effort kSmallStep = {4, 1.1, 1, 1.2};
constexpr Effort kLargeStep = {2, 0.98, 0.75, 1.1};
constexpr int kSmallestSearches = 4;  // for the smallest budget
// So many times the time of a plan that segments do not mend it.
constexpr double kFarSlower = 1.05;
// Where the budget grants this share of the bytes, full searches find plans.
constexpr double kAmpleShare = 0.3;
// Where no plan was found, the next structure has so many times the share.
constexpr double kRoomier = 1.3;
// Estimates that rest on a plan of so many times its operators' time promise
// too much: it copies nearly everything.
constexpr double kFarOff = 4;
// With a time limit, a full search ends after this share of what is left.
constexpr double kFullTimeShare = 0.6;

constexpr char kNotFaster[] = "cannot be faster";
constexpr char kNotSearched[] = "not searched";
constexpr char kNoPlan[] = "no plan found";
constexpr char kNoPlanShortly[] = "no plan in a short search";

bool CannotFit(const absl::Status& status) {
  return ExitCodeFor(status) == kCannotFit;
}

class Chooser {
 public:
  Chooser(StructureCandidates candidates, const std::atomic<bool>* cancel)
      : candidates_(std::move(candidates)), cancel_(cancel) {}

  absl::StatusOr<PlannedStep> Run() {
    const absl::Status end = Choose();
    // What was found before the user or the clock said stop is the result.
    const bool stopped =
        absl::IsCancelled(end) || absl::IsDeadlineExceeded(end);
    if (!stopped || best_ == nullptr) LOADLINE_RETURN_IF_ERROR(end);
    return Result();
  }

 private:
  absl::Status Choose() {
    // Without a budget everything is kept.
    if (candidates_.plain().flags.plan.budget.empty()) {
      return SearchFully(candidates_.plain());
    }
    if (candidates_.smallest()) return FindSmallest();
    LOADLINE_RETURN_IF_ERROR(FindFastest());
    return best_ == nullptr ? TryLeanest() : absl::OkStatus();
  }

  absl::Status FindFastest() {
    LOADLINE_RETURN_IF_ERROR(candidates_.List());
    Candidate& plain = candidates_.plain();
    LOADLINE_RETURN_IF_ERROR(IsSearchedFirst(plain) ? SearchPlain()
                                                    : TryShortly(plain));
    const bool found = plain.HasPlan();
    LOADLINE_RETURN_IF_ERROR(candidates_.PoseUpTo(
        plain.IsLarge() && found
            ? static_cast<double>(plain.found_ns) * kFarSlower
            : std::numeric_limits<double>::infinity()));
    if (AllAreSmall()) return SearchAll();
    LOADLINE_RETURN_IF_ERROR(
        candidates_.LearnOverheads(found ? &plain.step.plan : nullptr));
    return SearchByEstimate(plain.IsLarge() ? kLargeStep : kSmallStep);
  }

  // A full search of a large step takes about as long as a short one that finds
  // no plan easily, and its plan excludes more structures before they are
  // posed. With a time limit something must be left for the others.
  static bool IsSearchedFirst(const Candidate& plain) {
    return plain.IsLarge() && plain.flags.plan.time_limit.empty();
  }

  // Full searches of the structures with the best estimates. Where a plan may
  // be hard to find, a short search comes first; where none is found,
  // structures to which the budget grants more of their bytes follow.
  absl::Status SearchByEstimate(const Effort& effort) {
    Candidate& plain = candidates_.plain();
    if (plain.HasPlan() && !plain.searched) {
      LOADLINE_RETURN_IF_ERROR(SearchPlain());
      candidates_.LearnOverhead(plain.step.plan);
    }
    int searches = plain.searched ? 1 : 0;
    double least_share = 0;
    Candidate* roomiest = nullptr;
    for (Candidate* next = Next(least_share, effort.worth);
         next != nullptr && (searches < effort.searches || best_ == nullptr);
         next = Next(least_share, effort.worth)) {
      const double share = candidates_.Share(*next);
      if (!next->tried) {
        // The times may be measured then, and others be faster.
        LOADLINE_RETURN_IF_ERROR(share < kAmpleShare ? TryShortly(*next)
                                                     : Prepare(*next));
        continue;
      }
      next->searched = true;
      if (next->HasPlan() || share >= kAmpleShare) {
        ++searches;
        LOADLINE_RETURN_IF_ERROR(SearchFully(*next));
      } else if (roomiest == nullptr || share > candidates_.Share(*roomiest)) {
        roomiest = next;
      }
      if (!next->HasPlan()) least_share = share * kRoomier;
    }
    if (best_ == nullptr) {
      return roomiest == nullptr ? absl::OkStatus() : SearchFully(*roomiest);
    }
    for (; searches < effort.searches; ++searches) {
      Candidate* promising = MostPromising(effort);
      if (promising == nullptr) break;
      LOADLINE_RETURN_IF_ERROR(SearchOnce(*promising));
    }
    return absl::OkStatus();
  }

  // Of the structures without a plan, one that promises to be faster.
  Candidate* MostPromising(const Effort& effort) {
    if (static_cast<double>(best_ns_) >
        static_cast<double>(best_->compute_ns) * kFarOff) {
      return nullptr;
    }
    std::vector<Candidate*> order = InOrder();
    std::erase_if(
        order, [](const Candidate* candidate) { return candidate->HasPlan(); });
    if (order.empty() || EstimateNs(*order.front()) >
                             static_cast<double>(best_ns_) * effort.promise) {
      return nullptr;
    }
    const double most_ns = EstimateNs(*order.front()) * effort.alike;
    std::erase_if(order, [&](const Candidate* candidate) {
      return EstimateNs(*candidate) > most_ns;
    });
    return *std::min_element(
        order.begin(), order.end(), [](const Candidate* a, const Candidate* b) {
          return a->step.problem.nodes.size() < b->step.problem.nodes.size();
        });
  }

  // In full unless a bound excludes it. No other choice is then slower than the
  // plain step, and the estimates of the others rest on a good plan.
  absl::Status SearchPlain() {
    Candidate& plain = candidates_.plain();
    if (!plain.tried) LOADLINE_RETURN_IF_ERROR(Prepare(plain));
    if (plain.excluded) return absl::OkStatus();
    plain.searched = true;
    return SearchFully(plain);
  }

  // What to search next: the best estimate that may beat the best plan.
  Candidate* Next(double least_share, double worth) {
    Candidate* next = nullptr;
    for (Candidate& candidate : candidates_.all()) {
      if (candidate.excluded || candidate.searched ||
          candidates_.Share(candidate) < least_share) {
        continue;
      }
      if (next == nullptr || EstimateNs(candidate) < EstimateNs(*next)) {
        next = &candidate;
      }
    }
    const bool may_be_best =
        next != nullptr &&
        (!searched_fully_ || best_ == nullptr ||
         EstimateNs(*next) <= static_cast<double>(best_ns_) * worth);
    return may_be_best ? next : nullptr;
  }

  // Every structure that no bound excludes, in full.
  absl::Status SearchAll() {
    for (Candidate& candidate : candidates_.all()) {
      if (&candidate == &candidates_.plain()) continue;  // was tried
      LOADLINE_RETURN_IF_ERROR(TryShortly(candidate));
    }
    for (Candidate* candidate : InOrder()) {
      if (candidate->compute_ns >= best_ns_ && candidate != best_) {
        if (!candidate->HasPlan()) candidate->outcome = kNotFaster;
        continue;
      }
      LOADLINE_RETURN_IF_ERROR(SearchFully(*candidate));
    }
    return absl::OkStatus();
  }

  bool AllAreSmall() {
    const PlanFlags& flags = candidates_.plain().flags.plan;
    return !flags.calibrate && flags.time_limit.empty() &&
           candidates_.Rest().empty() &&
           std::all_of(
               candidates_.all().begin(), candidates_.all().end(),
               [](const Candidate& candidate) { return !candidate.IsLarge(); });
  }

  // The step time that was found, or a guess of what a full search finds.
  double EstimateNs(const Candidate& candidate) const {
    const double guess = candidates_.EstimateNs(candidate);
    return candidate.HasPlan()
               ? std::min(guess, static_cast<double>(candidate.found_ns))
               : guess;
  }

  // The candidates that no bound excludes, the fastest first.
  std::vector<Candidate*> InOrder() {
    std::vector<Candidate*> order;
    for (Candidate& candidate : candidates_.all()) {
      if (!candidate.excluded) order.push_back(&candidate);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](const Candidate* a, const Candidate* b) {
                       return EstimateNs(*a) < EstimateNs(*b);
                     });
    return order;
  }

  // Measures the candidate unless a bound excludes it.
  absl::Status Prepare(Candidate& candidate) {
    candidate.tried = true;
    if (ExcludeAsSlow(candidate)) return absl::OkStatus();
    if (candidate.floor_bytes > candidates_.budget_bytes()) {
      candidate.excluded = true;
      candidate.outcome =
          absl::StrCat("needs at least ", FormatBytes(candidate.floor_bytes));
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(candidates_.Measure(candidate));
    candidate.tried = true;
    ExcludeAsSlow(candidate);
    return absl::OkStatus();
  }

  // A short search unless a bound excludes the candidate.
  absl::Status TryShortly(Candidate& candidate) {
    LOADLINE_RETURN_IF_ERROR(Prepare(candidate));
    return candidate.excluded ? absl::OkStatus() : SearchQuickly(candidate);
  }

  // The rates of unmeasured operators prove nothing.
  bool ExcludeAsSlow(Candidate& candidate) const {
    if (!candidate.measured || candidate.compute_ns < best_ns_) return false;
    candidate.excluded = true;
    candidate.outcome = kNotFaster;
    return true;
  }

  // `share`: of the time that is left, if it is limited.
  absl::StatusOr<planner::Plan> Search(const Candidate& candidate,
                                       double share) const {
    return SolveFor(candidate.step.problem,
                    candidates_.InTime(candidate, share),
                    candidate.step.keep_everything, cancel_);
  }

  // Of little work. Beside a plan, one that copies nearly everything is not
  // worth constructing: in large steps that takes minutes.
  absl::StatusOr<planner::Plan> SearchShortly(
      const Candidate& candidate) const {
    return SearchOnceFor(candidates_.ForShortSearch(candidate), candidate);
  }

  absl::StatusOr<planner::Plan> SearchOnceFor(
      const StepFlags& flags, const Candidate& candidate) const {
    LOADLINE_ASSIGN_OR_RETURN(PlanRequest request,
                              ReadPlanRequest(flags.plan, flags.purpose));
    if (best_ != nullptr && candidate.IsLarge()) {
      request.options.allow_smallest_start = false;
      request.options.allow_retries = false;
    }
    return SolveFor(candidate.step.problem, request,
                    candidate.step.keep_everything, cancel_);
  }

  // One search of little work. A plan that it finds is a plan too.
  absl::Status SearchQuickly(Candidate& candidate) {
    const int64_t before_ns = candidate.found_ns;
    LOADLINE_RETURN_IF_ERROR(
        TakeFound(candidate, SearchShortly(candidate), kNoPlanShortly));
    if (candidate.found_ns < before_ns) {
      absl::StrAppend(&candidate.outcome, " in a short search");
    }
    return absl::OkStatus();
  }

  // The plan of a search that may have found none, unless there is a faster
  // one.
  absl::Status TakeFound(Candidate& candidate,
                         absl::StatusOr<planner::Plan> plan,
                         absl::string_view without) {
    if (CannotFit(plan.status()) || absl::IsDeadlineExceeded(plan.status())) {
      if (!candidate.HasPlan()) candidate.outcome = std::string(without);
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(plan.status());
    if (plan->predicted.step_ns >= candidate.found_ns) return absl::OkStatus();
    Take(candidate, *std::move(plan));
    candidate.outcome = FormatNs(candidate.found_ns);
    return absl::OkStatus();
  }

  absl::Status SearchFully(Candidate& candidate) {
    LOADLINE_RETURN_IF_ERROR(candidates_.Measure(candidate));
    searched_fully_ = true;
    const bool alone = IsAlone();
    auto plan = Search(candidate, alone ? 1 : kFullTimeShare);
    if (!alone &&
        (CannotFit(plan.status()) || absl::IsDeadlineExceeded(plan.status()))) {
      if (candidate.HasPlan()) return absl::OkStatus();
      candidate.excluded = true;
      candidate.outcome = kNoPlan;
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(plan.status());
    // At equal times the longer search has the better bounds.
    if (plan->predicted.step_ns <= candidate.found_ns) {
      Take(candidate, *std::move(plan));
    }
    candidate.outcome = FormatNs(candidate.found_ns);
    return absl::OkStatus();
  }

  // As much work as a full search, without what follows where it finds no plan.
  absl::Status SearchOnce(Candidate& candidate) {
    LOADLINE_RETURN_IF_ERROR(Prepare(candidate));
    if (candidate.excluded) return absl::OkStatus();
    LOADLINE_RETURN_IF_ERROR(TakeFound(
        candidate, SearchOnceFor(candidates_.InTime(candidate, 1), candidate),
        kNoPlan));
    if (!candidate.HasPlan()) candidate.excluded = true;
    return absl::OkStatus();
  }

  bool IsAlone() {
    return candidates_.all().size() == 1 && candidates_.Rest().empty();
  }

  // No plan was found. The structure that may need the fewest bytes either has
  // one, or says what would: no structure has a lower bound.
  absl::Status TryLeanest() {
    std::deque<Candidate>& all = candidates_.all();
    Candidate& leanest = *std::min_element(
        all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
          return a.floor_bytes < b.floor_bytes;
        });
    if (leanest.floor_bytes <= candidates_.budget_bytes()) {
      LOADLINE_RETURN_IF_ERROR(candidates_.Measure(leanest));
    }
    auto plan = SearchShortly(leanest);
    if (CannotFit(plan.status()) && !IsAlone()) {
      return Appended(
          plan.status(),
          absl::StrCat(
              "; this is of '", leanest.step.problem.name,
              "', which has the lowest bound of all structures tried"));
    }
    LOADLINE_RETURN_IF_ERROR(plan.status());
    Take(leanest, *std::move(plan));
    leanest.outcome = FormatNs(leanest.found_ns);
    return absl::OkStatus();
  }

  void Take(Candidate& candidate, planner::Plan plan) {
    candidate.found_ns = plan.predicted.step_ns;
    candidate.step.plan = std::move(plan);
    if (candidate.found_ns >= best_ns_) return;
    best_ns_ = candidate.found_ns;
    best_ = &candidate;
  }

  // The fewest bytes; of plans with equally many, the fastest.
  absl::Status FindSmallest() {
    LOADLINE_RETURN_IF_ERROR(
        candidates_.PoseUpTo(static_cast<double>(kNoTime)));
    const bool small = AllAreSmall();
    std::vector<std::pair<int64_t, Candidate*>> by_floor;
    for (Candidate& candidate : candidates_.all()) {
      by_floor.emplace_back(candidate.floor_bytes, &candidate);
    }
    std::stable_sort(
        by_floor.begin(), by_floor.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    int searched = 0;
    for (auto& [floor_bytes, candidate] : by_floor) {
      if (best_ != nullptr && floor_bytes >= best_->step.plan.arena_bytes) {
        candidate->outcome =
            absl::StrCat("needs at least ", FormatBytes(floor_bytes));
        continue;
      }
      if (!small && searched == kSmallestSearches) {
        candidate->outcome = kNotSearched;
        continue;
      }
      LOADLINE_RETURN_IF_ERROR(candidates_.Measure(*candidate));
      const double share =
          1.0 / (kSmallestSearches - searched % kSmallestSearches);
      LOADLINE_ASSIGN_OR_RETURN(candidate->step.plan,
                                Search(*candidate, share));
      ++searched;
      candidate->outcome = FormatBytes(candidate->step.plan.arena_bytes);
      if (best_ == nullptr || IsSmaller(*candidate, *best_)) best_ = candidate;
    }
    return absl::OkStatus();
  }

  static bool IsSmaller(const Candidate& a, const Candidate& b) {
    const planner::Plan& p = a.step.plan;
    const planner::Plan& q = b.step.plan;
    return std::pair(p.arena_bytes, p.predicted.step_ns) <
           std::pair(q.arena_bytes, q.predicted.step_ns);
  }

  absl::StatusOr<PlannedStep> Result() {
    PlannedStep step = std::move(best_->step);
    for (Candidate& candidate : candidates_.all()) {
      if (candidate.outcome.empty()) candidate.outcome = kNotSearched;
      step.tried.push_back({candidate.structure.micro_batches,
                            candidate.outcome, candidate.structure.splits});
    }
    for (const Structure& structure : candidates_.Rest()) {
      step.tried.push_back(
          {structure.micro_batches, kNotSearched, structure.splits});
    }
    return step;
  }

  StructureCandidates candidates_;
  const std::atomic<bool>* cancel_;
  Candidate* best_ = nullptr;  // of `candidates_`
  int64_t best_ns_ = kNoTime;
  bool searched_fully_ = false;  // any of them
};

}  // namespace

absl::StatusOr<PlannedStep> PlanBestStructure(const StepFlags& flags,
                                              executor::Device& device,
                                              const std::atomic<bool>* cancel,
                                              const BeforeMeasuring& check) {
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported model, ImportToTrain(flags));
  LOADLINE_ASSIGN_OR_RETURN(
      StructureCandidates candidates,
      StructureCandidates::Create(model.graph, flags, device, cancel, check));
  return Chooser(std::move(candidates), cancel).Run();
}

}  // namespace loadline::tools
