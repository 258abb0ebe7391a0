// Elementwise kernels of one functor, f32 or bf16; bf16 elements are computed
// in float. The output may overwrite the first input: a loop reads element i
// before it writes element i and nothing else.
#ifndef LOADLINE_EXECUTOR_CPU_ELEMENTWISE_H_
#define LOADLINE_EXECUTOR_CPU_ELEMENTWISE_H_

#include <cstdint>

#include "executor/cpu/parallel.h"
#include "executor/cpu/prepare.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"

namespace loadline::executor::cpu {

// y = f(x): input 0 and output 0, of one type and size.
template <typename F>
PreparedKernel MakeMap(const Prepare& p, F f) {
  const int64_t n = p.output(0).elements();
  return WithFloat<Bf16>(
      p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
        using T = decltype(type);
        return MakeKernel([n, f](const KernelArgs& args) {
          const T* x = In<T>(args, 0);
          T* y = Out<T>(args, 0);
          ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
          });
        });
      });
}

// y = f(a, b): inputs 0 and 1 and output 0, of one type and size.
template <typename F>
PreparedKernel MakeMapPair(const Prepare& p, F f) {
  const int64_t n = p.output(0).elements();
  return WithFloat<Bf16>(
      p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
        using T = decltype(type);
        return MakeKernel([n, f](const KernelArgs& args) {
          const T* a = In<T>(args, 0);
          const T* b = In<T>(args, 1);
          T* y = Out<T>(args, 0);
          ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(a[i], b[i]);
          });
        });
      });
}

}  // namespace loadline::executor::cpu

#endif  // LOADLINE_EXECUTOR_CPU_ELEMENTWISE_H_
