// From the training step of one part of the batch to that of the whole batch:
// forward and backward pass of one part after the other, gradients added up in
// place, then one update of each parameter.
//
//   inputs x f32[8,64], target         inputs x, x@2, target, target@2
//   loss = ...(x)                      loss = ...(x)
//   w.grad = ...                       w.grad = ...
//   w' = Sgd(w, w.grad)           ->   loss@2 = ...(x@2)
//                                      w.grad@2 = ...
//                                      w.grad.sum = Add(w.grad, w.grad@2)
//                                      loss.sum = Add(loss, loss@2)
//                                      w' = Sgd(w, w.grad.sum)
//
// What clips gradients reads their sums and is written once, as the updates
// are. A node that no input leads to, such as a cast of a parameter, stays once
// for all parts. So does one that reads all parts (CountTargets, and Concat
// with `of_parts`); what leads to it in the other parts stands before it. A
// RunningStatsUpdate reads the statistics of all parts in their order.
// models/micro_batches.h reads the number of parts off the result.
#ifndef LOADLINE_PASSES_REPEAT_MICRO_BATCHES_H_
#define LOADLINE_PASSES_REPEAT_MICRO_BATCHES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "models/graph.h"

namespace loadline::passes {

// `graph`: a training step made from what CutBatch returned with the same
// `parts`. Sums are taken in the order of the parts. A node with the attribute
// `offset` draws, in part j, the random numbers that the whole batch has there.
// FailedPrecondition where a part's result would be needed elsewhere than in
// the loss and in an update, or a name of a part is taken.
absl::Status RepeatMicroBatches(models::Graph& graph, int64_t parts);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_REPEAT_MICRO_BATCHES_H_
