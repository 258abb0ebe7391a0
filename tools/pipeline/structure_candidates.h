// The structures among which choose_structure.h chooses, posed as problems.
#ifndef LOADLINE_TOOLS_PIPELINE_STRUCTURE_CANDIDATES_H_
#define LOADLINE_TOOLS_PIPELINE_STRUCTURE_CANDIDATES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "planner/solve/solve.h"
#include "tools/pipeline/overhead_curve.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/structures.h"

namespace loadline::tools {

inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::max();

// Steps of at most so many nodes are searched in full wherever no bound
// excludes them, if all structures have so few.
inline constexpr size_t kSmallNodes = 400;

struct Candidate {
  Structure structure;
  StepFlags flags;  // that make it, with the budget in bytes
  PlannedStep step;
  bool measured = true;     // false: times are those of rates
  int64_t compute_ns = 0;   // every node once: no plan is faster
  int64_t floor_bytes = 0;  // that every plan needs
  int64_t found_ns = kNoTime;
  bool excluded = false;  // by a bound
  bool tried = false;     // measured, and searched shortly where that is needed
  bool searched = false;  // in full, or given up
  std::string outcome;

  bool IsLarge() const { return step.problem.nodes.size() > kSmallNodes; }
  bool HasPlan() const { return found_ns != kNoTime; }
  int64_t KeepBytes() const { return step.keep_everything.budget_bytes; }
};

// The structures that the flags leave open, the least divided one first. Their
// steps are posed one after the other, as a large one takes a second.
class StructureCandidates {
 public:
  // Everything that is passed by reference must outlive this.
  static absl::StatusOr<StructureCandidates> Create(
      const models::Graph& model, const StepFlags& flags,
      executor::Device& device, const std::atomic<bool>* cancel,
      const BeforeMeasuring& check);

  // Finds out which structures there are, once; Rest() is empty before.
  absl::Status List();

  // Those that are posed. References stay valid.
  std::deque<Candidate>& all() { return all_; }
  Candidate& plain() { return all_.front(); }
  // Those that are not.
  std::vector<Structure> Rest() const;

  // In bytes; a share is one of the least divided step. 0 without a budget or
  // for the smallest.
  int64_t budget_bytes() const { return budget_bytes_; }
  bool smallest() const { return smallest_; }

  // Poses further structures, without measuring operators, until a step with so
  // many micro-batches and without segments takes `limit_ns` for its operators
  // alone.
  absl::Status PoseUpTo(double limit_ns);

  // Measures what the candidate's flags want measured: before every search.
  absl::Status Measure(Candidate& candidate);

  // What the budget grants of the bytes that the candidate may save.
  double Share(const Candidate& candidate) const {
    return GrantedShare(candidate.floor_bytes, candidate.KeepBytes(),
                        budget_bytes_);
  }

  // The candidate's flags with this share of what is left of the time limit, if
  // there is one: all searches together keep to it.
  StepFlags InTime(const Candidate& candidate, double share) const;
  // The same for a short search: of little work, and again with twice as much
  // where no plan was found, which then takes any plan that can be constructed.
  StepFlags ForShortSearch(const Candidate& candidate) const;

  // Learns what less memory costs from plans of the plain step: the given one,
  // if any, and short searches at larger budgets than the one asked for.
  absl::Status LearnOverheads(const planner::Plan* plan);
  // The same from a better plan of the plain step for the budget.
  void LearnOverhead(const planner::Plan& plan) {
    LearnOverhead(Share(all_.front()), plan);
  }

  // Estimates the step time of the candidate's best plan. It is the sum of
  // three times. The operators take their own time. Recomputation takes the
  // part of it that plans of the plain step spend on recomputation if the
  // budget grants them the same share of their savable bytes. Copies are waited
  // for as long as in those plans, because most of them move optimizer state,
  // which every structure has. If no plan of the plain step is known, the
  // estimate assumes that a third of the operators' time is recomputed at a
  // share of a tenth.
  double EstimateNs(const Candidate& candidate) const;

 private:
  StructureCandidates(const models::Graph& model, const StepFlags& flags,
                      executor::Device& device, const std::atomic<bool>* cancel)
      : model_(&model), flags_(flags), device_(&device), cancel_(cancel) {}

  absl::StatusOr<Candidate> Pose(const Structure& structure,
                                 const StepFlags& flags,
                                 const BeforeMeasuring& check) const;
  absl::Status PoseFirst(const BeforeMeasuring& check);
  // Adds the structure unless the step does not have it, such as a chain that a
  // part of the batch lacks.
  absl::Status PoseNext(const Structure& structure);
  // Whether a time limit leaves no time for posing more structures.
  bool IsLate() const;
  // Sets rates_scale_.
  absl::Status CompareRates();
  double ScaledComputeNs(const Candidate& candidate) const;
  // A short search of the plain step; false if it found no plan.
  absl::StatusOr<bool> LearnOverheadAt(double share);
  void LearnOverhead(double share, const planner::Plan& plan);

  const models::Graph* model_;
  StepFlags flags_;
  executor::Device* device_;
  const std::atomic<bool>* cancel_;
  absl::Time start_ = absl::Now();
  bool smallest_ = false;
  int64_t budget_bytes_ = 0;
  // Of the plain step, as shares of its operators' time: what is computed
  // again, and what waits for copies.
  OverheadCurve reruns_, waits_;
  // The plain step's measured time as a multiple of that by rates. 1 if nothing
  // is measured.
  double rates_scale_ = 1;
  std::deque<Candidate> all_;
  bool listed_ = false;
  std::vector<Structure> possible_;  // beside the plain step, once listed
  size_t next_ = 0;                  // of `possible_`
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_STRUCTURE_CANDIDATES_H_
