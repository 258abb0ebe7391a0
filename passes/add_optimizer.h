// Appends one optimizer node per parameter that has a gradient, in the
// parameters' order, with its optimizer states, initially zero.
//
//   w, w.grad     ->   w', momentum' = Sgd(w, w.grad, w.momentum)
//                      update w -> w', w.momentum -> momentum'
//
// Sgd with momentum has the state `<parameter>.momentum`; Adam and AdamW have
// `<parameter>.exp_avg` and `<parameter>.exp_avg_sq`, Lion the first of these,
// and Adagrad `<parameter>.sum`. Adafactor has `<parameter>.row_var` and
// `<parameter>.col_var`, averages of rows and columns, or
// `<parameter>.variance` of a parameter of one axis. With `average`,
// `<parameter>.average` is the moving average of the parameter. The learning
// rate is not part of the graph: the executor passes it at every step.
//
// With 8 bits, states of large parameters are blocks of codes
// (models/ops/state_blocks.h); averages stay f32.
#ifndef LOADLINE_PASSES_ADD_OPTIMIZER_H_
#define LOADLINE_PASSES_ADD_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"
#include "passes/add_gradients.h"

namespace loadline::passes {

enum class OptimizerKind { kSgd, kAdamW, kAdam, kAdagrad, kLion, kAdafactor };

// "sgd", "adamw", "adam", "adagrad", "lion" or "adafactor"; InvalidArgument for
// anything else.
absl::StatusOr<OptimizerKind> OptimizerKindFromName(absl::string_view name);

// Parameters of which some setting differs, by patterns of their names (*, ?).
struct ParameterGroups {
  std::vector<std::string> no_decay;
  // Parameters of one axis (biases, and scales of normalizations) and single
  // numbers do not decay either.
  bool decay_matrices_only = false;
  // Factor of the learning rate. Of several that match, the last one counts.
  std::vector<std::pair<std::string, double>> rates;
};

// Smaller parameters have states in f32, as in the paper on states in 8 bits:
// they are few bytes, and biases and scales are the most sensitive.
inline constexpr int64_t kLeastElementsOf8Bits = 4096;

// Semantics and defaults are those of torch.optim.SGD, Adam, AdamW, Adagrad and
// Adafactor, except that the default weight decay is 0. Lion as its authors
// define it.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  double weight_decay = 0;
  ParameterGroups groups;
  double clip_norm = 0;     // global norm of all gradients; 0: not clipped
  double average = 0;       // decay of the moving average of weights; 0: none
  int64_t state_bits = 32;  // or 8: not Adagrad's
  // Sgd:
  double momentum = 0;
  bool nesterov = false;
  // The others:
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// Name of the state with the moving average of a parameter.
std::string AverageName(absl::string_view parameter);

// Errors: InvalidArgument (a setting outside its range, a pattern that no
// parameter matches, or an existing value with a state's name).
absl::Status AddOptimizer(models::Graph& graph, const Gradients& gradients,
                          const OptimizerOptions& options);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_ADD_OPTIMIZER_H_
