// What `--micro-batches auto` tried and chose, as text and as JSON.
#ifndef LOADLINE_TOOLS_REPORT_STRUCTURE_OUTPUT_H_
#define LOADLINE_TOOLS_REPORT_STRUCTURE_OUTPUT_H_

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "tools/pipeline/planned_step.h"
#include "tools/report/sweep_output.h"

namespace loadline::tools {

// The chosen number of micro-batches and what every other one would give, one
// line each; empty for a step in one piece by request.
std::string StructureText(const PlannedStep& step);

// Adds "micro_batches", and "structures" if there was a choice; nothing for a
// step in one piece by request.
void AddStructure(const PlannedStep& step, nlohmann::ordered_json* out);

// Of the fronts of several numbers of micro-batches, the fastest plan at each
// budget: the points at which a larger budget gives a faster step.
std::string StructuresFront(const std::vector<Swept>& all);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_REPORT_STRUCTURE_OUTPUT_H_
