// Folding of operators that compute. Integers wrap around, as on every machine
// that exporters run on; division by zero is an error of the file. Tested in
// tests/models/onnx_fold_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/fold.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

int64_t Wrap(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }

int64_t ClampToInt(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (std::isnan(value)) return 0;
  if (value >= kLimit) return std::numeric_limits<int64_t>::max();
  if (value < -kLimit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

int64_t IntPower(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? 1 - 2 * (exponent & 1) : 0;
  uint64_t result = 1, square = Bits(base);
  for (; exponent > 0; exponent >>= 1, square *= square) {
    if (exponent & 1) result *= square;
  }
  return Wrap(result);
}

// With Python's sign rule unless fmod is requested.
double RealMod(double a, double b, bool c_mod) {
  const double rest = std::fmod(a, b);
  return !c_mod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double RealBinary(const std::string& op, double a, double b) {
  if (op == "Add" || op == "Sum") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Max") return std::isnan(a) ? a : b > a || std::isnan(b) ? b : a;
  return std::isnan(a) ? a : b < a || std::isnan(b) ? b : a;  // Min
}

// Requires b != 0 for divisions.
int64_t IntBinary(const std::string& op, int64_t a, int64_t b, bool c_mod) {
  if (op == "Add" || op == "Sum") return Wrap(Bits(a) + Bits(b));
  if (op == "Sub") return Wrap(Bits(a) - Bits(b));
  if (op == "Mul") return Wrap(Bits(a) * Bits(b));
  if (op == "Div") return b == -1 ? Wrap(0 - Bits(a)) : a / b;
  if (op == "Mod") {
    if (b == -1) return 0;
    const int64_t rest = a % b;
    // Python's sign rule unless fmod is requested.
    return !c_mod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (op == "Pow") return IntPower(a, b);
  if (op == "BitwiseAnd") return a & b;
  if (op == "BitwiseOr") return a | b;
  if (op == "BitwiseXor") return a ^ b;
  return op == "Max" ? std::max(a, b) : std::min(a, b);
}

FoldResult Binary(const FoldContext& c) {
  const std::string& op = c.node.op_type();
  Wide result = *c.in[0];
  for (size_t n = 1; n < c.in.size(); ++n) {
    if (!c.Has(n)) return absl::InvalidArgumentError("an input is missing");
    Wide b = *c.in[n];
    if (op == "Pow" && b.real() != result.real()) {
      return absl::UnimplementedError("mixed powers are not folded");
    }
    if (op != "Pow" && b.dtype != result.dtype) {
      return absl::InvalidArgumentError("inputs differ in type");
    }
    if (!result.real() && (op == "Div" || op == "Mod") &&
        std::count(b.ints.begin(), b.ints.end(), 0) > 0) {
      return absl::InvalidArgumentError("division by zero");
    }
    LOADLINE_ASSIGN_OR_RETURN(Ints dims, BroadcastDims(result.dims, b.dims));
    LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
    result = Pick(result, dims, BroadcastIndex(result.dims, dims));
    b = Pick(b, dims, BroadcastIndex(b.dims, dims));
    const bool c_mod = IntAttribute(c.node, "fmod", 0) != 0;
    for (size_t i = 0; i < result.ints.size(); ++i) {
      result.ints[i] = IntBinary(op, result.ints[i], b.ints[i], c_mod);
    }
    for (size_t i = 0; i < result.reals.size(); ++i) {
      result.reals[i] = op == "Mod"
                            ? RealMod(result.reals[i], b.reals[i], c_mod)
                            : RealBinary(op, result.reals[i], b.reals[i]);
    }
  }
  return One(std::move(result));
}

// Max with the lower bound, then Min with the upper one.
FoldResult Clip(const FoldContext& c) {
  Wide result = *c.in[0];
  for (size_t i : {1u, 2u}) {
    if (!c.Has(i)) continue;
    const Wide& bound = *c.in[i];
    if (bound.dtype != result.dtype || !bound.dims.empty()) {
      return absl::InvalidArgumentError(
          "a bound is not one number of its type");
    }
    const std::string op = i == 1 ? "Max" : "Min";
    for (int64_t& x : result.ints) x = IntBinary(op, x, bound.ints[0], false);
    for (double& x : result.reals) x = RealBinary(op, x, bound.reals[0]);
  }
  return One(std::move(result));
}

template <typename T>
bool Holds(const std::string& op, T a, T b) {
  if (op == "Equal") return a == b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  if (op == "And") return a != 0 && b != 0;
  if (op == "Or") return a != 0 || b != 0;
  return (a != 0) != (b != 0);  // Xor
}

FoldResult Compare(const FoldContext& c) {
  const Wide &first = *c.in[0], &second = *c.in[1];
  if (first.dtype != second.dtype) {
    return absl::InvalidArgumentError("inputs differ in type");
  }
  LOADLINE_ASSIGN_OR_RETURN(Ints dims, BroadcastDims(first.dims, second.dims));
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  const Wide a = Pick(first, dims, BroadcastIndex(first.dims, dims));
  const Wide b = Pick(second, dims, BroadcastIndex(second.dims, dims));
  Wide result{DType::kBool, dims, {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(a.size()); ++i) {
    result.ints.push_back(a.real()
                              ? Holds(c.node.op_type(), a.reals[i], b.reals[i])
                              : Holds(c.node.op_type(), a.ints[i], b.ints[i]));
  }
  return One(std::move(result));
}

double RealUnary(const std::string& op, double x) {
  if (op == "Neg") return -x;
  if (op == "Abs") return std::fabs(x);
  if (op == "Sqrt") return std::sqrt(x);
  if (op == "Reciprocal") return 1 / x;
  if (op == "Exp") return std::exp(x);
  if (op == "Log") return std::log(x);
  if (op == "Floor") return std::floor(x);
  if (op == "Ceil") return std::ceil(x);
  if (op == "Round") return std::nearbyint(x);
  if (op == "Sign") return x > 0 ? 1 : x < 0 ? -1 : x;
  if (op == "Sin") return std::sin(x);
  if (op == "Cos") return std::cos(x);
  return std::tanh(x);  // Tanh
}

FoldResult Unary(const FoldContext& c) {
  const std::string& op = c.node.op_type();
  Wide result = *c.in[0];
  for (double& x : result.reals) x = RealUnary(op, x);
  for (int64_t& x : result.ints) {
    if (op == "Neg" || (op == "Abs" && x < 0)) {
      x = Wrap(0 - Bits(x));
    } else if (op == "Sign") {
      x = (x > 0) - (x < 0);
    } else if (op == "Not") {
      x = x == 0;
    } else if (op == "BitwiseNot") {
      x = ~x;
    } else if (op != "Abs") {
      return absl::InvalidArgumentError("not defined on integers");
    }
  }
  if (op == "Not" && result.dtype != DType::kBool) {
    return absl::InvalidArgumentError("needs bools");
  }
  return One(std::move(result));
}

FoldResult CastTo(const Wide& from, DType to) {
  if (!CanWiden(to)) return absl::UnimplementedError("16-bit floats");
  Wide result{to, from.dims, {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(from.size()); ++i) {
    if (result.real()) {
      result.reals.push_back(from.real() ? from.reals[i]
                                         : static_cast<double>(from.ints[i]));
    } else if (to == DType::kBool) {
      result.ints.push_back(from.real() ? from.reals[i] != 0
                                        : from.ints[i] != 0);
    } else {
      result.ints.push_back(from.real() ? ClampToInt(from.reals[i])
                                        : from.ints[i]);
    }
  }
  return One(std::move(result));
}

FoldResult Cast(const FoldContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(
      DType to,
      DTypeFromOnnx(static_cast<int32_t>(IntAttribute(c.node, "to", 0)),
                    "its result"));
  return CastTo(*c.in[0], to);
}

FoldResult CastLike(const FoldContext& c) {
  return CastTo(*c.in[0], c.in[1]->dtype);
}

FoldResult Shape(const FoldContext& c) {
  const Ints& dims = c.in[0]->dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  auto position = [&](int64_t p) {
    return std::clamp<int64_t>(p < 0 ? std::max(p, -rank) + rank : p, 0, rank);
  };
  const int64_t start = position(IntAttribute(c.node, "start", 0));
  const int64_t end =
      std::max(start, position(IntAttribute(c.node, "end", rank)));
  Wide result{DType::kI64, {end - start}, {}, {}};
  result.ints.assign(dims.begin() + start, dims.begin() + end);
  return One(std::move(result));
}

FoldResult Size(const FoldContext& c) {
  return One(Wide{DType::kI64, {}, {c.in[0]->size()}, {}});
}

double Reduced(const std::string& op, double a, double b) {
  if (op == "ReduceProd") return a * b;
  if (op == "ReduceMax") return std::max(a, b);
  if (op == "ReduceMin") return std::min(a, b);
  return a + b;
}

int64_t Reduced(const std::string& op, int64_t a, int64_t b) {
  if (op == "ReduceProd") return Wrap(Bits(a) * Bits(b));
  if (op == "ReduceMax") return std::max(a, b);
  if (op == "ReduceMin") return std::min(a, b);
  return Wrap(Bits(a) + Bits(b));
}

// The output element of each input element when `axes` are reduced.
std::vector<int64_t> ReduceTargets(const Wide& x, const Ints& axes,
                                   Ints* kept) {
  *kept = x.dims;
  for (int64_t a : axes) (*kept)[static_cast<size_t>(a)] = 1;
  return BroadcastIndex(*kept, x.dims);
}

FoldResult Reduce(const FoldContext& c) {
  const std::string& op = c.node.op_type();
  const Wide& x = *c.in[0];
  const int64_t rank = static_cast<int64_t>(x.dims.size());
  LOADLINE_ASSIGN_OR_RETURN(Ints axes, NormalizeAxes(c.IntsOf(1), rank));
  if (axes.empty() && IntAttribute(c.node, "noop_with_empty_axes", 0) != 0) {
    return One(x);
  }
  if (axes.empty()) {
    axes.resize(x.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  Ints kept;
  const std::vector<int64_t> targets = ReduceTargets(x, axes, &kept);
  LOADLINE_ASSIGN_OR_RETURN(int64_t count, ElementCount(kept));
  if (x.size() == 0) {
    return absl::UnimplementedError("this reduction is not folded");
  }
  Wide result{x.dtype, kept, {}, {}};
  std::vector<bool> started(static_cast<size_t>(count));
  result.ints.resize(x.real() ? 0 : started.size());
  result.reals.resize(x.real() ? started.size() : 0);
  for (size_t i = 0; i < targets.size(); ++i) {
    const size_t to = static_cast<size_t>(targets[i]);
    if (x.real()) {
      result.reals[to] =
          started[to] ? Reduced(op, result.reals[to], x.reals[i]) : x.reals[i];
    } else {
      result.ints[to] =
          started[to] ? Reduced(op, result.ints[to], x.ints[i]) : x.ints[i];
    }
    started[to] = true;
  }
  if (IntAttribute(c.node, "keepdims", 1) == 0) {
    Ints dims;
    for (int64_t i = 0; i < rank; ++i) {
      if (!std::binary_search(axes.begin(), axes.end(), i)) {
        dims.push_back(x.dims[static_cast<size_t>(i)]);
      }
    }
    result.dims = dims;
  }
  return One(std::move(result));
}

int64_t Plus(int64_t a, int64_t b) { return Wrap(Bits(a) + Bits(b)); }
double Plus(double a, double b) { return a + b; }

FoldResult CumSum(const FoldContext& c) {
  Wide result = *c.in[0];
  const Ints given = c.IntsOf(1);
  if (given.size() != 1) return absl::InvalidArgumentError("needs one axis");
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis,
      NormalizeAxis(given[0], static_cast<int64_t>(result.dims.size())));
  const bool reverse = IntAttribute(c.node, "reverse", 0) != 0;
  const bool exclusive = IntAttribute(c.node, "exclusive", 0) != 0;
  const int64_t size = result.dims[static_cast<size_t>(axis)];
  const int64_t step = RowMajorStrides(result.dims)[static_cast<size_t>(axis)];
  const auto sum_along = [&](auto& numbers) {
    for (int64_t i = 0; i < result.size(); ++i) {
      if (i / step % size != 0) continue;  // only the first of each line
      typename std::decay_t<decltype(numbers)>::value_type sum{};
      for (int64_t k = 0; k < size; ++k) {
        auto& number = numbers[static_cast<size_t>(
            i + (reverse ? size - 1 - k : k) * step)];
        const auto before = sum;
        sum = Plus(sum, number);
        number = exclusive ? before : sum;
      }
    }
  };
  if (result.real()) {
    sum_along(result.reals);
  } else {
    sum_along(result.ints);
  }
  return One(std::move(result));
}

}  // namespace

FoldRule FindArithmeticRule(const std::string& op_type) {
  static const auto* const kRules = [] {
    auto* rules = new std::map<std::string, FoldRule>{
        {"Cast", Cast},   {"CastLike", CastLike}, {"CumSum", CumSum},
        {"Shape", Shape}, {"Size", Size},         {"Clip", Clip}};
    for (const char* op :
         {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Sum", "Max", "Min",
          "BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      rules->emplace(op, Binary);
    }
    for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater",
                           "GreaterOrEqual", "And", "Or", "Xor"}) {
      rules->emplace(op, Compare);
    }
    for (const char* op :
         {"Neg", "Abs", "Sqrt", "Reciprocal", "Exp", "Log", "Floor", "Ceil",
          "Round", "Sign", "Sin", "Cos", "Tanh", "Not", "BitwiseNot"}) {
      rules->emplace(op, Unary);
    }
    for (const char* op :
         {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"}) {
      rules->emplace(op, Reduce);
    }
    return rules;
  }();
  auto it = kRules->find(op_type);
  return it == kRules->end() ? nullptr : it->second;
}

}  // namespace loadline::models::onnx_internal
