// Successive halving: bounds and an estimate for every structure, a short
// search for those with the best estimates, a longer one for the best of these,
// the full search for the best. The estimate of a step time is its operators'
// time plus a price for each byte that keeping everything takes above the
// budget; the price is what the plain step pays in its short search. Tested by
// tests/end_to_end/micro_batches_test.cc and
// tests/end_to_end/choose_structure_test.cc.
#include "tools/pipeline/choose_structure.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/units.h"
#include "tools/pipeline/plan_request.h"

namespace loadline::tools {
namespace {

// Steps of so few nodes are searched in full wherever no bound excludes them.
constexpr size_t kSmallNodes = 400;
// Of larger steps. A step whose operators have to be measured counts as large.
constexpr int kShortSearches = 6;
constexpr int kLongerSearches = 2;
constexpr int64_t kLongerWork = 2'000'000;
constexpr int kSmallestSearches = 4;  // for the smallest budget
// A longer search seldom gains more than this over a short one.
constexpr double kLongerGain = 0.05;
// So many times the time of a plan that more parts or segments do not mend it.
constexpr double kFarSlower = 1.05;
constexpr char kNotFaster[] = "cannot be faster";
constexpr char kNotSearched[] = "not searched";
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

struct Candidate {
  Structure structure;
  StepFlags flags;
  PlannedStep step;
  bool measured = true;    // false: times are those of rates
  int64_t compute_ns = 0;  // every node once: no plan is faster
  int64_t found_ns = kNone;
  bool excluded = false;
  std::string outcome;
};

int64_t ComputeNs(const planner::Problem& problem) {
  int64_t total = 0;
  for (const planner::Node& node : problem.nodes) {
    int64_t least = node.time_ns;
    for (const planner::Variant& variant : node.variants) {
      least = std::min(least, variant.time_ns);
    }
    total += least;
  }
  return total;
}

// The flags with their budget in bytes, as every structure has another peak.
absl::StatusOr<StepFlags> WithBytes(const StepFlags& flags,
                                    const PlannedStep& plain) {
  StepFlags absolute = flags;
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request,
                            ReadPlanRequest(flags.plan, flags.purpose));
  if (!request.budget.has_value() ||
      request.budget->kind != planner::Budget::Kind::kShare) {
    return absolute;
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t bytes,
      RequestedBytes(plain.problem, request, plain.keep_everything));
  absolute.plan.budget = absl::StrCat(
      bytes + ReservedInBudget(plain.problem, request.on_gpu), "B");
  return absolute;
}

bool CannotFit(const absl::Status& status) {
  return ExitCodeFor(status) == kCannotFit;
}

class Chooser {
 public:
  Chooser(const StepFlags& flags, executor::Device& device,
          const std::atomic<bool>* cancel)
      : flags_(flags), device_(device), cancel_(cancel) {}

  absl::StatusOr<PlannedStep> Run(const models::Graph& model,
                                  const BeforeMeasuring& check) {
    LOADLINE_ASSIGN_OR_RETURN(const Structure first, FirstStructure());
    LOADLINE_ASSIGN_OR_RETURN(
        Candidate plain,
        Pose(model, first, WithStructure(flags_, first), check));
    // A share is one of the step in one piece.
    LOADLINE_ASSIGN_OR_RETURN(flags_, WithBytes(flags_, plain.step));
    plain.flags = WithStructure(flags_, first);
    LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request,
                              ReadPlanRequest(flags_.plan, flags_.purpose));
    smallest_ = request.budget.has_value() &&
                request.budget->kind == planner::Budget::Kind::kSmallest;
    if (!smallest_) {
      LOADLINE_ASSIGN_OR_RETURN(budget_bytes_, BytesFor(plain));
    }
    candidates_.push_back(std::move(plain));
    LOADLINE_RETURN_IF_ERROR(smallest_ ? FindSmallest(model)
                                       : FindFastest(model));
    return Result();
  }

 private:
  // The step that is divided least.
  absl::StatusOr<Structure> FirstStructure() const {
    Structure first;
    LOADLINE_ASSIGN_OR_RETURN(const auto parts, MicroBatchesOf(flags_.plan));
    LOADLINE_ASSIGN_OR_RETURN(const auto splits, SplitsOf(flags_.plan));
    first.micro_batches = parts.value_or(1);
    if (splits.has_value()) first.splits = flags_.plan.splits;
    return first;
  }

  absl::StatusOr<Candidate> Pose(const models::Graph& model,
                                 const Structure& structure,
                                 const StepFlags& flags,
                                 const BeforeMeasuring& check) {
    Candidate candidate;
    candidate.structure = structure;
    candidate.flags = flags;
    LOADLINE_ASSIGN_OR_RETURN(candidate.step,
                              PoseGraph(model, flags, device_, cancel_, check));
    candidate.compute_ns = ComputeNs(candidate.step.problem);
    return candidate;
  }

  absl::StatusOr<int64_t> BytesFor(const Candidate& candidate) const {
    LOADLINE_ASSIGN_OR_RETURN(
        const PlanRequest request,
        ReadPlanRequest(candidate.flags.plan, candidate.flags.purpose));
    return RequestedBytes(candidate.step.problem, request,
                          candidate.step.keep_everything);
  }

  // Every other structure that the model permits and that may be faster,
  // without measuring. More parts and segments mostly take longer, so of a
  // large step none is posed whose fewer ones are far slower than a plan.
  absl::Status PoseOthers(const models::Graph& model) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<Structure> possible,
        PossibleStructures(model, flags_, candidates_[0].step));
    const bool prune = !smallest_ && best_ns_ != kNone &&
                       candidates_[0].step.problem.nodes.size() > kSmallNodes;
    int64_t slow_parts = kNone;  // so many and more are far slower
    for (const Structure& structure : possible) {
      if (structure == candidates_[0].structure) continue;
      if (structure.micro_batches >= slow_parts) break;
      LOADLINE_RETURN_IF_ERROR(PoseWithoutMeasuring(model, structure));
      const Candidate& last = candidates_.back();
      if (prune && last.structure == structure &&
          static_cast<double>(last.compute_ns) >=
              kFarSlower * static_cast<double>(best_ns_) &&
          structure.splits == candidates_[0].structure.splits) {
        slow_parts = structure.micro_batches;
      }
    }
    return absl::OkStatus();
  }

  // Adds the structure unless the step does not have it, such as a chain that a
  // part of the batch lacks.
  absl::Status PoseWithoutMeasuring(const models::Graph& model,
                                    const Structure& structure) {
    StepFlags flags = WithStructure(flags_, structure);
    flags.plan.calibrate = false;
    auto candidate = Pose(model, structure, flags, {});
    if (absl::IsFailedPrecondition(candidate.status()) ||
        absl::IsInvalidArgument(candidate.status())) {
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(candidate.status());
    candidate->flags.plan.calibrate = flags_.plan.calibrate;
    candidate->measured = !flags_.plan.calibrate;
    candidates_.push_back(*std::move(candidate));
    return absl::OkStatus();
  }

  // Before a search: no plan for a step whose operators were not measured.
  absl::Status Measure(const models::Graph& model, Candidate& candidate) {
    if (candidate.measured) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(
        candidate, Pose(model, candidate.structure, candidate.flags, {}));
    return absl::OkStatus();
  }

  absl::StatusOr<planner::PeakFloor> FloorOf(const Candidate& candidate) {
    LOADLINE_ASSIGN_OR_RETURN(
        const PlanRequest request,
        ReadPlanRequest(candidate.flags.plan, candidate.flags.purpose));
    return planner::FindPeakFloor(candidate.step.problem, request.options);
  }

  absl::StatusOr<planner::Plan> Search(const Candidate& candidate) {
    return SolveFor(candidate.step.problem, candidate.flags,
                    candidate.step.keep_everything, cancel_);
  }

  absl::Status FindFastest(const models::Graph& model) {
    // Without a budget everything is kept.
    if (flags_.plan.budget.empty()) return SearchFully(candidates_[0]);
    LOADLINE_RETURN_IF_ERROR(TryShortly(model, candidates_[0]));
    LOADLINE_RETURN_IF_ERROR(PoseOthers(model));
    if (candidates_.size() == 1) return SearchFully(candidates_[0]);
    const bool small = AllAreSmall();
    LOADLINE_RETURN_IF_ERROR(SearchShortly(model, small));
    if (!small) LOADLINE_RETURN_IF_ERROR(SearchLonger());
    // The fastest so far first, then those without a plan that need the fewest
    // bytes.
    int searched = 0;
    for (Candidate* candidate : InOrder([](const Candidate& c) {
           const int64_t bytes = c.step.keep_everything.budget_bytes;
           return std::pair(c.found_ns, c.found_ns == kNone ? bytes : 0);
         })) {
      if (candidate->compute_ns >= best_ns_ &&
          candidate->found_ns != best_ns_) {
        if (candidate->found_ns == kNone) candidate->outcome = kNotFaster;
      } else if (!small && best_ns_ != kNone && searched > 0) {
        if (candidate->outcome.empty()) candidate->outcome = "no plan shortly";
      } else {
        LOADLINE_RETURN_IF_ERROR(SearchFully(*candidate));
        ++searched;
      }
    }
    return absl::OkStatus();
  }

  bool AllAreSmall() const {
    return !flags_.plan.calibrate && flags_.plan.time_limit.empty() &&
           std::all_of(candidates_.begin(), candidates_.end(),
                       [](const Candidate& candidate) {
                         return candidate.step.problem.nodes.size() <=
                                kSmallNodes;
                       });
  }

  // The candidates that are left, by rising key.
  template <typename Key>
  std::vector<Candidate*> InOrder(Key key) {
    std::vector<Candidate*> order;
    for (Candidate& candidate : candidates_) {
      if (!candidate.excluded) order.push_back(&candidate);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](const Candidate* a, const Candidate* b) {
                       return key(*a) < key(*b);
                     });
    return order;
  }

  absl::Status SearchShortly(const models::Graph& model, bool small) {
    const Candidate& plain = candidates_[0];
    const auto over = [&](const Candidate& c) {
      return static_cast<double>(std::max<int64_t>(
          0, c.step.keep_everything.budget_bytes - budget_bytes_));
    };
    // Without a plan of the plain step, a byte costs its share of the step.
    const double price =
        plain.found_ns == kNone
            ? static_cast<double>(plain.compute_ns) /
                  static_cast<double>(plain.step.keep_everything.budget_bytes)
            : static_cast<double>(plain.found_ns - plain.compute_ns) /
                  std::max(1.0, over(plain));
    const std::vector<Candidate*> order = InOrder([&](const Candidate& c) {
      return static_cast<double>(c.compute_ns) + price * over(c);
    });
    int searched = 0;
    for (Candidate* candidate : order) {
      if (candidate == &plain) continue;
      if (!small && searched >= kShortSearches) {
        candidate->excluded = best_ns_ != kNone;
        if (candidate->excluded) candidate->outcome = kNotSearched;
        continue;
      }
      LOADLINE_RETURN_IF_ERROR(TryShortly(model, *candidate));
      if (!candidate->excluded) ++searched;
    }
    return absl::OkStatus();
  }

  // A short search unless a bound excludes the candidate.
  absl::Status TryShortly(const models::Graph& model, Candidate& candidate) {
    const auto cannot_be_faster = [&] {
      // The rates of unmeasured operators prove nothing.
      if (!candidate.measured || candidate.compute_ns < best_ns_) return false;
      candidate.excluded = true;
      candidate.outcome = kNotFaster;
      return true;
    };
    if (cannot_be_faster()) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const planner::PeakFloor floor,
                              FloorOf(candidate));
    if (floor.bytes > budget_bytes_) {
      candidate.excluded = true;
      candidate.outcome =
          absl::StrCat("needs at least ", FormatBytes(floor.bytes));
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(Measure(model, candidate));
    if (cannot_be_faster()) return absl::OkStatus();
    return SearchFor(candidate, /*work_limit=*/std::nullopt, "short");
  }

  // The best of the short searches once more: which is best of all.
  absl::Status SearchLonger() {
    int searched = 0;
    const int64_t most_ns =
        best_ns_ == kNone ? kNone
                          : static_cast<int64_t>(static_cast<double>(best_ns_) *
                                                 (1 + kLongerGain));
    const std::vector<Candidate*> order =
        InOrder([](const Candidate& c) { return c.found_ns; });
    if (order.size() < 2 || order[1]->found_ns >= most_ns) {
      return absl::OkStatus();  // the choice is clear
    }
    for (Candidate* candidate : order) {
      if (candidate->found_ns >= most_ns || searched == kLongerSearches) break;
      if (candidate->compute_ns >= best_ns_) continue;
      LOADLINE_RETURN_IF_ERROR(SearchFor(*candidate, kLongerWork, "longer"));
      ++searched;
    }
    return absl::OkStatus();
  }

  // One search of little work. A plan that it finds is a plan too.
  absl::Status SearchFor(Candidate& candidate,
                         std::optional<int64_t> work_limit, const char* what) {
    StepFlags flags = candidate.flags;
    flags.purpose.effort = planner::Effort::kQuick;
    if (work_limit.has_value()) flags.purpose.work_limit = work_limit;
    flags.plan.time_limit.clear();
    auto plan = SolveFor(candidate.step.problem, flags,
                         candidate.step.keep_everything, cancel_);
    if (CannotFit(plan.status())) return absl::OkStatus();
    LOADLINE_RETURN_IF_ERROR(plan.status());
    if (plan->predicted.step_ns > candidate.found_ns) return absl::OkStatus();
    candidate.found_ns = plan->predicted.step_ns;
    candidate.outcome =
        absl::StrCat(FormatNs(candidate.found_ns), " by a ", what, " search");
    candidate.step.plan = *std::move(plan);
    TakeIfFaster(candidate);
    return absl::OkStatus();
  }

  absl::Status SearchFully(Candidate& candidate) {
    auto plan = Search(candidate);
    if (CannotFit(plan.status()) && candidates_.size() > 1) {
      if (candidate.found_ns != kNone) return absl::OkStatus();
      candidate.outcome = "no plan found";
      const bool plain = &candidate == &candidates_[0];
      refusal_ = plain || refusal_.ok() ? plan.status() : refusal_;
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(plan.status());
    // At equal times the longer search has the better bounds.
    if (plan->predicted.step_ns <= candidate.found_ns) {
      candidate.found_ns = plan->predicted.step_ns;
      candidate.step.plan = *std::move(plan);
    }
    candidate.outcome = FormatNs(candidate.found_ns);
    TakeIfFaster(candidate);
    return absl::OkStatus();
  }

  void TakeIfFaster(Candidate& candidate) {
    if (candidate.found_ns >= best_ns_) return;
    best_ns_ = candidate.found_ns;
    best_ = &candidate;
  }

  // The fewest bytes; of plans with equally many, the fastest.
  absl::Status FindSmallest(const models::Graph& model) {
    LOADLINE_RETURN_IF_ERROR(PoseOthers(model));
    const bool small = AllAreSmall();
    std::vector<std::pair<int64_t, Candidate*>> by_floor;
    for (Candidate& candidate : candidates_) {
      LOADLINE_ASSIGN_OR_RETURN(const planner::PeakFloor floor,
                                FloorOf(candidate));
      by_floor.emplace_back(floor.bytes, &candidate);
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
      LOADLINE_RETURN_IF_ERROR(Measure(model, *candidate));
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
      if (!refusal_.ok()) return refusal_;
      return Search(candidates_[0]).status();  // why nothing fits
    }
    PlannedStep step = std::move(best_->step);
    for (const Candidate& candidate : candidates_) {
      step.tried.push_back({candidate.structure.micro_batches,
                            candidate.outcome, candidate.structure.splits});
    }
    return step;
  }

  StepFlags flags_;
  executor::Device& device_;
  const std::atomic<bool>* cancel_;
  bool smallest_ = false;
  int64_t budget_bytes_ = 0;
  std::deque<Candidate> candidates_;  // best_ is one of them
  Candidate* best_ = nullptr;
  int64_t best_ns_ = kNone;
  absl::Status refusal_;
};

}  // namespace

absl::StatusOr<PlannedStep> PlanBestStructure(const StepFlags& flags,
                                              executor::Device& device,
                                              const std::atomic<bool>* cancel,
                                              const BeforeMeasuring& check) {
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported model,
                            ImportModel(flags.model, /*training=*/true));
  return Chooser(flags, device, cancel).Run(model.graph, check);
}

}  // namespace loadline::tools
