// Elementwise kernels of one input, and gradients that read dy and one saved
// tensor. Tested in tests/conformance/.
#include <string>

#include "executor/cpu/elementwise.h"
#include "executor/cpu/families.h"
#include "executor/cpu/prepare.h"
#include "executor/cpu/vector_math.h"
#include "executor/ops/elementwise_tables.h"

namespace loadline::executor::cpu {
namespace {

struct VectorMath {
  static float Exp(float x) { return cpu::Exp(x); }
  static float Log(float x) { return cpu::Log(x); }
  static float Tanh(float x) { return cpu::Tanh(x); }
  static float Erf(float x) { return cpu::Erf(x); }
  static float Sigmoid(float x) { return cpu::Sigmoid(x); }
};

template <typename F>
PreparedKernel Unary(const Prepare& p) {
  return MakeMap(p, F());
}

template <typename F>
PreparedKernel Gradient(const Prepare& p) {
  return MakeMapPair(p, F());
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

struct Pointwise {
  using Prepare = executor::Prepare;
  using Math = VectorMath;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kUnary = Unary<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kGradient = Gradient<F>;
  static constexpr PrepareKernelFunction<Prepare> kNot = Not;
};

}  // namespace

absl::Span<const KernelEntry> PointwiseKernels() {
  return kPointwiseKernels<Pointwise>;
}

}  // namespace loadline::executor::cpu
