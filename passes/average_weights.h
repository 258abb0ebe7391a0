// Keeps a moving average of every parameter that the optimizer updates:
//
//   w' = Sgd(w, w.grad)   ->   w' = Sgd(w, w.grad)
//                              w.average' = AverageUpdate(w.average, w')
#ifndef LOADLINE_PASSES_AVERAGE_WEIGHTS_H_
#define LOADLINE_PASSES_AVERAGE_WEIGHTS_H_

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

// Runs after RepeatMicroBatches. InvalidArgument: a value with an average's
// name (AverageName in passes/add_optimizer.h) exists.
absl::Status AverageWeights(models::Graph& graph, double decay);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_AVERAGE_WEIGHTS_H_
