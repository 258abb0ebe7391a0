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
#include "passes/add_loss.h"
#include "passes/training_pipeline.h"
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
absl::StatusOr<models::ImportOptions> ImportOptionsFor(const ModelFlags& flags,
                                                       bool training);
absl::StatusOr<models::Imported> ImportModel(const ModelFlags& flags,
                                             bool training);
// The same to train, with a warning if the model's output does not suit the
// loss.
absl::StatusOr<models::Imported> ImportToTrain(const StepFlags& flags);
// Of a model whose output is softmax or sigmoid already; empty if there is
// nothing to say.
std::string LossWarning(const models::Graph& model, const LossFlags& flags);
// The same at another batch than that of the flags, whichever of them says it.
absl::StatusOr<models::Imported> ImportModelAt(const ModelFlags& flags,
                                               int64_t batch, bool training);
// InvalidArgument if --batch says something else than --dim or --input-shape,
// which go before it. ImportModel checks it.
absl::Status CheckBatch(const ModelFlags& flags);
absl::StatusOr<models::Graph> BuildStep(models::Graph model,
                                        const StepFlags& flags);
// The loss as the flags and the data's target have it. Without data,
// cross-entropy's classes are the last axis of the model's output. `path`: the
// model's file, whose names of outputs --output-name has.
absl::StatusOr<passes::LossOptions> LossFor(const models::Graph& model,
                                            const LossFlags& flags,
                                            const std::string& path);
// InvalidArgument: the batch is not the first axis of every input and of the
// prediction (tools/pipeline/batch_axis.h). LossFor checks it where `flags`
// have data. `flags` name the output as the graph does.
absl::Status CheckBatchAxes(const models::Graph& model, const LossFlags& flags,
                            const std::string& path);
// The flags with the graph's name of that output. InvalidArgument: there is no
// such output.
absl::StatusOr<LossFlags> WithGraphsOutputName(const models::Graph& model,
                                               LossFlags flags,
                                               const std::string& path);
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
