// The bytes that a step needs, between a proven lower bound and a sufficient
// size, without a search.
#ifndef LOADLINE_TOOLS_REPORT_ESTIMATE_H_
#define LOADLINE_TOOLS_REPORT_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "planner/solve/solve.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

struct MemoryComponent {
  std::string name;  // "parameters"
  // Share of `expected_bytes`; these add up to it.
  int64_t peak_bytes = 0;
  // All bytes of this kind in the step, each value once.
  int64_t total_bytes = 0;
};

struct Estimate {
  std::string problem;
  // No plan can have a lower peak.
  planner::PeakFloor low;
  // Peak of live bytes with everything kept, in the given order: 100 %.
  int64_t expected_bytes = 0;
  // An arena that suffices: the same order, laid out.
  int64_t high_bytes = 0;
  std::vector<MemoryComponent> components;
  int64_t outside_bytes = 0;  // device memory that no plan contains
  // Whether --budget includes them: then budget_bytes is the rest.
  bool outside_counts = false;
  std::optional<int64_t> budget_bytes;
};

enum class Fit { kNoBudget, kAsIs, kPerhaps, kNever };

// Requires `step.keep_everything`. Errors: a flag that is malformed, or
// a budget of "smallest" (which would need a search).
absl::StatusOr<Estimate> EstimateStep(const PlannedStep& step,
                                      const PlanFlags& flags);

Fit FitOf(const Estimate& estimate);
std::string EstimateVerdict(const PlannedStep& step, const Estimate& estimate);
std::string EstimateTable(const PlannedStep& step, const Estimate& estimate);
nlohmann::ordered_json EstimateJson(const PlannedStep& step,
                                    const Estimate& estimate);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_ESTIMATE_H_
