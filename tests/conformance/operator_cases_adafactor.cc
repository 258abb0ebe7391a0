// Cases of Adafactor: stacks of matrices, single rows and columns, matrices
// whose columns are added in parts, and parameters with fewer than two axes.
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::Attributes;
using models::Ints;

}  // namespace

void AddAdafactorCases(std::vector<OperatorCase>& cases) {
  const Attributes usual = {{"beta2_decay", -0.8},
                            {"epsilon1", 1e-7},
                            {"epsilon2", 1e-3},
                            {"threshold", 1.0},
                            {"weight_decay", 0.0}};
  // Every bound decides here: of estimates, of the step's size, of the update.
  const Attributes bounds = {{"beta2_decay", -0.5},  {"epsilon1", 0.9},
                             {"epsilon2", 4.0},      {"threshold", 0.25},
                             {"weight_decay", 0.25}, {"rate", 0.5}};
  for (const Ints& dims : std::vector<Ints>{{},
                                            {7},
                                            {40001},
                                            {0, 3},
                                            {1, 1},
                                            {5, 1},
                                            {1, 9},
                                            {70, 131},
                                            {1100, 3},
                                            {3, 2100},
                                            {4, 3, 3, 2}}) {
    const std::string what =
        std::to_string(dims.size()) + " axes, " + std::to_string(cases.size());
    std::vector<std::optional<InputSpec>> inputs = {F32(dims), F32(dims)};
    if (dims.size() < 2) {
      inputs.push_back(F32(dims, 0.1, 2));
      inputs.push_back(std::nullopt);
    } else {
      Ints row = dims, column = dims;
      row[dims.size() - 1] = 1;
      column[dims.size() - 2] = 1;
      inputs.push_back(F32(row, 0.1, 2));
      inputs.push_back(F32(column, 0.1, 2));
    }
    auto clipped = inputs;
    clipped.push_back(F32({}, 0.1, 1));
    if (dims.size() < 2) inputs.pop_back();
    cases.push_back({"Adafactor", what, inputs, usual, 1e-5});
    cases.push_back({"Adafactor", what + " bounds", clipped, bounds, 1e-5});
  }
}

}  // namespace loadline::conformance
