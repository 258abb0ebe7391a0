// Turns running statistics into those of one batch, to measure them anew.
//
//   m', v' = RunningStatsUpdate(m, v, mean, rstd) {momentum=0.9}
//   ->
//   m', v' = RunningStatsUpdate(m, v, mean, rstd) {momentum=0}
#ifndef LOADLINE_PASSES_COMPRESS_BATCH_STATISTICS_H_
#define LOADLINE_PASSES_COMPRESS_BATCH_STATISTICS_H_

#include "models/graph.h"

namespace loadline::passes {

// Drops all other updates. Afterwards the updates are those of the statistics;
// none if no normalization of the model has any.
void TakeBatchStatistics(models::Graph& model);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_BATCH_STATISTICS_H_
