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
#include "executor/device/device.h"
#include "models/graph.h"
#include "planner/solve/solve.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/planned_step.h"
#include "tools/pipeline/structures.h"

namespace loadline::tools {

inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::max();

struct Candidate {
  Structure structure;
  StepFlags flags;  // that make it, with the budget in bytes
  PlannedStep step;
  bool measured = true;    // false: times are those of rates
  int64_t compute_ns = 0;  // every node once: no plan is faster
  int64_t found_ns = kNoTime;
  bool excluded = false;
  std::string outcome;

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
  absl::Status PoseUpTo(int64_t limit_ns);

  // Measures what the candidate's flags want measured: before every search.
  absl::Status Measure(Candidate& candidate);

  // Bytes that every plan of the candidate needs.
  absl::StatusOr<int64_t> FloorBytes(const Candidate& candidate) const;

  // A guess of the best plan's step time: the operators' time, and for each
  // byte that keeping everything takes above the budget what the plain step's
  // plan pays for it. Without such a plan: a third of the step for all bytes,
  // as if all of them were computed again.
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
  double OverBytes(const Candidate& candidate) const;

  const models::Graph* model_;
  StepFlags flags_;
  executor::Device* device_;
  const std::atomic<bool>* cancel_;
  bool smallest_ = false;
  int64_t budget_bytes_ = 0;
  std::deque<Candidate> all_;
  bool listed_ = false;
  std::vector<Structure> possible_;  // once listed
  size_t next_ = 0;                  // of `possible_`
};

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_STRUCTURE_CANDIDATES_H_
