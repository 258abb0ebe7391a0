// The phases of a recipe, planned or run, as text and as JSON.
#ifndef LOADLINE_TOOLS_REPORT_PHASES_REPORT_H_
#define LOADLINE_TOOLS_REPORT_PHASES_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json_fwd.hpp"
#include "passes/compress/recipe.h"
#include "tools/pipeline/phase_record.h"
#include "tools/pipeline/train_phases.h"
#include "tools/pipeline/write_pruned.h"

namespace loadline::tools {

// One row for each phase: steps, parameters, MACs, peak, step time, recomputed
// and copied; then the step from which on nothing is, and the sparsity that was
// found for a target in MACs or bytes. `has_all`: the last phase is there.
std::string PhasesTable(const passes::Recipe& recipe,
                        const std::vector<PhaseRecord>& phases,
                        const std::vector<double>& targets,
                        bool has_all = true);

// The fields `phases`, `targets` and `nothing_recomputed_from` of
// loadline.phases/1 and loadline.run/1.
nlohmann::ordered_json PhasesJson(const passes::Recipe& recipe,
                                  const std::vector<PhaseRecord>& phases,
                                  const std::vector<double>& targets);

// Before and after: channels, parameters, MACs, peak bytes, bytes of the file.
// A file of 0 bytes is not shown.
std::string BeforeAfterTable(const PhasedResult& result, FileBytes files);

// What `run` prints at its end. JSON: loadline.run/1 of the last phase, with
// all phases.
void PrintPhasedRunTable(const PhasedResult& result, FileBytes files);
void PrintPhasedRunJson(const PhasedResult& result, FileBytes files);

// The error for a phase that took more bytes than its budget.
absl::Status CheckPhaseBudgets(const std::vector<PhaseRecord>& phases);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_PHASES_REPORT_H_
