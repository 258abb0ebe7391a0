// The flags of verbs that take a problem file, and some a plan file, in place
// of a model: which of them the user gave, and which say nothing of such a
// file.
#ifndef LOADLINE_TOOLS_PIPELINE_PLANNER_FILE_FLAGS_H_
#define LOADLINE_TOOLS_PIPELINE_PLANNER_FILE_FLAGS_H_

#include "absl/status/status.h"
#include "planner/problem/problem.h"
#include "tools/pipeline/planned_step.h"

namespace CLI {
class App;
}  // namespace CLI

namespace loadline::tools {

// Every flag of tools/cli/flags.h that plans training steps, with
// StepFlags::given.
void AddPlannedStepFlags(CLI::App* app, StepFlags* flags);

// InvalidArgument, with their names, if flags were given that the file has
// decided already, or that offer it what it does not have.
absl::Status CheckForProblemFile(const StepFlags& flags,
                                 const planner::Problem& problem);
// The same for a plan file, which nothing is searched for.
absl::Status CheckForPlanFile(const StepFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLANNER_FILE_FLAGS_H_
