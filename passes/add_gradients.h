// Reverse-mode differentiation: appends the nodes that compute the gradient of
// the loss with respect to every parameter it depends on.
//
//   y = MatMul(x, w)                 (appended:)
//   loss = MseLoss(y, target)   ->   y.grad = MseLossGrad(...)
//                                    w.grad = MatMul(x, y.grad) {trans_a=1}
//
// The rules are those of the operator table (models/ops/operator.h). No
// gradients are computed for inputs, constants or states. If several nodes read
// a value, their contributions are added in reverse order of the readers.
#ifndef LOADLINE_PASSES_ADD_GRADIENTS_H_
#define LOADLINE_PASSES_ADD_GRADIENTS_H_

#include <map>

#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::passes {

// Parameter -> its gradient, which has the parameter's type. A parameter that
// the loss does not depend on is not in the map.
using Gradients = std::map<models::ValueId, models::ValueId>;

// `loss`: a value with one element. Errors: InvalidArgument (the loss has more
// elements or depends on no parameter), Unimplemented listing every node
// between parameters and loss that has no gradient rule.
absl::StatusOr<Gradients> AddGradients(models::Graph& graph,
                                       models::ValueId loss);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_ADD_GRADIENTS_H_
