// Operators that broadcast: arithmetic, comparison, logic, Where.
//
// A thread computes one pack of adjacent outputs. Along the innermost dimension
// an input is either read as a pack, or one element is repeated. If that
// dimension is no multiple of a pack, a thread computes one output. The output
// may overwrite the first input if their shapes are equal. Tested in
// tests/conformance/.
#include <cmath>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/types.h"
#include "executor/ops/arithmetic.h"
#include "executor/ops/elementwise_tables.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

template <int kWidth, typename F, typename T, typename R>
__global__ void BinaryKernel(Nest<2> nest, F f, const T* a, const T* b, R* y) {
  const int64_t packs = nest.elements / kWidth;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    int64_t at[2];
    nest.Offsets(i * kWidth, at);
    const Pack<T, kWidth> left =
        LoadOrRepeat<kWidth>(a + at[0], nest.inner_stride(0));
    const Pack<T, kWidth> right =
        LoadOrRepeat<kWidth>(b + at[1], nest.inner_stride(1));
    Pack<R, kWidth> to;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      to.at[k] = Narrow<R>(f(Widen(left.at[k]), Widen(right.at[k])));
    }
    StorePack(y + i * kWidth, to);
  }
}

absl::StatusOr<Nest<2>> BinaryNest(const Prepare& p) {
  const Ints& out = p.output(0).dims;
  return MakeNest(p,
                  LoopNest<2>(out, {BroadcastStrides(p.input(0).dims, out),
                                    BroadcastStrides(p.input(1).dims, out)}));
}

template <int kWidth, typename T, typename R, typename F>
PreparedKernel MakeBinary(const Nest<2>& nest) {
  return MakeKernel(
      [nest](const KernelArgs& args, const LaunchContext& launch) {
        if (nest.elements == 0) return absl::OkStatus();
        return LaunchKernel(BinaryKernel<kWidth, F, T, R>,
                            GridFor(nest.elements / kWidth), kBlock, 0,
                            launch.stream, nest, F(), In<T>(args, 0),
                            In<T>(args, 1), Out<R>(args, 0));
      });
}

template <typename T, typename R, typename F>
PreparedKernel Binary(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {1}, {}));
  LOADLINE_ASSIGN_OR_RETURN(const Nest<2> nest, BinaryNest(p));
  // Comparisons and integers are rare on a device: one form suffices.
  constexpr bool kHot = std::is_same_v<T, R> && (std::is_same_v<T, float> ||
                                                 std::is_same_v<T, BFloat16>);
  if constexpr (kHot) {
    if (nest.inner() % kPackWidth<T> == 0) {
      return MakeBinary<kPackWidth<T>, T, R, F>(nest);
    }
  }
  return MakeBinary<1, T, R, F>(nest);
}

template <typename F>
PreparedKernel Arithmetic(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return WithFloatOrInt(p, p.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return Binary<T, T, F>(p);
  });
}

// Reports zeros in b; the quotient there is 0.
template <typename T>
__global__ void IntegerDivKernel(Nest<2> nest, const T* a, const T* b, T* y,
                                 DataErrorSink errors) {
  for (int64_t i = GridThread(); i < nest.elements; i += GridThreads()) {
    int64_t at[2];
    nest.Offsets(i, at);
    const T divisor = b[at[1]];
    if (divisor == 0) ReportDataError(errors, at[1]);
    y[i] = divisor == 0 ? T{0} : DivOf()(a[at[0]], divisor);
  }
}

template <typename T>
PreparedKernel IntegerDiv(const Prepare& p) {
  LOADLINE_ASSIGN_OR_RETURN(const Nest<2> nest, BinaryNest(p));
  return MakeKernel(
      [nest](const KernelArgs& args, const LaunchContext& launch) {
        if (nest.elements == 0) return absl::OkStatus();
        return LaunchKernel(IntegerDivKernel<T>, GridFor(nest.elements), kBlock,
                            0, launch.stream, nest, In<T>(args, 0),
                            In<T>(args, 1), Out<T>(args, 0), launch.sink());
      },
      0,
      [name = p.node().name](int64_t) {
        return absl::InvalidArgumentError(
            absl::StrCat("integer division by zero in node ", name));
      });
}

PreparedKernel Div(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  switch (p.output(0).dtype) {
    case DType::kI64:
      return IntegerDiv<int64_t>(p);
    case DType::kI32:
      return IntegerDiv<int32_t>(p);
    default:
      return WithFloat(p, p.output(0).dtype, [&](auto type) {
        using T = decltype(type);
        return Binary<T, T, DivOf>(p);
      });
  }
}

// Common exponents are computed by multiplication; x^3 is (x * x) * x, as in
// PyTorch.
struct PowOf {
  __device__ float operator()(float x, float power) const {
    if (power == 2.0f) return x * x;
    if (power == 3.0f) return x * x * x;
    if (power == 1.0f) return x;
    if (power == -1.0f) return 1.0f / x;
    return powf(x, power);
  }
};

PreparedKernel Pow(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return WithFloat(p, p.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return Binary<T, T, PowOf>(p);
  });
}

template <typename F>
PreparedKernel OfF32(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0, 1}, {0}));
  return Binary<float, float, F>(p);
}

template <typename F>
PreparedKernel OfIntegers(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  return WithInteger(p, p.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return Binary<T, T, F>(p);
  });
}

template <typename F>
PreparedKernel Compare(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kBool, {}, {0}));
  if (p.input(0).dtype == DType::kBool) return Binary<bool, bool, F>(p);
  return WithFloatOrInt(p, p.input(0).dtype, [&](auto type) {
    return Binary<decltype(type), bool, F>(p);
  });
}

template <typename F>
PreparedKernel Logic(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kBool, {}, {0}));
  if (p.input(0).dtype != DType::kBool) {
    return p.Unsupported(p.input(0).dtype);
  }
  return Binary<bool, bool, F>(p);
}

template <int kWidth, typename T>
__global__ void WhereKernel(Nest<3> nest, const uint8_t* c, const T* a,
                            const T* b, T* y) {
  const int64_t packs = nest.elements / kWidth;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    int64_t at[3];
    nest.Offsets(i * kWidth, at);
    const Pack<uint8_t, kWidth> condition =
        LoadOrRepeat<kWidth>(c + at[0], nest.inner_stride(0));
    const Pack<T, kWidth> left =
        LoadOrRepeat<kWidth>(a + at[1], nest.inner_stride(1));
    const Pack<T, kWidth> right =
        LoadOrRepeat<kWidth>(b + at[2], nest.inner_stride(2));
    Pack<T, kWidth> to;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      to.at[k] = condition.at[k] != 0 ? left.at[k] : right.at[k];
    }
    StorePack(y + i * kWidth, to);
  }
}

template <int kWidth, typename T>
PreparedKernel MakeWhere(const Nest<3>& nest) {
  return MakeKernel([nest](const KernelArgs& args,
                           const LaunchContext& launch) {
    if (nest.elements == 0) return absl::OkStatus();
    return LaunchKernel(WhereKernel<kWidth, T>, GridFor(nest.elements / kWidth),
                        kBlock, 0, launch.stream, nest, In<uint8_t>(args, 0),
                        In<T>(args, 1), In<T>(args, 2), Out<T>(args, 0));
  });
}

PreparedKernel Where(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.output(0).dtype, {1, 2}, {}));
  const Ints& out = p.output(0).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      const Nest<3> nest,
      MakeNest(p, LoopNest<3>(out, {BroadcastStrides(p.input(0).dims, out),
                                    BroadcastStrides(p.input(1).dims, out),
                                    BroadcastStrides(p.input(2).dims, out)})));
  return WithBits(p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    if (nest.inner() % kPackWidth<T> == 0) {
      return MakeWhere<kPackWidth<T>, T>(nest);
    }
    return MakeWhere<1, T>(nest);
  });
}

struct Broadcast {
  using Prepare = cuda::Prepare;
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

}  // namespace loadline::executor::cuda
