// Successive halving: bounds and an estimate for every structure, a short
// search for those with the best estimates, the full search for the best of
// these. Where that finds no plan, structures that need
// fewer and fewer bytes follow. Tested by
// tests/end_to_end/micro_batches_test.cc and
// tests/end_to_end/choose_structure_test.cc.
#include "tools/pipeline/choose_structure.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/units.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/structure_candidates.h"

namespace loadline::tools {
namespace {

// Steps of so few nodes are searched in full wherever no bound excludes them.
constexpr size_t kSmallNodes = 400;
// Of larger steps. A step whose operators have to be measured counts as large.
constexpr int kShortSearches = 2;
constexpr int kSmallestSearches = 4;  // for the smallest budget
constexpr double kMisjudged = 0.02;   // by a short search
// So many times the time of a plan that segments do not mend it.
constexpr double kFarSlower = 1.05;
// Where the full search finds no plan: the share of its step's bytes that the
// next one may have.
constexpr double kRoomier = 0.7;

constexpr char kNotFaster[] = "cannot be faster";
constexpr char kNotSearched[] = "not searched";
constexpr char kNoPlan[] = "no plan found";

bool CannotFit(const absl::Status& status) {
  return ExitCodeFor(status) == kCannotFit;
}

class Chooser {
 public:
  Chooser(StructureCandidates candidates, const std::atomic<bool>* cancel)
      : candidates_(std::move(candidates)), cancel_(cancel) {}

  absl::StatusOr<PlannedStep> Run() {
    if (candidates_.plain().flags.plan.budget.empty()) {
      // Without a budget everything is kept.
      LOADLINE_RETURN_IF_ERROR(SearchFully(candidates_.plain()));
    } else if (candidates_.smallest()) {
      LOADLINE_RETURN_IF_ERROR(FindSmallest());
    } else {
      LOADLINE_RETURN_IF_ERROR(FindFastest());
    }
    return Result();
  }

 private:
  absl::Status FindFastest() {
    Candidate& plain = candidates_.plain();
    LOADLINE_RETURN_IF_ERROR(TryShortly(plain));
    const bool large = plain.step.problem.nodes.size() > kSmallNodes;
    LOADLINE_RETURN_IF_ERROR(candidates_.PoseUpTo(
        large && !plain.excluded ? ScaledNs(KeyOf(plain), kFarSlower)
                                 : kNoTime));
    if (AllAreSmall()) return SearchAll();
    LOADLINE_RETURN_IF_ERROR(SearchShortly());
    Candidate* first = MostPromising();
    if (first != nullptr) LOADLINE_RETURN_IF_ERROR(SearchFully(*first));
    if (best_ != nullptr) return absl::OkStatus();
    return FindAny(first == nullptr ? plain.KeepBytes() : first->KeepBytes());
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
           std::all_of(candidates_.all().begin(), candidates_.all().end(),
                       [](const Candidate& candidate) {
                         return candidate.step.problem.nodes.size() <=
                                kSmallNodes;
                       });
  }

  static int64_t ScaledNs(double ns, double factor) {
    return static_cast<int64_t>(ns * factor);
  }

  // The step time that was found, or the estimate of it.
  double KeyOf(const Candidate& candidate) const {
    return candidate.HasPlan() ? static_cast<double>(candidate.found_ns)
                               : candidates_.EstimateNs(candidate);
  }

  // The candidates that no bound excludes, the fastest first.
  std::vector<Candidate*> InOrder() {
    std::vector<Candidate*> order;
    for (Candidate& candidate : candidates_.all()) {
      if (!candidate.excluded) order.push_back(&candidate);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](const Candidate* a, const Candidate* b) {
                       return KeyOf(*a) < KeyOf(*b);
                     });
    return order;
  }

  absl::Status SearchShortly() {
    int searched = 0;
    for (Candidate* candidate : InOrder()) {
      if (candidate == &candidates_.plain()) continue;
      if (searched >= kShortSearches) {
        candidate->outcome = kNotSearched;
        if (best_ != nullptr) candidate->excluded = true;
        continue;
      }
      LOADLINE_RETURN_IF_ERROR(TryShortly(*candidate));
      if (!candidate->excluded) ++searched;
    }
    return absl::OkStatus();
  }

  // A short search unless a bound excludes the candidate.
  absl::Status TryShortly(Candidate& candidate) {
    if (ExcludeAsSlow(candidate)) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const int64_t floor_bytes,
                              candidates_.FloorBytes(candidate));
    if (floor_bytes > candidates_.budget_bytes()) {
      candidate.excluded = true;
      candidate.outcome =
          absl::StrCat("needs at least ", FormatBytes(floor_bytes));
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(candidates_.Measure(candidate));
    if (ExcludeAsSlow(candidate)) return absl::OkStatus();
    return SearchQuickly(candidate);
  }

  // The rates of unmeasured operators prove nothing.
  bool ExcludeAsSlow(Candidate& candidate) const {
    if (!candidate.measured || candidate.compute_ns < best_ns_) return false;
    candidate.excluded = true;
    candidate.outcome = kNotFaster;
    return true;
  }

  // What to search in full. Short searches misjudge by some percent, so the
  // plain step is preferred unless the other one is faster than it can be.
  Candidate* MostPromising() {
    Candidate& plain = candidates_.plain();
    std::vector<Candidate*> order = InOrder();
    // What has a plan goes before what only looks fast.
    std::stable_partition(order.begin(), order.end(),
                          [](const Candidate* c) { return c->HasPlan(); });
    if (order.empty()) return nullptr;
    const bool may_be_best =
        !plain.excluded && plain.compute_ns < best_ns_ &&
        KeyOf(plain) <= KeyOf(*order[0]) * (1 + kMisjudged);
    return may_be_best ? &plain : order[0];
  }

  // Nothing was found for what looked best: structures of fewer and fewer
  // bytes, until one has a plan; it is searched in full.
  absl::Status FindAny(int64_t failed_bytes) {
    LOADLINE_RETURN_IF_ERROR(candidates_.PoseUpTo(kNoTime));
    double most_bytes = static_cast<double>(failed_bytes) * kRoomier;
    Candidate* last = nullptr;
    while (best_ == nullptr) {
      Candidate* next = nullptr;
      for (Candidate* candidate : InOrder()) {
        if (static_cast<double>(candidate->KeepBytes()) <= most_bytes) {
          next = candidate;
          break;
        }
      }
      if (next == nullptr) break;
      last = next;
      most_bytes = static_cast<double>(next->KeepBytes()) * kRoomier;
      LOADLINE_RETURN_IF_ERROR(TryShortly(*next));
    }
    // The one that needs the fewest bytes, where no short search found a plan.
    Candidate* chosen = best_ != nullptr ? best_ : last;
    return chosen == nullptr || chosen->excluded ? absl::OkStatus()
                                                 : SearchFully(*chosen);
  }

  absl::StatusOr<planner::Plan> Search(const Candidate& candidate) const {
    return SolveFor(candidate.step.problem, candidate.flags,
                    candidate.step.keep_everything, cancel_);
  }

  // One search of little work. A plan that it finds is a plan too.
  absl::Status SearchQuickly(Candidate& candidate) {
    StepFlags flags = candidate.flags;
    flags.purpose.effort = planner::Effort::kQuick;
    flags.plan.time_limit.clear();
    auto plan = SolveFor(candidate.step.problem, flags,
                         candidate.step.keep_everything, cancel_);
    if (CannotFit(plan.status())) {
      if (!candidate.HasPlan()) candidate.outcome = "no plan shortly";
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(plan.status());
    if (plan->predicted.step_ns > candidate.found_ns) return absl::OkStatus();
    Take(candidate, *std::move(plan));
    candidate.outcome =
        absl::StrCat(FormatNs(candidate.found_ns), " by a short search");
    return absl::OkStatus();
  }

  absl::Status SearchFully(Candidate& candidate) {
    LOADLINE_RETURN_IF_ERROR(candidates_.Measure(candidate));
    auto plan = Search(candidate);
    const bool alone =
        candidates_.all().size() == 1 && candidates_.Rest().empty();
    if (CannotFit(plan.status()) && !alone) {
      if (candidate.HasPlan()) return absl::OkStatus();
      candidate.excluded = true;
      candidate.outcome = kNoPlan;
      const bool plain = &candidate == &candidates_.plain();
      if (plain || refusal_.ok()) refusal_ = plan.status();
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

  void Take(Candidate& candidate, planner::Plan plan) {
    candidate.found_ns = plan.predicted.step_ns;
    candidate.step.plan = std::move(plan);
    if (candidate.found_ns >= best_ns_) return;
    best_ns_ = candidate.found_ns;
    best_ = &candidate;
  }

  // The fewest bytes; of plans with equally many, the fastest.
  absl::Status FindSmallest() {
    LOADLINE_RETURN_IF_ERROR(candidates_.PoseUpTo(kNoTime));
    const bool small = AllAreSmall();
    std::vector<std::pair<int64_t, Candidate*>> by_floor;
    for (Candidate& candidate : candidates_.all()) {
      LOADLINE_ASSIGN_OR_RETURN(const int64_t floor_bytes,
                                candidates_.FloorBytes(candidate));
      by_floor.emplace_back(floor_bytes, &candidate);
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
      LOADLINE_ASSIGN_OR_RETURN(candidate->step.plan, Search(*candidate));
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
    if (best_ == nullptr) {
      if (!refusal_.ok()) return RefusalOfAll();
      return Search(candidates_.plain()).status();  // why nothing fits
    }
    PlannedStep step = std::move(best_->step);
    for (const Candidate& candidate : candidates_.all()) {
      step.tried.push_back({candidate.structure.micro_batches,
                            candidate.outcome, candidate.structure.splits});
    }
    for (const Structure& structure : candidates_.Rest()) {
      step.tried.push_back(
          {structure.micro_batches, kNotSearched, structure.splits});
    }
    return step;
  }

  // The figures of the refusal are of one structure.
  absl::Status RefusalOfAll() {
    absl::Status all(
        refusal_.code(),
        absl::StrCat(
            refusal_.message(),
            "; this is of the step in one piece, and no plan was found "
            "for the other structures that were tried"));
    refusal_.ForEachPayload(
        [&](absl::string_view type, const absl::Cord& payload) {
          all.SetPayload(type, payload);
        });
    return all;
  }

  StructureCandidates candidates_;
  const std::atomic<bool>* cancel_;
  Candidate* best_ = nullptr;  // of `candidates_`
  int64_t best_ns_ = kNoTime;
  absl::Status refusal_;
};

}  // namespace

absl::StatusOr<PlannedStep> PlanBestStructure(const StepFlags& flags,
                                              executor::Device& device,
                                              const std::atomic<bool>* cancel,
                                              const BeforeMeasuring& check) {
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported model,
                            ImportModel(flags.model, /*training=*/true));
  LOADLINE_ASSIGN_OR_RETURN(
      StructureCandidates candidates,
      StructureCandidates::Create(model.graph, flags, device, cancel, check));
  return Chooser(std::move(candidates), cancel).Run();
}

}  // namespace loadline::tools
