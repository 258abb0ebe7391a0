// Dropout and RandomUniform with the CPU's bits. Element e, counted from
// `offset`, is kept where word e % 4 of Philox's output is at least ratio *
// 2^32. The counter's words are e / 4 (low, high), the step and the salt (both
// modulo 2^32); the key is the run's seed. A thread computes four elements.
// Tested in tests/conformance/.
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/types.h"
#include "executor/device/philox.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kWords = 4;

// The random words of counter i.
__device__ PhiloxCounters<1> WordsOf(int64_t i, uint32_t salt,
                                     const StepScalars* scalars) {
  const uint64_t seed = scalars->seed;
  PhiloxCounters<1> words;
  words.words[0][0] = static_cast<uint32_t>(i);
  words.words[1][0] = static_cast<uint32_t>(static_cast<uint64_t>(i) >> 32);
  words.words[2][0] = static_cast<uint32_t>(scalars->step);
  words.words[3][0] = salt;
  PhiloxRounds(words, static_cast<uint32_t>(seed),
               static_cast<uint32_t>(seed >> 32));
  return words;
}

// The random words of elements [4 i, 4 i + 4), whose numbers begin at `offset`:
// they belong to two counters if the offset is no multiple of 4.
struct FourWords {
  uint32_t at[kWords];
};
__device__ FourWords WordsFrom(int64_t offset, int64_t i, uint32_t salt,
                               const StepScalars* scalars) {
  const int64_t first = offset / kWords + i;
  const auto skipped = static_cast<int>(offset % kWords);
  const PhiloxCounters<1> low = WordsOf(first, salt, scalars);
  FourWords words;
#pragma unroll
  for (int w = 0; w < kWords; ++w) words.at[w] = low.words[w][0];
  if (skipped == 0) return words;
  const PhiloxCounters<1> high = WordsOf(first + 1, salt, scalars);
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    const int from = w + skipped;
    words.at[w] =
        from < kWords ? low.words[from][0] : high.words[from - kWords][0];
  }
  return words;
}

struct KeptOf {
  DropoutSettings settings;
  FourWords words;

  template <typename T>
  __device__ T operator()(T x, int word) const {
    const bool kept = words.at[word] >= settings.threshold;
    return Narrow<T>(Widen(x) * (kept ? settings.scale : 0.0f));
  }
};

template <typename T>
__global__ void DropoutKernel(DropoutSettings settings,
                              const StepScalars* scalars, const T* x, T* y,
                              int64_t n) {
  const int64_t counters = (n + kWords - 1) / kWords;
  for (int64_t i = GridThread(); i < counters; i += GridThreads()) {
    const KeptOf kept = {settings,
                         WordsFrom(settings.offset, i, settings.salt, scalars)};
    if ((i + 1) * kWords <= n) {
      Pack<T, kWords> pack = LoadPack<kWords>(x + i * kWords);
#pragma unroll
      for (int w = 0; w < kWords; ++w) pack.at[w] = kept(pack.at[w], w);
      StorePack(y + i * kWords, pack);
    } else {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        const int64_t e = i * kWords + w;
        if (e < n) y[e] = kept(x[e], w);
      }
    }
  }
}

PreparedKernel Dropout(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  LOADLINE_ASSIGN_OR_RETURN(const DropoutSettings settings,
                            MakeDropoutSettings(p));
  const int64_t n = p.output(0).elements();
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
      if (n == 0) return absl::OkStatus();
      return LaunchKernel(DropoutKernel<T>, GridFor(n / kWords + 1), kBlock, 0,
                          launch.stream, settings, args.scalars, In<T>(args, 0),
                          Out<T>(args, 0), n);
    });
  });
}

__global__ void RandomUniformKernel(DropoutSettings settings,
                                    const StepScalars* scalars,
                                    const float* range, float* y, int64_t n) {
  const int64_t counters = (n + kWords - 1) / kWords;
  for (int64_t i = GridThread(); i < counters; i += GridThreads()) {
    const FourWords words =
        WordsFrom(settings.offset, i, settings.salt, scalars);
    for (int w = 0; w < kWords && i * kWords + w < n; ++w) {
      y[i * kWords + w] = *range * UniformOf(words.at[w]);
    }
  }
}

PreparedKernel RandomUniform(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  LOADLINE_ASSIGN_OR_RETURN(const DropoutSettings settings,
                            MakeDropoutSettings(p));
  const int64_t n = p.output(0).elements();
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    if (n == 0) return absl::OkStatus();
    return LaunchKernel(RandomUniformKernel, GridFor(n / kWords + 1), kBlock, 0,
                        launch.stream, settings, args.scalars, In(args, 0),
                        Out(args, 0), n);
  });
}

constexpr KernelEntry kKernels[] = {{"Dropout", Dropout},
                                    {"RandomUniform", RandomUniform}};

}  // namespace

absl::Span<const KernelEntry> DropoutKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
