// Bounds first, then a short search of each structure that is left, then full
// searches from the fastest one on. Tested by
// tests/end_to_end/micro_batches_test.cc.
#include "tools/pipeline/choose_structure.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/micro_batches.h"
#include "passes/cut_batch.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "spdlog/spdlog.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/units.h"
#include "tools/pipeline/plan_request.h"

namespace loadline::tools {
namespace {

constexpr int64_t kMostParts = 64;
constexpr size_t kMostNodes = 20'000;
// Steps of so few nodes are searched in full wherever no bound excludes them.
constexpr size_t kSmallNodes = 1'500;
constexpr int kFullSearches = 2;  // of larger steps

constexpr char kNotFaster[] = "cannot be faster";
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

struct Candidate {
  int64_t parts = 1;
  StepFlags flags;
  PlannedStep step;
  int64_t compute_ns = 0;  // every node once: no plan is faster
  int64_t short_ns = kNone;
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
    LOADLINE_ASSIGN_OR_RETURN(
        Candidate plain, Pose(model, WithMicroBatches(flags_, 1), 1, check));
    LOADLINE_ASSIGN_OR_RETURN(flags_, WithBytes(flags_, plain.step));
    plain.flags = WithMicroBatches(flags_, 1);
    candidates_.push_back(std::move(plain));
    LOADLINE_RETURN_IF_ERROR(PoseOthers(model));
    LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request,
                              ReadPlanRequest(flags_.plan, flags_.purpose));
    const bool smallest =
        request.budget.has_value() &&
        request.budget->kind == planner::Budget::Kind::kSmallest;
    LOADLINE_RETURN_IF_ERROR(smallest ? FindSmallest() : FindFastest());
    return Result();
  }

 private:
  absl::StatusOr<Candidate> Pose(const models::Graph& model,
                                 const StepFlags& flags, int64_t parts,
                                 const BeforeMeasuring& check) {
    Candidate candidate;
    candidate.parts = parts;
    candidate.flags = flags;
    LOADLINE_ASSIGN_OR_RETURN(candidate.step,
                              PoseGraph(model, flags, device_, cancel_, check));
    candidate.compute_ns = ComputeNs(candidate.step.problem);
    return candidate;
  }

  // Every other structure that the model permits.
  absl::Status PoseOthers(const models::Graph& model) {
    // Everything is kept without a budget: nothing is faster.
    if (flags_.plan.budget.empty()) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<int64_t> possible,
        PossibleMicroBatches(model, flags_, candidates_[0].step));
    for (const int64_t parts : possible) {
      if (parts == 1) continue;
      auto candidate = Pose(model, WithMicroBatches(flags_, parts), parts, {});
      if (absl::IsFailedPrecondition(candidate.status())) continue;
      LOADLINE_RETURN_IF_ERROR(candidate.status());
      candidates_.push_back(*std::move(candidate));
    }
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

  absl::Status FindFastest() {
    LOADLINE_RETURN_IF_ERROR(ExcludeByFloor());
    if (candidates_.size() == 1) return SearchFully(candidates_[0]);
    for (Candidate& candidate : candidates_) {
      if (candidate.excluded) continue;
      // A plan that a short search finds is a plan too.
      if (candidate.compute_ns >= best_ns_) {
        candidate.excluded = true;
        candidate.outcome = kNotFaster;
        continue;
      }
      LOADLINE_RETURN_IF_ERROR(SearchShort(candidate));
    }
    // The fastest by the short search first, then those that it found none for.
    std::vector<Candidate*> order;
    bool small = true;
    for (Candidate& candidate : candidates_) {
      if (candidate.excluded) continue;
      order.push_back(&candidate);
      small = small && candidate.step.problem.nodes.size() <= kSmallNodes;
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Candidate* a, const Candidate* b) {
                       return a->short_ns < b->short_ns;
                     });
    int searched = 0;
    for (Candidate* candidate : order) {
      const bool found = best_ns_ != kNone;
      if (candidate->compute_ns >= best_ns_) {
        if (candidate->outcome.empty()) candidate->outcome = kNotFaster;
      } else if (!small && found && searched >= kFullSearches) {
        if (candidate->outcome.empty()) candidate->outcome = "no plan shortly";
      } else {
        LOADLINE_RETURN_IF_ERROR(SearchFully(*candidate));
        ++searched;
      }
    }
    return absl::OkStatus();
  }

  absl::Status ExcludeByFloor() {
    if (candidates_.size() == 1) return absl::OkStatus();
    for (Candidate& candidate : candidates_) {
      LOADLINE_ASSIGN_OR_RETURN(
          const PlanRequest request,
          ReadPlanRequest(candidate.flags.plan, candidate.flags.purpose));
      LOADLINE_ASSIGN_OR_RETURN(const int64_t budget_bytes,
                                RequestedBytes(candidate.step.problem, request,
                                               candidate.step.keep_everything));
      LOADLINE_ASSIGN_OR_RETURN(const planner::PeakFloor floor,
                                FloorOf(candidate));
      if (floor.bytes <= budget_bytes) continue;
      candidate.excluded = true;
      candidate.outcome =
          absl::StrCat("needs at least ", FormatBytes(floor.bytes));
    }
    return absl::OkStatus();
  }

  absl::Status SearchShort(Candidate& candidate) {
    StepFlags flags = candidate.flags;
    flags.purpose.effort = planner::Effort::kQuick;
    flags.plan.time_limit.clear();
    auto plan = SolveFor(candidate.step.problem, flags,
                         candidate.step.keep_everything, cancel_);
    if (CannotFit(plan.status())) return absl::OkStatus();
    LOADLINE_RETURN_IF_ERROR(plan.status());
    candidate.short_ns = plan->predicted.step_ns;
    candidate.outcome =
        absl::StrCat(FormatNs(candidate.short_ns), " by a short search");
    candidate.step.plan = *std::move(plan);
    TakeIfFaster(candidate);
    return absl::OkStatus();
  }

  absl::Status SearchFully(Candidate& candidate) {
    auto plan = Search(candidate);
    if (CannotFit(plan.status()) && candidates_.size() > 1) {
      candidate.outcome = "no plan found";
      refusal_ =
          candidate.parts == 1 || refusal_.ok() ? plan.status() : refusal_;
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(plan.status());
    // At equal times the longer search has the better bounds.
    if (plan->predicted.step_ns <= candidate.short_ns) {
      candidate.step.plan = *std::move(plan);
    }
    candidate.outcome = FormatNs(candidate.step.plan.predicted.step_ns);
    TakeIfFaster(candidate);
    return absl::OkStatus();
  }

  void TakeIfFaster(Candidate& candidate) {
    const int64_t step_ns = candidate.step.plan.predicted.step_ns;
    if (step_ns >= best_ns_) return;
    best_ns_ = step_ns;
    best_ = &candidate;
  }

  // The fewest bytes; of plans with equally many, the fastest.
  absl::Status FindSmallest() {
    for (Candidate& candidate : candidates_) {
      LOADLINE_ASSIGN_OR_RETURN(const planner::PeakFloor floor,
                                FloorOf(candidate));
      if (best_ != nullptr && floor.bytes >= best_->step.plan.arena_bytes) {
        candidate.outcome =
            absl::StrCat("needs at least ", FormatBytes(floor.bytes));
        continue;
      }
      LOADLINE_ASSIGN_OR_RETURN(candidate.step.plan, Search(candidate));
      candidate.outcome = FormatBytes(candidate.step.plan.arena_bytes);
      if (best_ == nullptr ||
          candidate.step.plan.arena_bytes < best_->step.plan.arena_bytes) {
        best_ = &candidate;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PlannedStep> Result() {
    if (best_ == nullptr) {
      if (!refusal_.ok()) return refusal_;
      return Search(candidates_[0]).status();  // why nothing fits
    }
    PlannedStep step = std::move(best_->step);
    for (const Candidate& candidate : candidates_) {
      step.tried.push_back({candidate.parts, candidate.outcome});
    }
    return step;
  }

  StepFlags flags_;
  executor::Device& device_;
  const std::atomic<bool>* cancel_;
  std::vector<Candidate> candidates_;
  Candidate* best_ = nullptr;
  int64_t best_ns_ = kNone;
  absl::Status refusal_;
};

}  // namespace

absl::StatusOr<std::optional<int64_t>> MicroBatchesOf(const PlanFlags& flags) {
  int64_t parts = 0;
  const bool is_auto = flags.micro_batches == "auto";
  if (!is_auto &&
      (!absl::SimpleAtoi(flags.micro_batches, &parts) || parts < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro-batches '", flags.micro_batches,
                     "': expected a whole number above zero, or auto"));
  }
  if (flags.no_split) return std::optional<int64_t>(1);
  return is_auto ? std::optional<int64_t>() : std::optional(parts);
}

bool IsAuto(const PlanFlags& flags) {
  return flags.micro_batches == "auto" && !flags.no_split;
}

absl::Status RefuseAuto(const PlanFlags& flags, absl::string_view why) {
  LOADLINE_RETURN_IF_ERROR(MicroBatchesOf(flags).status());
  if (!IsAuto(flags)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--micro-batches auto: ", why, "; give a number"));
}

absl::Status CheckForProblemFile(const PlanFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const std::optional<int64_t> parts,
                            MicroBatchesOf(flags));
  if (parts == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--micro-batches ", flags.micro_batches,
                   ": needs a model; the step of a problem file is divided "
                   "already, or not"));
}

StepFlags WithMicroBatches(const StepFlags& flags, int64_t parts) {
  StepFlags changed = flags;
  changed.plan.micro_batches = absl::StrCat(parts);
  return changed;
}

std::vector<int64_t> MicroBatchesToTry(int64_t most, size_t nodes) {
  std::vector<int64_t> parts = {1};
  const auto last =
      static_cast<int64_t>(kMostNodes / std::max<size_t>(nodes, 1));
  for (int64_t d = 2; d <= std::min({most, kMostParts, last}); ++d) {
    if (most % d == 0 && 2 * d >= 3 * parts.back()) parts.push_back(d);
  }
  return parts;
}

absl::StatusOr<std::vector<int64_t>> PossibleMicroBatches(
    const models::Graph& model, const StepFlags& flags,
    const PlannedStep& plain) {
  std::vector<int64_t> parts = MicroBatchesToTry(passes::MostParts(plain.graph),
                                                 plain.problem.nodes.size());
  if (parts.size() == 1) return parts;
  const absl::Status possible =
      BuildStep(model, WithMicroBatches(flags, parts[1])).status();
  if (absl::IsFailedPrecondition(possible)) {
    spdlog::info("micro-batches are not possible: {}",
                 std::string(possible.message()));
    parts.resize(1);
    return parts;
  }
  LOADLINE_RETURN_IF_ERROR(possible);
  return parts;
}

absl::Status WithAdvice(const absl::Status& status, const models::Graph& step) {
  const bool keeps_statistics = std::any_of(
      step.nodes.begin(), step.nodes.end(),
      [](const models::Node& node) { return node.op == "RunningStatsUpdate"; });
  if (!CannotFit(status) || models::MicroBatchesOf(step) != 1 ||
      keeps_statistics || passes::MostParts(step) == 1) {
    return status;
  }
  absl::Status advised(
      status.code(),
      absl::StrCat(
          status.message(),
          "; --micro-batches auto runs the batch in parts, which takes "
          "fewer bytes"));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    advised.SetPayload(type, payload);
  });
  return advised;
}

absl::StatusOr<PlannedStep> PlanBestStructure(const StepFlags& flags,
                                              executor::Device& device,
                                              const std::atomic<bool>* cancel,
                                              const BeforeMeasuring& check) {
  LOADLINE_ASSIGN_OR_RETURN(const models::Imported model,
                            ImportModel(flags.model, /*training=*/true));
  return Chooser(flags, device, cancel).Run(model.graph, check);
}

}  // namespace loadline::tools
