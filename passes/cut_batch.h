// Turns a step's graph of forward pass and loss into that of one part of the
// batch. The loss of the part is such that the losses of all parts add up to
// that of the whole batch, and so do their gradients.
//
//   x f32[32,64], target i64[32]        x f32[8,64], target i64[8]
//   y = Gemm(x, w)                  ->  y = Gemm(x, w)
//   loss = SoftmaxCrossEntropy(         count = CountTargets(target)
//       y, target)                      loss = SoftmaxCrossEntropy(
//                                           y, target, count)
//
// Here the batch of 32 is cut into 4 parts. passes/repeat_micro_batches.h later
// makes CountTargets count the targets of all parts, and a Concat with the
// attribute `of_parts` join the values of all parts: it stands where a node
// needs the whole of a value on which no parameter has an influence, such as
// the number of unmasked elements. Random nodes get their attribute `offset`,
// for that pass to count on.
#ifndef LOADLINE_PASSES_CUT_BATCH_H_
#define LOADLINE_PASSES_CUT_BATCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "models/graph.h"
#include "models/ops/cut_axis.h"

namespace loadline::passes {

// `graph`: what AddLoss makes, whose first output is the loss. The batch is the
// first axis of every input. Constants, and values broadcast to the batch, are
// cut where every part is the same. With kOfPart a part normalizes with its own
// batch statistics, which is another step than that of the whole batch;
// running statistics are then updated for one part after the other.
//
// Errors: InvalidArgument (fewer than 1 part, a batch that does not divide into
// `parts`, further outputs than the loss), FailedPrecondition naming the node
// through which the parts would have other numbers than the whole batch.
absl::Status CutBatch(
    models::Graph& graph, int64_t parts,
    models::BatchStatistics statistics = models::BatchStatistics::kOfBatch);

// What the loss of a whole batch is of those of its parts, which are equally
// large. kMeanOfTargets: the mean, where each part weighs as its targets do.
enum class LossReduction { kUnknown, kMean, kMeanOfTargets, kSum };

// `graph`: as for CutBatch, with one output. kUnknown where CutBatch would
// fail, and for a batch of 1.
LossReduction FindLossReduction(models::Graph graph);

// The largest number of parts that divide the batch of every input evenly: the
// greatest common divisor of their first dimensions; 1 if an input has none.
int64_t MostParts(const models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_CUT_BATCH_H_
