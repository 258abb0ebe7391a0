// Finds a softmax or sigmoid that ends a model, before a loss that applies its
// own.
#ifndef LOADLINE_PASSES_OUTPUT_ACTIVATION_H_
#define LOADLINE_PASSES_OUTPUT_ACTIVATION_H_

#include <string>

#include "models/graph.h"
#include "passes/add_loss.h"

namespace loadline::passes {

// A sentence for the user if `prediction`, moved or cast at most, is already
// normalized and `loss` takes logits: Softmax or Sigmoid with cross_entropy;
// these and LogSoftmax with bce_with_logits. Empty otherwise. Cross entropy of
// a LogSoftmax is that of its logits.
std::string OutputActivationWarning(const models::Graph& graph,
                                    models::ValueId prediction, LossKind loss);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_OUTPUT_ACTIVATION_H_
