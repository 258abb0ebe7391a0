// Cases of layers, losses and optimizers.
#include <cmath>

#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::Attributes;
using models::Ints;

void AddConvCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints x, w, strides, pads, dilations;
    int64_t group;
  };
  for (const Shape& s : std::vector<Shape>{
           {{2, 3, 8, 8}, {5, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
           {{2, 3, 8, 8}, {5, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1},
           {{1, 16, 4, 4}, {32, 16, 1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1},
           {{2, 16, 1, 1}, {16, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
           {{2, 4, 9, 7}, {6, 2, 3, 2}, {1, 2}, {0, 1, 2, 0}, {1, 1}, 2},
           {{2, 4, 9, 9}, {4, 1, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 4},
           {{1, 1, 5, 5}, {1, 1, 5, 5}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
           // Images smaller than the kernel; ends that no output reads.
           {{8, 24, 2, 3}, {40, 24, 3, 3}, {2, 1}, {1, 1, 1, 1}, {1, 1}, 1},
           {{4, 32, 3, 3}, {32, 32, 3, 2}, {1, 1}, {2, 1, 2, 0}, {2, 1}, 1},
           {{3, 48, 3, 4}, {32, 48, 1, 1}, {2, 3}, {0, 0, 0, 0}, {1, 1}, 1},
           {{5, 32, 2}, {48, 32, 3}, {1}, {1, 1}, {1}, 1},
           {{2, 3, 17}, {4, 3, 5}, {2}, {2, 1}, {1}, 1},
           // Few channels: in unequal parts of the batch on a CPU.
           {{7, 4, 8, 8}, {4, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
           {{2, 4, 5, 6, 7},
            {6, 2, 3, 2, 3},
            {1, 2, 1},
            {1, 0, 2, 0, 1, 2},
            {1, 1, 2},
            2}}) {
    const Ints kernel(s.w.begin() + 2, s.w.end());
    Attributes attributes = {{"kernel_shape", kernel},
                             {"strides", s.strides},
                             {"pads", s.pads},
                             {"dilations", s.dilations},
                             {"group", s.group}};
    const std::string what = std::to_string(cases.size());
    cases.push_back(
        {"Conv", what, {F32(s.x, -1, 1), F32(s.w, -1, 1)}, attributes, 2e-5});
    cases.push_back({"Conv",
                     what + " with bias",
                     {F32(s.x, -1, 1), F32(s.w, -1, 1), F32({s.w[0]})},
                     attributes,
                     2e-5});
    Ints y = {s.x[0], s.w[0]};
    const size_t spatial = kernel.size();
    for (size_t d = 0; d < spatial; ++d) {
      y.push_back((s.x[2 + d] + s.pads[d] + s.pads[spatial + d] -
                   s.dilations[d] * (kernel[d] - 1) - 1) /
                      s.strides[d] +
                  1);
    }
    Attributes input_grad = attributes;
    input_grad.Set("shape", s.x);
    cases.push_back({"ConvInputGrad",
                     what,
                     {F32(y, -1, 1), F32(s.w, -1, 1)},
                     input_grad,
                     2e-5});
    Attributes weight_grad = attributes;
    weight_grad.Set("shape", s.w);
    cases.push_back({"ConvWeightGrad",
                     what,
                     {F32(y, -1, 1), F32(s.x, -1, 1)},
                     weight_grad,
                     2e-5});
  }
}

void AddBatchNormCases(std::vector<OperatorCase>& cases) {
  const Attributes attributes = {{"epsilon", 1e-5}};
  for (const Ints& x : std::vector<Ints>{{4, 3, 5, 5},
                                         {8, 37, 2, 2},
                                         {5, 300, 1, 1},
                                         {6, 5},
                                         {2, 3, 9, 11},
                                         {70, 3, 4, 4},
                                         {2, 2, 96, 96},
                                         {3, 2, 67}}) {
    const Ints c = {x[1]};
    const std::string what = std::to_string(cases.size());
    cases.push_back({"BatchNormTraining",
                     what,
                     {F32(x, -1, 3), F32(c), F32(c)},
                     attributes,
                     1e-5});
    cases.push_back({"BatchNormGrad",
                     what,
                     {F32(x), F32(x), F32(c), F32(c, -1, 1), F32(c, 0.5, 2)},
                     {},
                     2e-5});
    cases.push_back({"BatchNormalization",
                     what,
                     {F32(x), F32(c), F32(c), F32(c), F32(c, 0.5, 2)},
                     attributes,
                     1e-5});
  }
  cases.push_back({"BatchNormTraining",
                   "far from zero",
                   {F32({8, 3, 8, 8}, 99, 101), F32({3}), F32({3})},
                   attributes,
                   1e-4,
                   false});
  cases.push_back(
      {"RunningStatsUpdate",
       "",
       {F32({7}), F32({7}, 0.5, 2), F32({7}), F32({7}, 0.5, 2)},
       {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", int64_t{50}}}});
  cases.push_back(
      {"RunningStatsUpdate",
       "of three parts",
       {F32({7}), F32({7}, 0.5, 2), F32({7}), F32({7}, 0.5, 2), F32({7}),
        F32({7}, 0.5, 2), F32({7}), F32({7}, 0.5, 2)},
       {{"momentum", 0.9}, {"epsilon", 1e-5}, {"count", int64_t{50}}}});
}

void AddLayerNormCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints x;
    int64_t axis;
  };
  for (const Shape& s : std::vector<Shape>{{{5, 7}, -1},
                                           {{2, 3, 64}, -1},
                                           {{2, 3, 4, 5}, 2},
                                           {{3, 1000}, 1},
                                           {{200, 33}, 1},
                                           {{3, 2500}, 1},
                                           {{2, 2056}, 1},
                                           {{1, 2}, 1}}) {
    const int64_t axis = s.axis < 0 ? s.axis + s.x.size() : s.axis;
    const Ints rows(s.x.begin(), s.x.begin() + axis);
    const Ints row(s.x.begin() + axis, s.x.end());
    const Attributes attributes = {{"axis", s.axis}, {"epsilon", 1e-5}};
    const std::string what = std::to_string(cases.size());
    cases.push_back({"LayerNormalization",
                     what,
                     {F32(s.x, -1, 3), F32(row), F32(row)},
                     attributes,
                     1e-5});
    cases.push_back({"LayerNormalization",
                     what + " without bias",
                     {F32(s.x, -1, 3), F32(row)},
                     attributes,
                     1e-5});
    cases.push_back(
        {"LayerNormGrad",
         what,
         {F32(s.x), F32(s.x), F32(row), F32(rows, -1, 1), F32(rows, 0.5, 2)},
         {{"axis", axis}},
         5e-5});
  }
}

void AddSoftmaxCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints x;
    int64_t axis;
  };
  for (const Shape& s : std::vector<Shape>{{{5, 7}, -1},
                                           {{2, 3, 130}, 2},
                                           {{2, 10, 3}, 1},
                                           {{3, 4, 70}, 1},
                                           {{6, 5}, 0},
                                           {{4, 1}, 1},
                                           {{2, 5000}, 1},
                                           {{2, 2051}, 1}}) {
    const int64_t axis = s.axis < 0 ? s.axis + s.x.size() : s.axis;
    const Attributes attributes = {{"axis", s.axis}};
    const Attributes grad = {{"axis", axis}};
    const std::string what = std::to_string(cases.size());
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      cases.push_back({op, what, {F32(s.x, -8, 8)}, attributes, 4e-6});
    }
    cases.push_back(
        {"SoftmaxGrad", what, {F32(s.x), F32(s.x, 0, 1)}, grad, 1e-4});
    cases.push_back(
        {"LogSoftmaxGrad", what, {F32(s.x), F32(s.x, -5, 0)}, grad, 1e-4});
  }
}

void AddAttentionCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints leading;  // [batch, heads] where interleaved
    int64_t rows, columns, width, value_width, causal, interleaved;
    std::optional<Ints> mask;
    double ratio;
  };
  const std::nullopt_t none = std::nullopt;
  for (const Shape& s : std::vector<Shape>{
           {{2}, 3, 3, 4, 4, 0, 0, none, 0},
           {{2}, 5, 5, 3, 3, 1, 0, none, 0},
           {{2, 2}, 3, 3, 2, 2, 1, 1, none, 0},
           {{}, 4, 6, 3, 5, 0, 0, none, 0.4},
           {{}, 6, 3, 3, 2, 1, 0, none, 0},
           {{2, 2}, 3, 4, 2, 2, 0, 0, Ints{2, 1, 1, 4}, 0},
           {{2, 3}, 70, 70, 16, 16, 1, 1, none, 0},
           {{1, 2}, 130, 67, 20, 24, 0, 1, none, 0.3},
           {{2, 2}, 65, 129, 17, 80, 1, 0, Ints{2, 65, 129}, 0.1},
           {{1, 2}, 9, 200, 64, 64, 0, 1, Ints{9, 1}, 0},
           {{3}, 5, 9, 8, 16, 0, 0, none, 0},
           {{3}, 1, 1, 1, 1, 0, 0, none, 0}}) {
    const auto dims = [&](int64_t rows, int64_t width) {
      if (s.interleaved != 0) {
        return Ints{s.leading[0], rows, s.leading[1], width};
      }
      Ints all = s.leading;
      all.insert(all.end(), {rows, width});
      return all;
    };
    Ints statistic = s.leading;
    statistic.push_back(s.rows);
    const InputSpec q = F32(dims(s.rows, s.width), -1, 1);
    const InputSpec k = F32(dims(s.columns, s.width), -1, 1);
    const InputSpec v = F32(dims(s.columns, s.value_width));
    const InputSpec y = F32(dims(s.rows, s.value_width));
    // About the true value, so that the probabilities stay below 1.
    const double lse = std::log(static_cast<double>(s.columns));
    const Attributes attributes = {{"scale", 0.4},
                                   {"causal", s.causal},
                                   {"interleaved", s.interleaved},
                                   {"ratio", s.ratio},
                                   {"salt", int64_t{7}},
                                   {"offset", s.ratio > 0.35 ? 4243 : 0}};
    OperatorCase forward = {"Attention", std::to_string(cases.size()),
                            {q, k, v},   attributes,
                            1e-5,        !s.mask.has_value()};
    OperatorCase grad = {"AttentionGrad",
                         forward.what,
                         {y, q, k, v, y, F32(statistic, lse + 1, lse + 2)},
                         attributes,
                         2e-5};
    if (s.mask.has_value()) {
      forward.inputs.push_back(F32(*s.mask));
      grad.inputs.push_back(F32(*s.mask));
    }
    cases.push_back(std::move(forward));
    cases.push_back(std::move(grad));
  }
}

void AddPoolCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints x, kernel, strides, pads, dilations, y;
    int64_t ceil;
  };
  for (const Shape& s : std::vector<Shape>{
           {{2, 3, 8, 8}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {4, 4}, 0},
           {{2, 3, 7, 9}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {4, 5}, 0},
           {{1, 2, 8, 8}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {4, 4}, 1},
           {{1, 2, 9, 9}, {3, 2}, {1, 1}, {0, 1, 2, 0}, {2, 1}, {7, 9}, 0},
           {{2, 3, 11}, {3}, {2}, {1, 1}, {1}, {6}, 0},
           {{1, 1, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 0}}) {
    Attributes attributes = {{"kernel_shape", s.kernel},
                             {"strides", s.strides},
                             {"pads", s.pads},
                             {"dilations", s.dilations},
                             {"ceil_mode", s.ceil}};
    const std::string what = std::to_string(cases.size());
    Ints y = {s.x[0], s.x[1]};
    y.insert(y.end(), s.y.begin(), s.y.end());
    // Far apart, so that rounding cannot change which element is largest.
    cases.push_back({"MaxPool", what, {F32(s.x, -20, 20)}, attributes, 0});
    Attributes max_grad = attributes;
    max_grad.Set("shape", s.x);
    cases.push_back(
        {"MaxPoolGrad", what, {F32(y), I32(y, 0, 0)}, max_grad, 4e-6});
    for (int64_t padding : {0, 1}) {
      attributes.Set("count_include_pad", padding);
      const std::string name = what + (padding != 0 ? " padded" : "");
      cases.push_back({"AveragePool", name, {F32(s.x)}, attributes});
      Attributes grad = attributes;
      grad.Set("shape", s.x);
      cases.push_back({"AveragePoolGrad", name, {F32(y)}, grad, 4e-6});
    }
  }
}

void AddDropoutCases(std::vector<OperatorCase>& cases) {
  for (const Ints& dims : std::vector<Ints>{{7, 13}, {3}, {}, {0}, {5000}}) {
    cases.push_back({"RandomUniform",
                     std::to_string(cases.size()),
                     {F32({})},
                     {{"shape", dims}, {"salt", int64_t{5}}},
                     1e-7});
  }
  for (double ratio : {0.0, 0.1, 0.5, 0.9}) {
    for (const Ints& dims : std::vector<Ints>{{7, 13}, {1}, {0}, {40001}}) {
      cases.push_back({"Dropout",
                       std::to_string(cases.size()),
                       {F32(dims)},
                       {{"ratio", ratio}, {"salt", int64_t{5}}}});
    }
  }
  for (const int64_t offset : {1, 3, 4, 1000006}) {
    for (const Ints& dims : std::vector<Ints>{{7, 13}, {2}, {40001}}) {
      cases.push_back(
          {"Dropout",
           "offset " + std::to_string(cases.size()),
           {F32(dims)},
           {{"ratio", 0.4}, {"salt", int64_t{5}}, {"offset", offset}}});
    }
    cases.push_back(
        {"RandomUniform",
         "offset " + std::to_string(cases.size()),
         {F32({})},
         {{"shape", Ints{5, 7}}, {"salt", int64_t{5}}, {"offset", offset}},
         1e-7});
  }
}

void AddLossCases(std::vector<OperatorCase>& cases) {
  struct Shape {
    Ints logits, target;
    int64_t axis;
  };
  for (const Shape& s : std::vector<Shape>{{{5, 10}, {5}, 1},
                                           {{2, 3, 65}, {2, 3}, -1},
                                           {{2, 10, 7}, {2, 7}, 1},
                                           {{3, 4, 9, 9}, {3, 9, 9}, 1},
                                           {{700, 3}, {700}, 1},
                                           {{1, 1}, {1}, 1},
                                           {{6, 5000}, {6}, 1}}) {
    const int64_t axis = s.axis < 0 ? s.axis + s.logits.size() : s.axis;
    const double last = static_cast<double>(s.logits[axis] - 1);
    const Attributes attributes = {{"class_axis", s.axis}};
    const Attributes grad = {{"class_axis", axis}};
    const std::string what = std::to_string(cases.size());
    const InputSpec logits = F32(s.logits, -6, 6);
    const InputSpec lse = F32(s.target, 3, 8);
    cases.push_back({"SoftmaxCrossEntropy",
                     what,
                     {logits, I64(s.target, 0, last)},
                     attributes});
    cases.push_back({"SoftmaxCrossEntropy",
                     what + " i32",
                     {logits, I32(s.target, 0, last)},
                     attributes});
    cases.push_back({"SoftmaxCrossEntropyGrad",
                     what,
                     {F32({}), logits, I64(s.target, 0, last), lse},
                     grad,
                     1e-5});
    cases.push_back({"SoftmaxCrossEntropyGrad",
                     what + " i32",
                     {F32({}), logits, I32(s.target, 0, last), lse},
                     grad,
                     1e-5});
    cases.push_back({"SoftmaxCrossEntropy",
                     what + " count",
                     {logits, I64(s.target, 0, last), F32({}, 1, 40)},
                     attributes});
    cases.push_back(
        {"SoftmaxCrossEntropyGrad",
         what + " count",
         {F32({}), logits, I64(s.target, 0, last), lse, F32({}, 1, 40)},
         grad,
         1e-5});
    cases.push_back(
        {"CrossEntropyRows", what, {logits, I64(s.target, 0, last)}, grad});
    const InputSpec hit = F32(s.target, -6, 3);
    cases.push_back(
        {"CrossEntropyMean", what, {lse, hit, I64(s.target, 0, last)}, {}});
    cases.push_back({"CrossEntropyMean",
                     what + " count",
                     {lse, hit, I64(s.target, 0, last), F32({}, 1, 40)},
                     {}});
    cases.push_back({"CountTargets", what, {I32(s.target, 0, last)}, {}, 0});
    cases.push_back({"CountTargets",
                     what + " weighted",
                     {I64(s.target, 0, last), I64(s.target, 0, last),
                      F32({s.logits[axis]}, 0, 2)},
                     {}});
    cases.push_back({"CountTargets",
                     what + " of two",
                     {I64(s.target, -102, -98), I64(s.target, -102, -98)},
                     {},
                     0});
    cases.push_back({"CountCorrect",
                     what,
                     {logits, I64(s.target, 0, last)},
                     attributes,
                     0});
  }
  for (const Ints& dims : std::vector<Ints>{{7, 13}, {1}, {}, {3, 127, 131}}) {
    const std::string what = std::to_string(cases.size());
    cases.push_back({"MseLoss", what, {F32(dims), F32(dims)}, {}});
    cases.push_back({"MseLossGrad", what, {F32({}), F32(dims), F32(dims)}, {}});
  }
}

void AddOptimizerCases(std::vector<OperatorCase>& cases) {
  for (const Ints& dims : std::vector<Ints>{{7, 13}, {1}, {40001}}) {
    const std::string what = std::to_string(cases.size());
    for (int64_t nesterov : {0, 1}) {
      cases.push_back({"Sgd",
                       what + (nesterov != 0 ? " nesterov" : " momentum"),
                       {F32(dims), F32(dims), F32(dims)},
                       {{"momentum", 0.9},
                        {"weight_decay", 0.01},
                        {"nesterov", nesterov}}});
    }
    cases.push_back({"Sgd",
                     what + " plain",
                     {F32(dims), F32(dims)},
                     {{"weight_decay", 0.1}}});
    const Attributes adam = {{"beta1", 0.9},
                             {"beta2", 0.999},
                             {"epsilon", 1e-8},
                             {"weight_decay", 0.01}};
    Attributes half_rate = adam;
    half_rate.Set("rate", 0.5);
    for (const char* op : {"AdamW", "Adam"}) {
      cases.push_back({op,
                       what,
                       {F32(dims), F32(dims), F32(dims), F32(dims, 0, 2)},
                       adam,
                       1e-5});
      cases.push_back(
          {op,
           what + " factors",
           {F32(dims), F32(dims), F32(dims), F32(dims, 0, 2), F32({}, 0.1, 1)},
           half_rate,
           1e-5});
    }
    cases.push_back({"Sgd",
                     what + " factors",
                     {F32(dims), F32(dims), std::nullopt, F32({}, 0.1, 1)},
                     {{"weight_decay", 0.1}, {"rate", 2.0}}});
    cases.push_back({"Lion",
                     what,
                     {F32(dims), F32(dims), F32(dims)},
                     {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.1}}});
    cases.push_back({"Lion",
                     what + " factors",
                     {F32(dims), F32(dims), F32(dims), F32({}, 0.1, 1)},
                     {{"beta1", 0.9},
                      {"beta2", 0.99},
                      {"weight_decay", 0.1},
                      {"rate", 0.5}}});
    cases.push_back(
        {"AverageUpdate", what, {F32(dims), F32(dims)}, {{"decay", 0.75}}});
    cases.push_back({"SumSquares", what, {F32(dims)}, {}, 1e-5});
  }
  for (int64_t n : {1, 300}) {
    for (double norm : {0.5, 1e3}) {
      cases.push_back({"ClipFactor",
                       std::to_string(cases.size()),
                       {F32({n}, 0, 2)},
                       {{"max_norm", norm}}});
    }
  }
}

}  // namespace

void AddNetworkCases(std::vector<OperatorCase>& cases) {
  AddConvCases(cases);
  AddBatchNormCases(cases);
  AddLayerNormCases(cases);
  AddSoftmaxCases(cases);
  AddAttentionCases(cases);
  AddPoolCases(cases);
  AddDropoutCases(cases);
  AddLossCases(cases);
  AddOptimizerCases(cases);
}

}  // namespace loadline::conformance
