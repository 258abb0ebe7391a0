// Operators that broadcast: arithmetic, comparison, logic, Where.
//
// A loop nest over the output's shape gives runs along which each input either
// advances or repeats; the loop for each such combination vectorizes. The
// output may overwrite the first input if their shapes are equal: element i is
// read before it is written. Tested in tests/conformance/.
#include <cmath>
#include <limits>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/arithmetic.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/elementwise_tables.h"
#include "executor/ops/loop_nest.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// y[i] = f(a[i * sa], b[i * sb]), with strides 0 and 1 as compile-time
// constants.
template <typename T, typename R, typename F>
void Stretch(const T* a, int64_t sa, const T* b, int64_t sb, R* y, int64_t n,
             const F& f) {
  if (sa == 1 && sb == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (sa == 1 && sb == 0) {
    const T right = b[0];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], right);
  } else if (sa == 0 && sb == 1) {
    const T left = a[0];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(left, b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i * sa], b[i * sb]);
  }
}

LoopNest<3> BinaryNest(const Prepare& p) {
  const Ints& out = p.output(0).dims;
  return LoopNest<3>(
      out, {BroadcastStrides(p.input(0).dims, out),
            BroadcastStrides(p.input(1).dims, out), DenseStrides(out)});
}

template <typename T, typename R, typename F>
void RunBinary(const LoopNest<3>& nest, const T* a, const T* b, R* y,
               const F& f) {
  ParallelFor(nest.elements(), kElementBlock, [&](int64_t begin, int64_t end) {
    nest.Run(begin, end, [&](const LoopNest<3>::Offsets& at, int64_t n) {
      Stretch(a + at[0], nest.inner_stride(0), b + at[1], nest.inner_stride(1),
              y + at[2], n, f);
    });
  });
}

template <typename T, typename R, typename F>
PreparedKernel Binary(const Prepare& p, F f) {
  return MakeKernel([nest = BinaryNest(p), f](const KernelArgs& args) {
    RunBinary(nest, In<T>(args, 0), In<T>(args, 1), Out<R>(args, 0), f);
  });
}

template <typename F>
PreparedKernel Arithmetic(const Prepare& p) {
  return WithNumber<Bf16>(p, p.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return Binary<T, T>(p, F());
  });
}

template <typename F>
PreparedKernel OfF32(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  return Binary<float, float>(p, F());
}

template <typename T>
PreparedKernel IntegerDiv(const Prepare& p) {
  return MakeKernel([nest = BinaryNest(p), n = p.input(1).elements(),
                     name = p.node().name](const KernelArgs& args) {
    const T* b = In<T>(args, 1);
    if (nest.elements() > 0 && std::find(b, b + n, T{0}) != b + n) {
      return absl::InvalidArgumentError(
          std::string("integer division by zero in node ") + name);
    }
    RunBinary(nest, In<T>(args, 0), b, Out<T>(args, 0), DivOf());
    return absl::OkStatus();
  });
}

PreparedKernel Div(const Prepare& p) {
  switch (p.output(0).dtype) {
    case DType::kI64:
      return IntegerDiv<int64_t>(p);
    case DType::kI32:
      return IntegerDiv<int32_t>(p);
    default:
      return Arithmetic<DivOf>(p);
  }
}

// Common exponents are computed by multiplication; the general case calls libm.
// x^3 is (x * x) * x, as in PyTorch.
void PowByOne(const LoopNest<3>& nest, const float* a, const float* b,
              float* y) {
  const float e = *b;
  if (e == 2.0f) {
    RunBinary(nest, a, b, y, [](float x, float) { return x * x; });
  } else if (e == 3.0f) {
    RunBinary(nest, a, b, y, [](float x, float) { return x * x * x; });
  } else if (e == 1.0f) {
    RunBinary(nest, a, b, y, [](float x, float) { return x; });
  } else if (e == -1.0f) {
    RunBinary(nest, a, b, y, [](float x, float) { return 1.0f / x; });
  } else {
    RunBinary(nest, a, b, y,
              [](float x, float power) { return std::pow(x, power); });
  }
}

PreparedKernel Pow(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  if (p.input(1).elements() != 1) {
    return Binary<float, float>(
        p, [](float x, float power) { return std::pow(x, power); });
  }
  return MakeKernel([nest = BinaryNest(p)](const KernelArgs& args) {
    PowByOne(nest, In(args, 0), In(args, 1), Out(args, 0));
  });
}

template <typename F>
PreparedKernel OfIntegers(const Prepare& p) {
  return WithInteger(p, p.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return Binary<T, T>(p, F());
  });
}

template <typename F>
PreparedKernel Compare(const Prepare& p) {
  return WithNumberOrBool<Bf16>(p, p.input(0).dtype, [&](auto type) {
    return Binary<decltype(type), bool>(p, F());
  });
}

template <typename F>
PreparedKernel Logic(const Prepare& p) {
  if (p.input(0).dtype != DType::kBool) {
    return p.Unsupported(p.input(0).dtype);
  }
  return Binary<bool, bool>(p, F());
}

template <typename T>
void WhereStretch(const uint8_t* c, int64_t sc, const T* a, int64_t sa,
                  const T* b, int64_t sb, T* y, int64_t n) {
  if (sc == 1 && sa == 1 && sb == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? a[i] : b[i];
  } else if (sc == 1 && sa == 1 && sb == 0) {
    const T other = b[0];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? a[i] : other;
  } else if (sc == 1 && sa == 0 && sb == 1) {
    const T value = a[0];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? value : b[i];
  } else {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = c[i * sc] ? a[i * sa] : b[i * sb];
    }
  }
}

PreparedKernel Where(const Prepare& p) {
  const Ints& out = p.output(0).dims;
  const LoopNest<4> nest(
      out, {BroadcastStrides(p.input(0).dims, out),
            BroadcastStrides(p.input(1).dims, out),
            BroadcastStrides(p.input(2).dims, out), DenseStrides(out)});
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([nest](const KernelArgs& args) {
      const uint8_t* c = In<uint8_t>(args, 0);
      const T* a = In<T>(args, 1);
      const T* b = In<T>(args, 2);
      T* y = Out<T>(args, 0);
      ParallelFor(
          nest.elements(), kElementBlock, [&](int64_t begin, int64_t end) {
            nest.Run(begin, end,
                     [&](const LoopNest<4>::Offsets& at, int64_t n) {
                       WhereStretch(c + at[0], nest.inner_stride(0), a + at[1],
                                    nest.inner_stride(1), b + at[2],
                                    nest.inner_stride(2), y + at[3], n);
                     });
          });
    });
  });
}

struct Broadcast {
  using Prepare = executor::Prepare;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kArithmetic = Arithmetic<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kOfF32 = OfF32<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kOfIntegers = OfIntegers<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kCompare = Compare<F>;
  template <typename F>
  static constexpr PrepareKernelFunction<Prepare> kLogic = Logic<F>;
  static constexpr PrepareKernelFunction<Prepare> kDiv = Div;
  static constexpr PrepareKernelFunction<Prepare> kPow = Pow;
  static constexpr PrepareKernelFunction<Prepare> kWhere = Where;
};

}  // namespace

absl::Span<const KernelEntry> BroadcastKernels() {
  return kBroadcastKernels<Broadcast>;
}

}  // namespace loadline::executor::cpu
