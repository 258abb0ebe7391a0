// How a step is divided, and what a choice of it tried, as text and as JSON.
#ifndef LOADLINE_TOOLS_REPORT_STRUCTURE_OUTPUT_H_
#define LOADLINE_TOOLS_REPORT_STRUCTURE_OUTPUT_H_

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "tools/pipeline/planned_step.h"
#include "tools/report/sweep_output.h"

namespace loadline::tools {

// The step's structure and what every other one would give, one line each; of
// more than three with the same outcome, their number. Empty for a step in one
// piece by request.
std::string StructureText(const PlannedStep& step);

// Adds "micro_batches", "splits" if there are any, and "structures" if there
// was a choice; nothing for a step in one piece by request.
void AddStructure(const PlannedStep& step, nlohmann::ordered_json* out);

// Of the fronts of several structures, the fastest plan at each
// budget: the points at which a larger budget gives a faster step.
std::string StructuresFront(const std::vector<Swept>& all);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_STRUCTURE_OUTPUT_H_
