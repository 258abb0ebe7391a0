// Elementwise kernels of one input, and the gradients that read dy and one
// saved tensor. All of them may write over their first input: a loop reads
// element i before it writes element i and nothing else.
// Tested in tests/conformance/.
#include <cmath>
#include <string>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/cpu/prepare.h"
#include "executor/cpu/vector_math.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu {
namespace {

constexpr float kSqrtHalf = 0.707106781186547524f;
constexpr float kTwoOverSqrtPi = 1.12837916709551257f;
constexpr float kSqrtTwoOverPi = 0.797884560802865356f;
constexpr float kOneOverSqrtTwoPi = 0.398942280401432678f;
constexpr float kGeluCubic = 0.044715f;

template <typename Function>
void Map(const float* x, float* y, int64_t n, const Function& f) {
  ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
  });
}

template <typename Function>
void MapPair(const float* a, const float* b, float* y, int64_t n,
             const Function& f) {
  ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = f(a[i], b[i]);
  });
}

template <typename Function>
PreparedKernel Unary(const Prepare& p, Function f) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  return MakeKernel(
      [n, f](const KernelArgs& args) { Map(In(args, 0), Out(args, 0), n, f); });
}

template <typename Function>
PreparedKernel Gradient(const Prepare& p, Function f) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  return MakeKernel([n, f](const KernelArgs& args) {
    MapPair(In(args, 0), In(args, 1), Out(args, 0), n, f);
  });
}

// NaN stays NaN, as in PyTorch.
float ReluOf(float x) { return x < 0.0f ? 0.0f : x; }

float GeluExact(float x) { return 0.5f * x * (1.0f + Erf(x * kSqrtHalf)); }

float GeluTanh(float x) {
  const float inner = kSqrtTwoOverPi * (x + kGeluCubic * x * x * x);
  return 0.5f * x * (1.0f + Tanh(inner));
}

float GeluExactGrad(float dy, float x) {
  const float cdf = 0.5f * (1.0f + Erf(x * kSqrtHalf));
  const float pdf = kOneOverSqrtTwoPi * Exp(-0.5f * x * x);
  return dy * (cdf + x * pdf);
}

float GeluTanhGrad(float dy, float x) {
  const float square = x * x;
  const float inner = kSqrtTwoOverPi * (x + kGeluCubic * x * square);
  const float t = Tanh(inner);
  const float slope = kSqrtTwoOverPi * (1.0f + 3.0f * kGeluCubic * square);
  return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope);
}

bool IsTanhForm(const Prepare& p) {
  return p.attributes().String("approximate", "none") == "tanh";
}

PreparedKernel Gelu(const Prepare& p) {
  if (IsTanhForm(p)) return Unary(p, [](float x) { return GeluTanh(x); });
  return Unary(p, [](float x) { return GeluExact(x); });
}

PreparedKernel GeluGrad(const Prepare& p) {
  if (IsTanhForm(p)) {
    return Gradient(p, [](float dy, float x) { return GeluTanhGrad(dy, x); });
  }
  return Gradient(p, [](float dy, float x) { return GeluExactGrad(dy, x); });
}

PreparedKernel Not(const Prepare& p) {
  if (p.input(0).dtype != DType::kBool) {
    return p.Unsupported(p.input(0).dtype);
  }
  const int64_t n = p.output(0).elements();
  return MakeKernel([n](const KernelArgs& args) {
    const uint8_t* x = In<uint8_t>(args, 0);
    uint8_t* y = Out<uint8_t>(args, 0);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] == 0;
  });
}

constexpr KernelEntry kKernels[] = {
    {"Relu",
     [](const Prepare& p) {
       return Unary(p, [](float x) { return ReluOf(x); });
     }},
    {"Sigmoid",
     [](const Prepare& p) {
       return Unary(p, [](float x) { return Sigmoid(x); });
     }},
    {"Tanh",
     [](const Prepare& p) {
       return Unary(p, [](float x) { return Tanh(x); });
     }},
    {"Exp",
     [](const Prepare& p) { return Unary(p, [](float x) { return Exp(x); }); }},
    {"Log",
     [](const Prepare& p) { return Unary(p, [](float x) { return Log(x); }); }},
    {"Sqrt",
     [](const Prepare& p) {
       return Unary(p, [](float x) { return std::sqrt(x); });
     }},
    {"Neg",
     [](const Prepare& p) { return Unary(p, [](float x) { return -x; }); }},
    {"Abs",
     [](const Prepare& p) {
       return Unary(p, [](float x) { return std::fabs(x); });
     }},
    {"Erf",
     [](const Prepare& p) { return Unary(p, [](float x) { return Erf(x); }); }},
    {"Reciprocal",
     [](const Prepare& p) {
       return Unary(p, [](float x) { return 1.0f / x; });
     }},
    {"Gelu", Gelu},
    {"Not", Not},
    {"ReluGrad",
     [](const Prepare& p) {
       return Gradient(p,
                       [](float dy, float y) { return y > 0.0f ? dy : 0.0f; });
     }},
    {"SigmoidGrad",
     [](const Prepare& p) {
       return Gradient(p,
                       [](float dy, float y) { return dy * (y * (1.0f - y)); });
     }},
    {"TanhGrad",
     [](const Prepare& p) {
       return Gradient(p,
                       [](float dy, float y) { return dy * (1.0f - y * y); });
     }},
    {"GeluGrad", GeluGrad},
    {"ErfGrad",
     [](const Prepare& p) {
       return Gradient(p, [](float dy, float x) {
         return dy * (kTwoOverSqrtPi * Exp(-x * x));
       });
     }},
};

}  // namespace

absl::Span<const KernelEntry> PointwiseKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
