// Converts batch normalization from training form, which uses the batch's
// statistics, to inference form, which uses the running ones.
//
//   y, mean, rstd = BatchNormTraining(x, scale, bias)
//   m', v' = RunningStatsUpdate(m, v, mean, rstd)      update m -> m', v -> v'
//   ->
//   y = BatchNormalization(x, scale, bias, m, v)
//
// A normalization without running statistics still uses the batch's.
#ifndef LOADLINE_PASSES_USE_RUNNING_STATISTICS_H_
#define LOADLINE_PASSES_USE_RUNNING_STATISTICS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

// Also drops all updates, since evaluation changes nothing.
absl::Status UseRunningStatistics(models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_USE_RUNNING_STATISTICS_H_
