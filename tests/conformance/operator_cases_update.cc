// Cases of optimizers beyond those in operator_cases_network.cc: Adagrad,
// dampening, and updates with a learning rate and a count of their own, as
// ONNX's operators have them ("own" in what they test).
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::Attributes;
using models::Ints;

using Inputs = std::vector<std::optional<InputSpec>>;

// Parameter, gradient and `states` states that are not negative.
Inputs Tensors(const Ints& dims, int states) {
  Inputs inputs = {F32(dims), F32(dims)};
  for (int i = 0; i < states; ++i) inputs.push_back(F32(dims, 0.1, 2));
  return inputs;
}

Inputs With(Inputs inputs, const Inputs& more) {
  inputs.insert(inputs.end(), more.begin(), more.end());
  return inputs;
}

// No factor; a learning rate, and `count` updates before this one.
Inputs Own(double count) {
  return {std::nullopt, F32({}, 0.05, 0.2), F32({}, count, count)};
}

}  // namespace

void AddUpdateCases(std::vector<OperatorCase>& cases) {
  const Attributes adagrad = {
      {"epsilon", 1e-10}, {"weight_decay", 0.1}, {"rate_decay", 0.25}};
  const Attributes sgd = {{"momentum", 0.9},
                          {"weight_decay", 0.01},
                          {"dampening", 0.75},
                          {"nesterov", 1}};
  const Attributes adam = {{"beta1", 0.9},     {"beta2", 0.999},
                           {"epsilon", 1e-2},  {"weight_decay", 0.01},
                           {"epsilon_hat", 1}, {"decay_after", 0.125}};
  for (const Ints& dims : std::vector<Ints>{{7, 13}, {1}, {0, 3}, {40001}}) {
    const std::string what = std::to_string(cases.size());
    cases.push_back({"Adagrad", what, Tensors(dims, 1), adagrad, 1e-5});
    cases.push_back({"Adagrad",
                     what + " factors",
                     With(Tensors(dims, 1), {F32({}, 0.1, 1)}),
                     {{"epsilon", 1e-10}, {"weight_decay", 0.0}, {"rate", 0.5}},
                     1e-5});
    cases.push_back({"Sgd", what + " dampening", Tensors(dims, 1), sgd});
    for (const double count : {0, 1, 30}) {
      const std::string own = what + " own " + std::to_string(count);
      cases.push_back({"Sgd", own, With(Tensors(dims, 1), Own(count)), sgd});
      cases.push_back(
          {"Adagrad", own, With(Tensors(dims, 1), Own(count)), adagrad, 1e-5});
      cases.push_back(
          {"Adam", own, With(Tensors(dims, 2), Own(count)), adam, 1e-5});
    }
  }
}

}  // namespace loadline::conformance
