// Tested by tests/end_to_end/choose_structure_test.cc.
#include "tools/pipeline/structure_candidates.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/plan_request.h"

namespace loadline::tools {
namespace {

constexpr double kShareComputedAgain = 1.0 / 3;

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

absl::Status StructureCandidates::PoseUpTo(int64_t limit_ns) {
  if (!listed_) {
    listed_ = true;
    LOADLINE_ASSIGN_OR_RETURN(
        possible_, PossibleStructures(*model_, flags_, plain().step));
  }
  while (next_ < possible_.size()) {
    const Structure& structure = possible_[next_++];
    if (structure == plain().structure) continue;
    LOADLINE_RETURN_IF_ERROR(PoseNext(structure));
    const Candidate& last = all_.back();
    if (structure.splits == plain().structure.splits &&
        last.structure == structure && last.compute_ns >= limit_ns) {
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

absl::StatusOr<int64_t> StructureCandidates::FloorBytes(
    const Candidate& candidate) const {
  LOADLINE_ASSIGN_OR_RETURN(
      const PlanRequest request,
      ReadPlanRequest(candidate.flags.plan, candidate.flags.purpose));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::PeakFloor floor,
      planner::FindPeakFloor(candidate.step.problem, request.options));
  return floor.bytes;
}

double StructureCandidates::OverBytes(const Candidate& candidate) const {
  return static_cast<double>(
      std::max<int64_t>(0, candidate.KeepBytes() - budget_bytes_));
}

double StructureCandidates::EstimateNs(const Candidate& candidate) const {
  const Candidate& plain = all_.front();
  const double price =
      plain.HasPlan()
          ? static_cast<double>(plain.found_ns - plain.compute_ns) /
                std::max(1.0, OverBytes(plain))
          : static_cast<double>(plain.compute_ns) * kShareComputedAgain /
                static_cast<double>(std::max<int64_t>(1, plain.KeepBytes()));
  return static_cast<double>(candidate.compute_ns) +
         price * OverBytes(candidate);
}

}  // namespace loadline::tools
