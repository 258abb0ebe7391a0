// What `loadline run` says and writes down while it trains.
#ifndef LOADLINE_TOOLS_VERBS_RUN_NOTES_H_
#define LOADLINE_TOOLS_VERBS_RUN_NOTES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "executor/train/evaluate.h"
#include "executor/train/metrics.h"
#include "executor/train/progress.h"
#include "tools/verbs/run_flags.h"

namespace loadline::tools {

// Add a line to the metrics, if there are any. The first write error is logged
// at once, because the run may go on for hours.
void AddProgress(executor::MetricsFile* metrics,
                 const executor::TrainProgress& progress);
void AddEvaluation(executor::MetricsFile* metrics, int64_t step,
                   const executor::Evaluation& evaluation);

void ShowEvaluation(int64_t step, const executor::Evaluation& evaluation);

void WarnNotWritten(const absl::Status& status);

// Logs that neither a model nor a checkpoint will be left, if so.
void NoteIfNothingIsSaved(const RunFlags& flags);

// Cancelled; says how the run goes on.
absl::Status InterruptedError(const RunFlags& flags);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_VERBS_RUN_NOTES_H_
