// Runs one operator's gradient rule by itself.
#ifndef LOADLINE_TESTS_MODELS_DIFFERENTIATE_H_
#define LOADLINE_TESTS_MODELS_DIFFERENTIATE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/graph.h"
#include "tests/models/graph_test_util.h"

namespace loadline::models {

// One forward node over inputs x0, x1, ... and its gradient.
struct Differentiated {
  // Operators of the backward nodes, in order.
  std::vector<std::string> Ops() const;
  // Forward values (and not gradients) that backward nodes read: what must be
  // saved. Inputs are x0, x1, ..., outputs y, y.1, ...
  std::vector<std::string> Saved() const;

  Graph graph;
  size_t forward_values = 0;       // the graph's first; gradients follow
  std::vector<ValueId> gradients;  // by input; kNoValue: none
  absl::Status status;             // of the rule
};

struct DifferentiateOptions {
  Attributes attributes;
  std::vector<bool> wanted;        // by input; all floats where empty
  std::vector<bool> has_gradient;  // by output; output 0 alone where empty
  std::vector<std::pair<int, Tensor>> constants;  // inputs with known contents
};

// Fails the test unless exactly the wanted inputs have gradients, of their own
// types, and the graph verifies.
Differentiated Differentiate(const char* op,
                             const std::vector<TensorType>& inputs,
                             DifferentiateOptions options = {});

}  // namespace loadline::models

#endif  // LOADLINE_TESTS_MODELS_DIFFERENTIATE_H_
