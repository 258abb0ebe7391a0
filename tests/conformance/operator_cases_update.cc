// Cases of optimizers beyond those in operator_cases_network.cc: Adagrad,
// dampening, and updates with a learning rate and a count of their own, as
// ONNX's operators have them ("own" in what they test), and states in 8 bits.
#include "models/ops/state_blocks.h"
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

// Parameter and gradient of 200 rows; `states` states of some of them.
Inputs Part(int64_t rows, int states) {
  Inputs inputs = {F32({200, 3}), F32({200, 3})};
  for (int i = 0; i < states; ++i) inputs.push_back(F32({rows, 3}, 0.1, 2));
  return inputs;
}

// Updates of a part of the parameter: its beginning, middle and end, and none.
void AddPartCases(std::vector<OperatorCase>& cases) {
  const std::vector<std::pair<int64_t, int64_t>> parts = {
      {0, 64}, {64, 64}, {128, 72}, {64, 0}, {0, 200}};
  for (const auto& [first, rows] : parts) {
    const std::string what =
        "rows from " + std::to_string(first) + ", " + std::to_string(rows);
    const auto at = [start = first * 3](Attributes attributes) {
      attributes.Set("start", start);
      return attributes;
    };
    const Attributes adam = at({{"beta1", 0.9},
                                {"beta2", 0.999},
                                {"epsilon", 1e-2},
                                {"weight_decay", 0.01}});
    cases.push_back({"AdamW", what, Part(rows, 2), adam, 1e-5});
    cases.push_back({"Adam", what + " factor",
                     With(Part(rows, 2), {F32({}, 0.1, 1)}), adam, 1e-5});
    cases.push_back({"Sgd", what, Part(rows, 1),
                     at({{"momentum", 0.9}, {"weight_decay", 0.01}})});
    cases.push_back({"Adagrad", what, Part(rows, 1),
                     at({{"epsilon", 1e-10}, {"weight_decay", 0.1}}), 1e-5});
    cases.push_back(
        {"Lion", what, Part(rows, 1),
         at({{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.1}}), 1e-5,
         /*smooth=*/false});
  }
}

// Any codes; the harness makes the scales.
InputSpec Blocks(int64_t elements) {
  return {models::StateBlocksType(elements), 0, 255};
}

// States in 8 bits: less than a block, whole blocks and the beginning of one,
// nothing, more than one thread's; and a part of the parameter.
void AddBlockCases(std::vector<OperatorCase>& cases) {
  const auto add = [&cases](int64_t elements, int64_t in_states,
                            const Attributes& start) {
    const std::string what =
        "8 bits, " + std::to_string(in_states) +
        (start.Has("start") ? " from " + std::to_string(start.Int("start", 0))
                            : "");
    const auto with = [&start](Attributes attributes) {
      if (start.Has("start")) attributes.Set("start", start.Int("start", 0));
      return attributes;
    };
    const InputSpec p = F32({elements}), state = Blocks(in_states);
    const Attributes adam = with({{"beta1", 0.9},
                                  {"beta2", 0.999},
                                  {"epsilon", 1e-2},
                                  {"weight_decay", 0.01}});
    cases.push_back({"AdamW", what, {p, p, state, state}, adam, 1e-5});
    cases.push_back({"Adam",
                     what + " factor",
                     {p, p, state, state, F32({}, 0.1, 1)},
                     adam,
                     1e-5});
    cases.push_back({"Sgd",
                     what,
                     {p, p, state},
                     with({{"momentum", 0.9}, {"weight_decay", 0.01}}),
                     1e-5});
    cases.push_back(
        {"Lion",
         what,
         {p, p, state},
         with({{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.1}}),
         1e-5,
         /*smooth=*/false});
  };
  for (const int64_t elements : {0, 1, 256, 700, 20001}) {
    add(elements, elements, {});
  }
  add(2000, 512, {{"start", 0}});
  add(2000, 768, {{"start", 512}});
  add(2000, 720, {{"start", 1280}});
  add(2000, 0, {{"start", 512}});
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
  AddPartCases(cases);
  AddBlockCases(cases);
}

}  // namespace loadline::conformance
