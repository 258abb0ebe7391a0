// Elementwise operators, and the helpers of all references.
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "executor/reference/reference.h"
#include "models/ops/curves.h"

namespace loadline::reference {
namespace {

using models::Ints;

void Map(const Call& c, const std::function<double(double)>& f) {
  for (size_t i = 0; i < c.out().values.size(); ++i) {
    c.out().values[i] = f(c.in(0).values[i]);
  }
}

void MapPair(const Call& c, const std::function<double(double, double)>& f) {
  for (size_t i = 0; i < c.out().values.size(); ++i) {
    c.out().values[i] = f(c.in(0).values[i], c.in(1).values[i]);
  }
}

void Broadcast(const Call& c, const std::function<double(double, double)>& f) {
  ForEachIndex(c.out().type.dims, [&](const Ints& index) {
    c.out().values[Position(c.out().type.dims, index)] =
        f(BroadcastAt(c.in(0), index), BroadcastAt(c.in(1), index));
  });
}

double GeluTanh(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / std::numbers::pi) *
                        (x + 0.044715 * x * x * x)));
}

double GeluExact(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

// Slope by the definition of a derivative: good to about 1e-10 in double.
double Slope(const std::function<double(double)>& f, double x) {
  const double h = 1e-3;
  const double coarse = (f(x + h) - f(x - h)) / (2 * h);
  const double fine = (f(x + h / 2) - f(x - h / 2)) / h;
  return (4 * fine - coarse) / 3;
}

double Gelu(const Call& c, double x) {
  return c.attributes.String("approximate", "none") == "tanh" ? GeluTanh(x)
                                                              : GeluExact(x);
}

void AddUnary(ReferenceTable& t) {
  const std::map<std::string, double (*)(double)> functions = {
      {"Relu", [](double x) { return x > 0 ? x : 0.0; }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Not", [](double x) { return x == 0 ? 1.0 : 0.0; }}};
  for (const auto& [name, f] : functions) {
    t[name] = [f = f](const Call& c) { Map(c, f); };
  }
  t["Gelu"] = [](const Call& c) {
    Map(c, [&](double x) { return Gelu(c, x); });
  };
  t["Cast"] = [](const Call& c) {
    const models::DType to = c.out().type.dtype;
    Map(c, [to](double x) {
      if (to == models::DType::kF32) return x;
      if (to == models::DType::kBool) return x != 0 ? 1.0 : 0.0;
      return std::trunc(x);
    });
  };
}

void AddGradients(ReferenceTable& t) {
  t["ReluGrad"] = [](const Call& c) {
    MapPair(c, [](double dy, double y) { return y > 0 ? dy : 0.0; });
  };
  t["SigmoidGrad"] = [](const Call& c) {
    MapPair(c, [](double dy, double y) { return dy * y * (1 - y); });
  };
  t["TanhGrad"] = [](const Call& c) {
    MapPair(c, [](double dy, double y) { return dy * (1 - y * y); });
  };
  t["GeluGrad"] = [](const Call& c) {
    MapPair(c, [&](double dy, double x) {
      return dy * Slope([&](double v) { return Gelu(c, v); }, x);
    });
  };
  t["GemmGeluGrad"] = [](const Call& c) {
    References().at("Gemm")(
        {c.attributes, {&c.in(0), &c.in(1)}, c.outputs, c.scalars});
    for (size_t i = 0; i < c.out().values.size(); ++i) {
      c.out().values[i] *=
          Slope([&](double v) { return Gelu(c, v); }, c.in(2).values[i]);
    }
  };
  t["ErfGrad"] = [](const Call& c) {
    MapPair(c, [](double dy, double x) {
      return dy * 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x);
    });
  };
}

struct DoubleMath {
  static double Exp(double x) { return std::exp(x); }
  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  static double Expm1OfNegative(double x) { return std::expm1(x); }
  static double Log1pOfUnit(double x) { return std::log1p(x); }
  static double Sin(double x) { return std::sin(x); }
  static double Cos(double x) { return std::cos(x); }
  static double Atan(double x) { return std::atan(x); }
  static double Sqrt(double x) { return std::sqrt(x); }
  static double Asin(double x) { return std::asin(x); }
  static double Acos(double x) { return std::acos(x); }
  static double Sinh(double x) { return std::sinh(x); }
  static double Cosh(double x) { return std::cosh(x); }
  static double Asinh(double x) { return std::asinh(x); }
  static double Acosh(double x) { return std::acosh(x); }
  static double Atanh(double x) { return std::atanh(x); }
  static double Floor(double x) { return std::floor(x); }
  static double Rint(double x) { return std::rint(x); }
};

// The formulas themselves in double: curves_test.cc compares them with
// PyTorch, and the gradient tests the slope with the value.
void AddCurves(ReferenceTable& t) {
  models::ForEachCurve(models::Curves(), [&t](auto curve) {
    using C = decltype(curve);
    static constexpr auto kAttributes = [](const Call& c) {
      std::array<double, models::kMostCurveAttributes> at = {};
      for (size_t i = 0; i < at.size(); ++i) {
        const models::CurveAttribute& a = C::kFacts.attributes[i];
        if (!a.name.empty()) at[i] = c.attributes.Float(a.name, a.fallback);
      }
      return at;
    };
    t[std::string(C::kFacts.name)] = [](const Call& c) {
      const auto at = kAttributes(c);
      Map(c, [&](double x) {
        return C::template Value<DoubleMath>(x, at.data());
      });
    };
    t[std::string(C::kFacts.gradient)] = [](const Call& c) {
      const auto at = kAttributes(c);
      MapPair(c, [&](double dy, double x) {
        return dy * C::template Slope<DoubleMath>(x, at.data());
      });
    };
  });
}

template <typename F>
double OfIntegers(double a, double b) {
  return static_cast<double>(
      F()(static_cast<int64_t>(a), static_cast<int64_t>(b)));
}

void AddBroadcast(ReferenceTable& t) {
  const std::map<std::string, double (*)(double, double)> functions = {
      {"Add", [](double a, double b) { return a + b; }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"Max", [](double a, double b) { return a > b ? a : b; }},
      {"Min", [](double a, double b) { return a < b ? a : b; }},
      {"Pow", [](double a, double b) { return std::pow(a, b); }},
      {"Fmod", [](double a, double b) { return std::fmod(a, b); }},
      {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
      {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
      {"BitwiseAnd", OfIntegers<std::bit_and<int64_t>>},
      {"BitwiseOr", OfIntegers<std::bit_or<int64_t>>},
      {"BitwiseXor", OfIntegers<std::bit_xor<int64_t>>}};
  for (const auto& [name, f] : functions) {
    t[name] = [f = f](const Call& c) { Broadcast(c, f); };
  }
  t["Div"] = [](const Call& c) {
    const bool real = c.out().type.dtype == models::DType::kF32;
    Broadcast(c, [real](double a, double b) {
      return real ? a / b : std::trunc(a / b);
    });
  };
  t["Where"] = [](const Call& c) {
    ForEachIndex(c.out().type.dims, [&](const Ints& index) {
      c.out().values[Position(c.out().type.dims, index)] =
          BroadcastAt(c.in(BroadcastAt(c.in(0), index) != 0 ? 1 : 2), index);
    });
  };
}

}  // namespace

void ForEachIndex(const Ints& dims,
                  const std::function<void(const Ints&)>& body) {
  Ints index(dims.size(), 0);
  for (int64_t dim : dims) {
    if (dim == 0) return;
  }
  while (true) {
    body(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

int64_t Position(const Ints& dims, const Ints& index) {
  int64_t position = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    position = position * dims[d] + index[d];
  }
  return position;
}

double BroadcastAt(const Array& a, const Ints& index) {
  const Ints& dims = a.type.dims;
  const size_t missing = index.size() - dims.size();
  Ints own(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    own[d] = dims[d] == 1 ? 0 : index[missing + d];
  }
  return a.values[Position(dims, own)];
}

void AddElementwiseReferences(ReferenceTable& table) {
  AddUnary(table);
  AddGradients(table);
  AddCurves(table);
  AddBroadcast(table);
}

const ReferenceTable& References() {
  static const ReferenceTable table = [] {
    ReferenceTable made;
    AddElementwiseReferences(made);
    AddShapeReferences(made);
    AddWindowReferences(made);
    AddNormalizationReferences(made);
    AddLossReferences(made);
    AddRandomReferences(made);
    AddUpdateReferences(made);
    AddAttentionReferences(made);
    AddQuantizeReferences(made);
    AddCodecReferences(made);
    return made;
  }();
  return table;
}

}  // namespace loadline::reference
