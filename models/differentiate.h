// Reverse-mode differentiation of a graph by the rules of the operator table
// (models/ops/operator.h).
#ifndef LOADLINE_MODELS_DIFFERENTIATE_H_
#define LOADLINE_MODELS_DIFFERENTIATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::models {

// By value: whether it depends on a target through floats, and a gradient flows
// to it. Nothing flows through the nodes that make a target or a held value.
std::vector<bool> ActiveValues(const Graph& graph,
                               const std::vector<ValueId>& targets,
                               const std::vector<ValueId>& held = {});

struct Differential {
  ValueId y = kNoValue;  // one f32 number
  // Independent variables: nothing flows through the nodes that make them.
  // Gradients are computed for the targets.
  std::vector<ValueId> targets;
  std::vector<ValueId> held;
  std::string seed_name;  // of the constant 1, y's own gradient
  std::string ends;       // for errors: "the loss and a parameter"
};

// Appends the nodes of phase kBackward that compute dy/dtarget; returns a value
// of the target's type for each, kNoValue where y does not depend on it. If
// several nodes read a value, their contributions are added in reverse order of
// the readers. Unimplemented: lists every node between a target and y that has
// no gradient rule.
absl::StatusOr<std::vector<ValueId>> Differentiate(Graph& graph,
                                                   const Differential& what);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_DIFFERENTIATE_H_
