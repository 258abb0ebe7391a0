// Runs a graph node by node in double, with the references of its operators.
#ifndef LOADLINE_EXECUTOR_REFERENCE_EVALUATE_H_
#define LOADLINE_EXECUTOR_REFERENCE_EVALUATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "executor/device/kernel.h"
#include "executor/reference/reference.h"
#include "models/graph.h"

namespace loadline::reference {

// The numbers of a tensor. Unimplemented: its type is f16 or bf16.
absl::StatusOr<Array> ToArray(const models::Tensor& tensor);

// All values of the graph, by id. `given`: its inputs, in their order.
// Unimplemented: an operator without a reference.
absl::StatusOr<std::vector<Array>> Evaluate(
    const models::Graph& graph, const std::vector<Array>& given,
    const executor::StepScalars& scalars);

}  // namespace loadline::reference

#endif  // LOADLINE_EXECUTOR_REFERENCE_EVALUATE_H_
