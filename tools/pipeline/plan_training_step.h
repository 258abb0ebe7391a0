// The whole way of the data, one line per arrow. Start reading Loadline here.
//
//   model.onnx -> Graph -> training step -> Problem -> Plan -> proof -> run
#ifndef LOADLINE_TOOLS_PIPELINE_PLAN_TRAINING_STEP_H_
#define LOADLINE_TOOLS_PIPELINE_PLAN_TRAINING_STEP_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "models/graph.h"
#include "models/onnx/import.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "tools/pipeline/planned_step.h"

namespace loadline::tools {

// Called with the training step before anything is measured or planned. An
// error ends the call.
using BeforeMeasuring = std::function<absl::Status(const models::Graph&)>;

// From the model to a verified plan. `cancel` may be null. The log goes to
// stderr.
absl::StatusOr<PlannedStep> PlanTrainingStep(const StepFlags& flags,
                                             executor::Device& device,
                                             const std::atomic<bool>* cancel,
                                             const BeforeMeasuring& check = {});

// The same from an imported model, and without a search: all but `plan`.
absl::StatusOr<PlannedStep> PoseGraph(models::Graph model,
                                      const StepFlags& flags,
                                      executor::Device& device,
                                      const std::atomic<bool>* cancel,
                                      const BeforeMeasuring& check = {});
// The same from the model's file. For --micro-batches auto: the step in one
// part.
absl::StatusOr<PlannedStep> PoseTrainingStep(const StepFlags& flags,
                                             executor::Device& device,
                                             const std::atomic<bool>* cancel,
                                             const BeforeMeasuring& check = {});
// The same from a problem file: then there is no graph.
absl::StatusOr<PlannedStep> ReadProblemStep(const std::string& path);
// The same of MODEL, with CheckForProblemFile.
absl::StatusOr<PlannedStep> ReadProblemStepFor(const StepFlags& flags);
// Whether a verb's MODEL is a problem or a plan instead: PATH.json.
bool IsPlannerFile(const std::string& path);
// Whichever of the two MODEL is; a model on a device of the flags.
absl::StatusOr<PlannedStep> PoseOrReadStep(const StepFlags& flags,
                                           const std::atomic<bool>* cancel);
absl::StatusOr<PlannedStep> PlanOrReadStep(const StepFlags& flags,
                                           const std::atomic<bool>* cancel);

// The arrows one by one, for verbs that stop on the way.
// ImportModel, with a warning if the model's output does not suit the loss.
absl::StatusOr<models::Imported> ImportToTrain(const StepFlags& flags);
absl::StatusOr<models::Graph> BuildStep(models::Graph model,
                                        const StepFlags& flags);
absl::StatusOr<planner::Machine> MachineFor(const StepFlags& flags,
                                            const models::Graph& graph,
                                            const std::atomic<bool>* cancel);
// From here on the device takes the algorithms that the machine's profile
// names: what runs on it is what was posed.
absl::StatusOr<planner::Problem> PoseStep(const models::Graph& graph,
                                          const std::string& name,
                                          const planner::Machine& machine,
                                          executor::Device& device,
                                          const GradientErrors& errors = {});
// The same step at another machine's prices: its problem, and keeping
// everything there. `step->plan` stays what it was: planner::Reprice.
absl::Status PoseAgain(const StepFlags& flags, planner::Machine machine,
                       executor::Device& device, PlannedStep* step);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_PLAN_TRAINING_STEP_H_
