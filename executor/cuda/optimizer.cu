// Optimizer updates, in place. Learning rate and step are read on the device,
// so that a captured step can be replayed; what depends on them alone is
// computed in double, once a block. A gradient may be bf16.
// Tested in tests/conformance/.
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/types.h"
#include "executor/optimizer_formulas.h"
#include "planner/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kWidth = 4;

struct SgdTensors {
  const float* p;
  const float* buffer;  // null: no momentum
  float *new_p, *new_buffer;
};

template <typename G>
__global__ void SgdKernel(SgdSettings s, const StepScalars* scalars,
                          SgdTensors t, const G* g, int64_t n) {
  const float rate = scalars->learning_rate;
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    if (t.buffer == nullptr) {
      t.new_p[i] = SgdPlain(s, rate, t.p[i], Widen(g[i]));
    } else {
      const SgdMoved moved =
          SgdMomentum(s, rate, t.p[i], Widen(g[i]), t.buffer[i]);
      t.new_p[i] = moved.p;
      t.new_buffer[i] = moved.buffer;
    }
  }
}

PreparedKernel Sgd(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  const SgdSettings s = MakeSgdSettings(p);
  const bool has_buffer = p.has_input(2);
  if (has_buffer != (p.outputs() == 2)) {
    return p.Invalid("a momentum buffer goes in and out, or neither");
  }
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0, 2}, {0, 1}));
  return WithFloat(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using G = decltype(type);
    return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
      if (n == 0) return absl::OkStatus();
      const SgdTensors t = {In(args, 0), has_buffer ? In(args, 2) : nullptr,
                            Out(args, 0), has_buffer ? Out(args, 1) : nullptr};
      return LaunchKernel(SgdKernel<G>, GridFor(n), kBlock, 0, launch.stream, s,
                          args.scalars, t, In<G>(args, 1), n);
    });
  });
}

struct AdamTensors {
  const float *p, *m, *v;
  float *new_p, *new_m, *new_v;
};

template <typename G>
__global__ void AdamWKernel(AdamSettings s, const StepScalars* scalars,
                            AdamTensors t, const G* g, int64_t n) {
  __shared__ AdamFactors of_step;
  if (threadIdx.x == 0) of_step = MakeAdamFactors(s, *scalars);
  __syncthreads();
  const AdamFactors f = of_step;
  const int64_t packs = n / kWidth;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    const int64_t at = i * kWidth;
    Pack<float, kWidth> p = LoadPack<kWidth>(t.p + at);
    Pack<float, kWidth> m = LoadPack<kWidth>(t.m + at);
    Pack<float, kWidth> v = LoadPack<kWidth>(t.v + at);
    const Pack<G, kWidth> gradient = LoadPack<kWidth>(g + at);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const AdamMoved moved =
          AdamStep(f, p.at[k], Widen(gradient.at[k]), m.at[k], v.at[k]);
      p.at[k] = moved.p;
      m.at[k] = moved.m;
      v.at[k] = moved.v;
    }
    StorePack(t.new_p + at, p);
    StorePack(t.new_m + at, m);
    StorePack(t.new_v + at, v);
  }
  const int64_t last = packs * kWidth + GridThread();
  if (last < n) {
    const AdamMoved moved =
        AdamStep(f, t.p[last], Widen(g[last]), t.m[last], t.v[last]);
    t.new_p[last] = moved.p;
    t.new_m[last] = moved.m;
    t.new_v[last] = moved.v;
  }
}

PreparedKernel AdamW(const Prepare& p) {
  const int64_t n = p.output(0).elements();
  const AdamSettings s = MakeAdamSettings(p);
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0, 2, 3}, {0, 1, 2}));
  return WithFloat(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using G = decltype(type);
    return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
      if (n == 0) return absl::OkStatus();
      const AdamTensors t = {In(args, 0),  In(args, 2),  In(args, 3),
                             Out(args, 0), Out(args, 1), Out(args, 2)};
      return LaunchKernel(AdamWKernel<G>, GridFor(n / kWidth + 1), kBlock, 0,
                          launch.stream, s, args.scalars, t, In<G>(args, 1), n);
    });
  });
}

constexpr KernelEntry kKernels[] = {{"Sgd", Sgd}, {"AdamW", AdamW}};

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
