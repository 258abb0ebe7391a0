// Optimizer updates, in place. Tested in tests/conformance/.
#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/optimizer_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

PreparedKernel SgdWithoutMomentum(const SgdSettings& s, int64_t n) {
  return MakeKernel([s, n](const KernelArgs& args) {
    const float rate = args.scalars->learning_rate;
    const float* p = In(args, 0);
    const float* g = In(args, 1);
    float* new_p = Out(args, 0);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        new_p[i] = SgdPlain(s, rate, p[i], g[i]);
      }
    });
  });
}

PreparedKernel Sgd(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const SgdSettings s = MakeSgdSettings(p);
  if (p.has_input(2) != (p.outputs() == 2)) {
    return p.Invalid("a momentum buffer goes in and out, or neither");
  }
  if (!p.has_input(2)) return SgdWithoutMomentum(s, n);
  return MakeKernel([s, n](const KernelArgs& args) {
    const float rate = args.scalars->learning_rate;
    const float* p = In(args, 0);
    const float* g = In(args, 1);
    const float* buffer = In(args, 2);
    float* new_p = Out(args, 0);
    float* new_buffer = Out(args, 1);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const SgdMoved moved = SgdMomentum(s, rate, p[i], g[i], buffer[i]);
        new_buffer[i] = moved.buffer;
        new_p[i] = moved.p;
      }
    });
  });
}

PreparedKernel AdamW(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const AdamSettings settings = MakeAdamSettings(p);
  return MakeKernel([=](const KernelArgs& args) {
    const AdamFactors f = MakeAdamFactors(settings, *args.scalars);
    const float* p_in = In(args, 0);
    const float* g = In(args, 1);
    const float* m_in = In(args, 2);
    const float* v_in = In(args, 3);
    float* p_out = Out(args, 0);
    float* m_out = Out(args, 1);
    float* v_out = Out(args, 2);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const AdamMoved moved = AdamStep(f, p_in[i], g[i], m_in[i], v_in[i]);
        m_out[i] = moved.m;
        v_out[i] = moved.v;
        p_out[i] = moved.p;
      }
    });
  });
}

constexpr KernelEntry kKernels[] = {{"Sgd", Sgd}, {"AdamW", AdamW}};

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
