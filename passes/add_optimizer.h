// Appends one optimizer node per parameter that has a gradient, in the
// parameters' order, with its optimizer states, initially zero.
//
//   w, w.grad     ->   w', momentum' = Sgd(w, w.grad, w.momentum)
//                      update w -> w', w.momentum -> momentum'
//
// Sgd with momentum has the state `<parameter>.momentum`; AdamW has
// `<parameter>.exp_avg` and `<parameter>.exp_avg_sq`. The learning rate is not
// part of the graph: the executor passes it at every step.
#ifndef LOADLINE_PASSES_ADD_OPTIMIZER_H_
#define LOADLINE_PASSES_ADD_OPTIMIZER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/add_gradients.h"

namespace loadline::passes {

enum class OptimizerKind { kSgd, kAdamW };

// "sgd" or "adamw"; InvalidArgument for anything else.
absl::StatusOr<OptimizerKind> OptimizerKindFromName(absl::string_view name);

// Semantics and defaults are those of torch.optim.SGD and torch.optim.AdamW,
// except that AdamW's default weight decay is 0 instead of 0.01.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  double weight_decay = 0;
  // Sgd:
  double momentum = 0;
  bool nesterov = false;
  // AdamW:
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// Errors: InvalidArgument (a setting outside its range, or an existing value
// with a state's name).
absl::Status AddOptimizer(models::Graph& graph, const Gradients& gradients,
                          const OptimizerOptions& options);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_ADD_OPTIMIZER_H_
