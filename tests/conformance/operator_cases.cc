// Elementwise cases, and the complete table.
#include "tests/conformance/operator_cases.h"

#include "models/ops/curves.h"

namespace loadline::conformance {

using models::Attributes;
using models::DType;
using models::Ints;

InputSpec F32(Ints dims, double low, double high) {
  return {{DType::kF32, std::move(dims)}, low, high};
}
InputSpec I64(Ints dims, double low, double high) {
  return {{DType::kI64, std::move(dims)}, low, high};
}
InputSpec U8(Ints dims, double low, double high) {
  return {{DType::kU8, std::move(dims)}, low, high};
}
InputSpec I32(Ints dims, double low, double high) {
  return {{DType::kI32, std::move(dims)}, low, high};
}
InputSpec Bool(Ints dims) { return {{DType::kBool, std::move(dims)}, 0, 1}; }

namespace {

// Sizes: no multiple of a vector width, one element, a scalar, empty, and large
// enough to be divided among threads.
const std::vector<Ints> kSizes = {{7, 13}, {1}, {}, {0, 5}, {3, 127, 131}};

std::string SizeName(const Ints& dims) {
  return models::TensorType{DType::kF32, dims}.ToString();
}

void AddUnaryCases(std::vector<OperatorCase>& cases) {
  for (const Ints& dims : kSizes) {
    const std::string what = SizeName(dims);
    for (const char* op : {"Sigmoid", "Tanh", "Erf", "Neg"}) {
      cases.push_back({op, what, {F32(dims, -6, 6)}, {}});
    }
    // Away from 0, where Relu and Abs have a kink; once positive, once
    // negative.
    for (const char* op : {"Relu", "Abs"}) {
      cases.push_back({op, what + " above", {F32(dims, 0.1, 3)}, {}});
      cases.push_back({op, what + " below", {F32(dims, -3, -0.1)}, {}});
      cases.push_back({op, what, {F32(dims)}, {}, 2e-6, false});
    }
    cases.push_back({"Exp", what, {F32(dims, -5, 3)}, {}});
    cases.push_back({"Log", what, {F32(dims, 0.1, 20)}, {}});
    cases.push_back({"Sqrt", what, {F32(dims, 0.1, 20)}, {}});
    cases.push_back({"Reciprocal", what, {F32(dims, 0.5, 4)}, {}});
    cases.push_back({"Not", what, {Bool(dims)}, {}});
    for (const char* form : {"none", "tanh"}) {
      const Attributes attributes = {{"approximate", std::string(form)}};
      cases.push_back({"Gelu", what + form, {F32(dims, -5, 5)}, attributes});
      cases.push_back(
          {"GeluGrad", what + form, {F32(dims), F32(dims, -5, 5)}, attributes});
    }
    for (const char* op : {"ReluGrad", "TanhGrad", "SigmoidGrad", "ErfGrad"}) {
      cases.push_back({op, what, {F32(dims), F32(dims)}, {}, 2e-6, false});
    }
  }
  cases.push_back({"Relu", "on the kink", {F32({3}, 0, 0)}, {}, 0, false});
}

void AddCurveCases(std::vector<OperatorCase>& cases) {
  models::ForEachCurve(models::Curves(), [&cases](auto curve) {
    const models::CurveFacts& facts = decltype(curve)::kFacts;
    const std::string name(facts.name), gradient(facts.gradient);
    Attributes attributes;
    for (const models::CurveAttribute& a : facts.attributes) {
      if (!a.name.empty()) attributes.Set(a.name, a.fallback);
    }
    for (const Ints& dims : kSizes) {
      const std::string what = SizeName(dims);
      cases.push_back(
          {name, what, {F32(dims, facts.low, facts.high)}, attributes});
      cases.push_back({name,
                       what + " whole",
                       {F32(dims, facts.lowest, facts.highest)},
                       attributes,
                       2e-6,
                       false});
      cases.push_back({gradient,
                       what,
                       {F32(dims), F32(dims, facts.lowest, facts.highest)},
                       attributes,
                       2e-6,
                       false});
    }
  });
}

void AddCastCases(std::vector<OperatorCase>& cases) {
  for (const InputSpec& from :
       {F32({5, 7}, -9, 9), I64({5, 7}, -9, 9), I32({5, 7}, -9, 9),
        U8({5, 7}, 0, 255), Bool({5, 7})}) {
    for (const char* to : {"f32", "i64", "i32", "bool"}) {
      cases.push_back({"Cast",
                       from.type.ToString() + " to " + to,
                       {from},
                       {{"to", std::string(to)}},
                       0});
    }
  }
}

struct Shapes {
  Ints a, b;
};
const std::vector<Shapes> kBroadcasts = {{{7, 13}, {7, 13}},
                                         {{7, 13}, {13}},
                                         {{7, 13}, {}},
                                         {{}, {7, 13}},
                                         {{7, 1}, {1, 13}},
                                         {{2, 3, 5, 7}, {3, 1, 1}},
                                         {{1}, {1}},
                                         {{5, 1, 7}, {4, 1}},
                                         {{0, 3}, {3}},
                                         {{3, 127, 131}, {131}},
                                         {{3, 127, 131}, {3, 127, 131}},
                                         // Whole vectors of any type.
                                         {{3, 8, 16}, {16}},
                                         {{3, 8, 16}, {8, 1}},
                                         {{5, 32}, {5, 32}}};

void AddBroadcastCases(std::vector<OperatorCase>& cases) {
  for (const auto& [a, b] : kBroadcasts) {
    const std::string what = SizeName(a) + " with " + SizeName(b);
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min"}) {
      cases.push_back({op, what, {F32(a), F32(b)}, {}});
      cases.push_back(
          {op, what + " i64", {I64(a, -9, 9), I64(b, -9, 9)}, {}, 0});
      cases.push_back(
          {op, what + " i32", {I32(a, -9, 9), I32(b, -9, 9)}, {}, 0});
    }
    cases.push_back({"Div", what, {F32(a), F32(b, 0.5, 3)}, {}});
    cases.push_back(
        {"Div", what + " i64", {I64(a, -50, 50), I64(b, 1, 9)}, {}, 0});
    cases.push_back(
        {"Div", what + " i32", {I32(a, -50, 50), I32(b, 1, 9)}, {}, 0});
    cases.push_back({"Pow", what, {F32(a, 0.3, 2), F32(b, -1, 3)}, {}, 4e-6});
    cases.push_back({"Fmod", what, {F32(a, -9, 9), F32(b, 0.5, 3)}, {}});
    cases.push_back({"Equal", what + " bool", {Bool(a), Bool(b)}, {}, 0});
    for (const char* op :
         {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
      cases.push_back({op, what, {F32(a), F32(b)}, {}, 0});
      cases.push_back(
          {op, what + " i64", {I64(a, -2, 2), I64(b, -2, 2)}, {}, 0});
      cases.push_back(
          {op, what + " i32", {I32(a, -2, 2), I32(b, -2, 2)}, {}, 0});
    }
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      cases.push_back(
          {op, what + " i64", {I64(a, -99, 99), I64(b, -99, 99)}, {}, 0});
      cases.push_back(
          {op, what + " i32", {I32(a, -99, 99), I32(b, -99, 99)}, {}, 0});
      cases.push_back(
          {op, what + " u8", {U8(a, 0, 255), U8(b, 0, 255)}, {}, 0});
    }
    for (const char* op : {"And", "Or"}) {
      cases.push_back({op, what, {Bool(a), Bool(b)}, {}, 0});
    }
    cases.push_back({"Where", what, {Bool(a), F32(b), F32({})}, {}, 0});
    cases.push_back(
        {"Where", what + " swapped", {Bool(b), F32(a), F32(b)}, {}, 0});
    cases.push_back({"Where",
                     what + " i64",
                     {Bool(a), I64({}, 0, 9), I64(a, 0, 9)},
                     {},
                     0});
  }
  for (double power : {2.0, 3.0, 1.0, -1.0, 0.5}) {
    cases.push_back({"Pow",
                     "power " + std::to_string(power),
                     {F32({7, 13}, 0.5, 2), F32({}, power, power)},
                     {}});
  }
}

}  // namespace

void AddElementwiseCases(std::vector<OperatorCase>& cases) {
  AddUnaryCases(cases);
  AddCurveCases(cases);
  AddCastCases(cases);
  AddBroadcastCases(cases);
}

std::vector<OperatorCase> OperatorCases() {
  std::vector<OperatorCase> cases;
  AddElementwiseCases(cases);
  AddShapeCases(cases);
  AddNetworkCases(cases);
  AddWeightedLossCases(cases);
  AddUpdateCases(cases);
  AddAdafactorCases(cases);
  AddQuantizeCases(cases);
  AddCodecCases(cases);
  return cases;
}

}  // namespace loadline::conformance
