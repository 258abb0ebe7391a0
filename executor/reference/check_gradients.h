// Every gradient rule that a training step uses, against finite differences in
// double, at the step's own attributes and shapes.
//
// For random weights r, directions d and inputs x of one node, the slope of
// L(x) = sum of r y(x) along d must be the product of d with the gradient that
// the rule's nodes compute. Both sides use the references (reference.h), so
// what is left of a difference is the rule's error. Axes of large nodes are
// made smaller, all that are equally long together, as long as the operator
// accepts the new shapes.
#ifndef LOADLINE_EXECUTOR_REFERENCE_CHECK_GRADIENTS_H_
#define LOADLINE_EXECUTOR_REFERENCE_CHECK_GRADIENTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/graph.h"
#include "models/ops/operator.h"

namespace loadline::reference {

// Rules above this relative error are wrong.
inline constexpr double kMostGradientError = 1e-6;

// What was found of one operator.
struct GradientCheck {
  std::string op;
  int64_t nodes = 0;    // that pass gradients on
  int64_t checked = 0;  // distinct attributes and shapes among them
  int64_t smaller = 0;  // of these, with shorter axes
  double worst = 0;     // relative error; NaN or infinite is wrong too
  std::string node;     // with the worst error
  std::string types;    // at which it was checked: "f32[4,8], f32[8,3]"
  int64_t skipped = 0;  // distinct ones that could not be checked
  std::string why;      // of the last of these

  bool Wrong() const { return !(worst <= kMostGradientError); }
};

struct GradientCheckOptions {
  uint64_t seed = 1;
  // Work of one evaluation of a node, in floating-point operations.
  double most_flops = 4e5;
  // Instead of the operators' own rules; for tests.
  std::function<absl::Status(models::GradientContext&)> rule;
};

// By operator's name. `step`: a graph with its parameters; nodes of the
// backward pass and updates are left out.
std::vector<GradientCheck> CheckGradients(
    const models::Graph& step, const GradientCheckOptions& options = {});

}  // namespace loadline::reference

#endif  // LOADLINE_EXECUTOR_REFERENCE_CHECK_GRADIENTS_H_
