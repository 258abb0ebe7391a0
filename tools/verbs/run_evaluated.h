// Trains and evaluates in turns.
#ifndef LOADLINE_TOOLS_VERBS_RUN_EVALUATED_H_
#define LOADLINE_TOOLS_VERBS_RUN_EVALUATED_H_

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "executor/train/data.h"
#include "executor/train/metrics.h"
#include "executor/train/train.h"
#include "tools/pipeline/evaluation.h"
#include "tools/pipeline/model_files.h"
#include "tools/pipeline/planned_step.h"
#include "tools/verbs/run_flags.h"
#include "tools/verbs/run_training.h"

namespace loadline::tools {

// The evaluation of --eval-data, within the bytes of the training's plan.
absl::StatusOr<std::unique_ptr<EvaluationPlan>> PlanEvaluation(
    const RunFlags& flags, const PlannedStep& step);

// Trains and evaluates in turns (tools/pipeline/evaluated_run.h). The best
// weights so far go to --best.
absl::StatusOr<executor::TrainResult> TrainWithEvaluations(
    const RunFlags& flags, const executor::DataSet& data,
    const std::atomic<bool>* stop, const ModelFiles& files,
    EvaluationPlan& evaluation, executor::MetricsFile* metrics,
    PlannedStep* step, Running* running);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_VERBS_RUN_EVALUATED_H_
