// Tested by tests/end_to_end/choose_structure_test.cc.
#include "tools/pipeline/structure_candidates.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/units.h"
#include "tools/pipeline/plan_request.h"

namespace loadline::tools {
namespace {

constexpr double kShareComputedAgain = 1.0 / 3;
// Of a short search: for a two-layer GPT its steps are at most 1.2 times those
// of a full search, which takes twenty times as long.
constexpr int64_t kShortWork = 300'000;
// With a time limit, a short search ends after this share of what is left.
constexpr double kShortTimeShare = 0.1;
// No structure is posed after this share of a time limit: the searches of those
// that were need the rest.
constexpr double kPoseTimeShare = 0.3;
constexpr absl::Duration kLeastTime = absl::Milliseconds(10);
// Where the plain step is searched shortly: a plan of less is harder to find,
// and takes longer to look for.
constexpr std::array<double, 5> kLearnedShares = {0.5, 0.25, 0.12, 0.06, 0.03};
// No search so close to what the budget grants.
constexpr double kNearlyGranted = 1.2;

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

// The structure that divides the step least.
absl::StatusOr<Structure> FirstStructure(const PlanFlags& flags) {
  Structure first;
  LOADLINE_ASSIGN_OR_RETURN(const auto parts, MicroBatchesOf(flags));
  LOADLINE_ASSIGN_OR_RETURN(const auto splits, SplitsOf(flags));
  first.micro_batches = parts.value_or(1);
  if (splits.has_value()) first.splits = flags.splits;
  return first;
}

}  // namespace

absl::StatusOr<StructureCandidates> StructureCandidates::Create(
    const models::Graph& model, const StepFlags& flags,
    executor::Device& device, const std::atomic<bool>* cancel,
    const BeforeMeasuring& check) {
  StructureCandidates candidates(model, flags, device, cancel);
  LOADLINE_RETURN_IF_ERROR(candidates.PoseFirst(check));
  return candidates;
}

absl::StatusOr<Candidate> StructureCandidates::Pose(
    const Structure& structure, const StepFlags& flags,
    const BeforeMeasuring& check) const {
  Candidate candidate;
  candidate.structure = structure;
  candidate.flags = flags;
  LOADLINE_ASSIGN_OR_RETURN(
      candidate.step, PoseGraph(*model_, flags, *device_, cancel_, check));
  candidate.compute_ns = ComputeNs(candidate.step.problem);
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::PeakFloor floor,
      planner::FindPeakFloor(candidate.step.problem, PermittedBy(flags.plan)));
  candidate.floor_bytes = floor.bytes;
  return candidate;
}

absl::Status StructureCandidates::PoseFirst(const BeforeMeasuring& check) {
  LOADLINE_ASSIGN_OR_RETURN(const Structure first, FirstStructure(flags_.plan));
  LOADLINE_ASSIGN_OR_RETURN(Candidate plain,
                            Pose(first, WithStructure(flags_, first), check));
  LOADLINE_ASSIGN_OR_RETURN(const PlanRequest request,
                            ReadPlanRequest(flags_.plan, flags_.purpose));
  using Kind = planner::Budget::Kind;
  if (request.budget.has_value()) {
    smallest_ = request.budget->kind == Kind::kSmallest;
    if (!smallest_) {
      LOADLINE_ASSIGN_OR_RETURN(budget_bytes_,
                                RequestedBytes(plain.step.problem, request,
                                               plain.step.keep_everything));
    }
    // Every structure has another peak.
    if (request.budget->kind == Kind::kShare) {
      flags_.plan.budget = absl::StrCat(
          budget_bytes_ + ReservedInBudget(plain.step.problem, request.on_gpu),
          "B");
    }
  }
  plain.flags = WithStructure(flags_, first);
  all_.push_back(std::move(plain));
  return absl::OkStatus();
}

std::vector<Structure> StructureCandidates::Rest() const {
  return {possible_.begin() + static_cast<std::ptrdiff_t>(next_),
          possible_.end()};
}

absl::Status StructureCandidates::CompareRates() {
  if (!flags_.plan.calibrate || possible_.empty()) return absl::OkStatus();
  StepFlags flags = plain().flags;
  flags.plan.calibrate = false;
  LOADLINE_ASSIGN_OR_RETURN(const Candidate by_rates,
                            Pose(plain().structure, flags, {}));
  if (by_rates.compute_ns > 0) {
    rates_scale_ = static_cast<double>(plain().compute_ns) /
                   static_cast<double>(by_rates.compute_ns);
  }
  return absl::OkStatus();
}

double StructureCandidates::ScaledComputeNs(const Candidate& candidate) const {
  return static_cast<double>(candidate.compute_ns) *
         (candidate.measured ? 1 : rates_scale_);
}

absl::Status StructureCandidates::List() {
  if (listed_) return absl::OkStatus();
  listed_ = true;
  LOADLINE_ASSIGN_OR_RETURN(possible_,
                            PossibleStructures(*model_, flags_, plain().step));
  std::erase(possible_, plain().structure);
  return CompareRates();
}

absl::Status StructureCandidates::PoseUpTo(double limit_ns) {
  LOADLINE_RETURN_IF_ERROR(List());
  while (next_ < possible_.size() && !IsLate()) {
    if (cancel_ != nullptr && cancel_->load()) {
      return absl::CancelledError("interrupted");
    }
    const Structure& structure = possible_[next_++];
    LOADLINE_RETURN_IF_ERROR(PoseNext(structure));
    const Candidate& last = all_.back();
    if (structure.splits == plain().structure.splits &&
        last.structure == structure && ScaledComputeNs(last) >= limit_ns) {
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status StructureCandidates::PoseNext(const Structure& structure) {
  StepFlags flags = WithStructure(flags_, structure);
  flags.plan.calibrate = false;
  auto candidate = Pose(structure, flags, {});
  if (absl::IsFailedPrecondition(candidate.status()) ||
      absl::IsInvalidArgument(candidate.status())) {
    return absl::OkStatus();
  }
  LOADLINE_RETURN_IF_ERROR(candidate.status());
  candidate->flags.plan.calibrate = flags_.plan.calibrate;
  candidate->measured = !flags_.plan.calibrate;
  all_.push_back(*std::move(candidate));
  return absl::OkStatus();
}

absl::Status StructureCandidates::Measure(Candidate& candidate) {
  if (candidate.measured) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(candidate,
                            Pose(candidate.structure, candidate.flags, {}));
  return absl::OkStatus();
}

bool StructureCandidates::IsLate() const {
  const auto limit = ParseTimeLimit(flags_.plan.time_limit);
  return limit.ok() && absl::Now() - start_ > kPoseTimeShare * *limit;
}

StepFlags StructureCandidates::InTime(const Candidate& candidate,
                                      double share) const {
  StepFlags flags = candidate.flags;
  const auto limit = ParseTimeLimit(flags.plan.time_limit);
  if (!limit.ok()) return flags;  // none, or refused where it is read
  const absl::Duration left = *limit - (absl::Now() - start_);
  flags.plan.time_limit =
      absl::FormatDuration(std::max(kLeastTime, share * left));
  return flags;
}

StepFlags StructureCandidates::ForShortSearch(
    const Candidate& candidate) const {
  StepFlags flags = InTime(candidate, kShortTimeShare);
  int64_t& work = flags.purpose.work_limit.emplace(
      flags.purpose.work_limit.value_or(kShortWork));
  work = std::min(work, kShortWork);
  return flags;
}

absl::StatusOr<bool> StructureCandidates::LearnOverheadAt(double share) {
  const Candidate& plain = all_.front();
  const StepFlags flags = ForShortSearch(plain);
  LOADLINE_ASSIGN_OR_RETURN(PlanRequest request,
                            ReadPlanRequest(flags.plan, flags.purpose));
  const auto savable =
      static_cast<double>(plain.KeepBytes() - plain.floor_bytes);
  request.budget = planner::Budget();
  request.budget->bytes =
      plain.floor_bytes + static_cast<int64_t>(share * savable);
  // A plan that only copies would say nothing about other structures.
  request.options.allow_smallest_start = false;
  // Harder searches of large steps take as long as the choice may.
  request.options.allow_retries = !plain.IsLarge();
  const auto plan = SolveFor(plain.step.problem, request,
                             plain.step.keep_everything, cancel_);
  if (ExitCodeFor(plan.status()) == kCannotFit ||
      absl::IsDeadlineExceeded(plan.status())) {
    return false;
  }
  LOADLINE_RETURN_IF_ERROR(plan.status());
  LearnOverhead(share, *plan);
  return true;
}

void StructureCandidates::LearnOverhead(double share,
                                        const planner::Plan& plan) {
  const auto compute_ns = static_cast<double>(plain().compute_ns);
  const auto rerun_ns = static_cast<double>(plan.predicted.recompute_ns);
  const auto step_ns = static_cast<double>(plan.predicted.step_ns);
  reruns_.Add(share, rerun_ns / compute_ns);
  waits_.Add(share, (step_ns - compute_ns - rerun_ns) / compute_ns);
}

absl::Status StructureCandidates::LearnOverheads(const planner::Plan* plan) {
  const double granted = Share(plain());
  if (plan != nullptr) LearnOverhead(granted, *plan);
  for (const double share : kLearnedShares) {
    if (share <= granted * kNearlyGranted) break;
    LOADLINE_ASSIGN_OR_RETURN(const bool found, LearnOverheadAt(share));
    if (!found) break;
  }
  return absl::OkStatus();
}

double StructureCandidates::EstimateNs(const Candidate& candidate) const {
  const double share = Share(candidate);
  return ScaledComputeNs(candidate) *
             (1 + reruns_.At(share, kShareComputedAgain)) +
         static_cast<double>(all_.front().compute_ns) * waits_.At(share, 0);
}

}  // namespace loadline::tools
