// Batch normalization over [N, C, plane...] per channel. x, y and their
// gradients are f32 or bf16, everything else f32.
//
// Three launches: blocks reduce parts of a channel (divided by the shape
// alone); one thread per channel combines the parts in order; a grid over
// elements writes the result. A part's variance is taken about its own mean, in
// a second pass over cached data, and parts are combined exactly (T. Chan, G.
// Golub, R. LeVeque, 1979), so there is no cancellation far from zero. Tested
// in tests/conformance/.
#include <algorithm>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int64_t kPartElements = 8192;
constexpr int64_t kMostParts = 128;

// A channel's elements, by position: [n, plane].
struct Channels {
  NormChannels s;
  Divider plane, channels;
  int64_t parts;

  __device__ int64_t Begin(int64_t part) const {
    return s.count() * part / parts;
  }
  __device__ int64_t At(int64_t channel, int64_t i) const {
    const int64_t n = plane.Divide(i);
    return (n * s.channels + channel) * s.plane + (i - n * s.plane);
  }
  __device__ int64_t ChannelOf(int64_t element) const {
    const int64_t row = plane.Divide(element);
    return row - channels.Divide(row) * s.channels;
  }
};

Channels MakeChannels(const Prepare& p, const TensorType& x) {
  const NormChannels s = MakeNormChannels(p, x);
  return {s, Divider(s.plane), Divider(s.channels),
          std::clamp<int64_t>(s.count() / kPartElements, 1, kMostParts)};
}

struct PartSums {
  float a, b;
};
struct AddPartSums {
  __device__ PartSums operator()(const PartSums& x, const PartSums& y) const {
    return {x.a + y.a, x.b + y.b};
  }
};

// sums[channel, part]: the part's mean, and the sum of squares about it.
template <typename T>
__global__ void StatisticsKernel(Channels c, const T* x, PartSums* sums) {
  for (int64_t unit = blockIdx.x; unit < c.s.channels * c.parts;
       unit += gridDim.x) {
    const int64_t channel = unit / c.parts;
    const int64_t begin = c.Begin(unit % c.parts);
    const int64_t end = c.Begin(unit % c.parts + 1);
    float sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += kBlock) {
      sum += Widen(x[c.At(channel, i)]);
    }
    const float mean = TeamSum<kBlock>(sum) / static_cast<float>(end - begin);
    float squares = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += kBlock) {
      const float d = Widen(x[c.At(channel, i)]) - mean;
      squares += d * d;
    }
    squares = TeamSum<kBlock>(squares);
    if (threadIdx.x == 0) sums[unit] = {mean, squares};
  }
}

__global__ void JoinStatisticsKernel(Channels c, const PartSums* sums,
                                     float* means, float* rstds) {
  for (int64_t channel = GridThread(); channel < c.s.channels;
       channel += GridThreads()) {
    float count = 0;
    float mean = 0;
    float squares = 0;
    for (int64_t part = 0; part < c.parts; ++part) {
      const PartSums& of = sums[channel * c.parts + part];
      const auto n = static_cast<float>(c.Begin(part + 1) - c.Begin(part));
      const float total = count + n;
      const float d = of.a - mean;
      mean += d * (n / total);
      squares += of.b + d * d * (count * n / total);
      count = total;
    }
    means[channel] = mean;
    rstds[channel] =
        1.0f / sqrtf(squares / static_cast<float>(c.s.count()) + c.s.epsilon);
  }
}

// y = (x - mean) rstd scale + bias for every element; a pack is within one
// channel.
template <int kWidth, typename T>
__global__ void NormalizeKernel(Channels c, int64_t elements, const T* x,
                                const float* scale, const float* bias,
                                const float* mean, const float* rstd, T* y) {
  for (int64_t i = GridThread() * kWidth; i < elements;
       i += GridThreads() * kWidth) {
    const int64_t channel = c.ChannelOf(i);
    const float m = mean[channel];
    const float factor = rstd[channel] * scale[channel];
    const float shift = bias[channel];
    Pack<T, kWidth> pack = LoadPack<kWidth>(x + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      pack.at[k] = Narrow<T>((Widen(pack.at[k]) - m) * factor + shift);
    }
    StorePack(y + i, pack);
  }
}

// The same with the variance in place of rstd.
template <typename T>
__global__ void InferenceKernel(Channels c, int64_t elements, const T* x,
                                const float* scale, const float* bias,
                                const float* mean, const float* variance,
                                T* y) {
  for (int64_t i = GridThread(); i < elements; i += GridThreads()) {
    const int64_t k = c.ChannelOf(i);
    const float factor = scale[k] / sqrtf(variance[k] + c.s.epsilon);
    y[i] = Narrow<T>((Widen(x[i]) - mean[k]) * factor + bias[k]);
  }
}

template <typename T>
struct GradTensors {
  const T *dy, *x;
  const float *scale, *mean, *rstd;
};

// sums[channel, part]: of dy, and of dy (x - mean).
template <typename T>
__global__ void GradSumsKernel(Channels c, GradTensors<T> t, PartSums* sums) {
  for (int64_t unit = blockIdx.x; unit < c.s.channels * c.parts;
       unit += gridDim.x) {
    const int64_t channel = unit / c.parts;
    const int64_t end = c.Begin(unit % c.parts + 1);
    const float mean = t.mean[channel];
    PartSums sum = {0, 0};
    for (int64_t i = c.Begin(unit % c.parts) + threadIdx.x; i < end;
         i += kBlock) {
      const int64_t at = c.At(channel, i);
      const float d = Widen(t.dy[at]);
      sum.a += d;
      sum.b += d * (Widen(t.x[at]) - mean);
    }
    sum = TeamReduce<kBlock>(sum, AddPartSums());
    if (threadIdx.x == 0) sums[unit] = sum;
  }
}

__global__ void JoinGradSumsKernel(Channels c, const PartSums* sums,
                                   const float* rstd, float* dscale,
                                   float* dbias) {
  for (int64_t channel = GridThread(); channel < c.s.channels;
       channel += GridThreads()) {
    PartSums sum = {0, 0};
    for (int64_t part = 0; part < c.parts; ++part) {
      sum = AddPartSums()(sum, sums[channel * c.parts + part]);
    }
    dbias[channel] = sum.a;
    dscale[channel] = sum.b * rstd[channel];
  }
}

template <int kWidth, typename T>
__global__ void BatchNormGradKernel(Channels c, int64_t elements,
                                    GradTensors<T> t, const float* dscale,
                                    const float* dbias, T* dx) {
  for (int64_t i = GridThread() * kWidth; i < elements;
       i += GridThreads() * kWidth) {
    const int64_t channel = c.ChannelOf(i);
    const float mean = t.mean[channel];
    const ChannelGrad g =
        MakeChannelGrad(c.s, t.scale[channel], t.rstd[channel], dscale[channel],
                        dbias[channel]);
    Pack<T, kWidth> dy = LoadPack<kWidth>(t.dy + i);
    const Pack<T, kWidth> x = LoadPack<kWidth>(t.x + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      dy.at[k] = Narrow<T>(g.factor * Widen(dy.at[k]) +
                           g.slope * (Widen(x.at[k]) - mean) + g.shift);
    }
    StorePack(dx + i, dy);
  }
}

__global__ void RunningStatsKernel(RunningStats s, int64_t channels,
                                   const float* running_mean,
                                   const float* running_variance,
                                   const float* mean, const float* rstd,
                                   float* new_mean, float* new_variance) {
  for (int64_t k = GridThread(); k < channels; k += GridThreads()) {
    new_mean[k] = s.Mean(running_mean[k], mean[k]);
    new_variance[k] = s.Variance(running_variance[k], rstd[k]);
  }
}

int64_t WorkspaceBytes(const Channels& c) {
  return c.s.channels * c.parts * int64_t{sizeof(PartSums)};
}

template <typename T>
absl::Status LaunchTraining(const Channels& c, const KernelArgs& args,
                            const LaunchContext& launch) {
  auto* sums = Workspace<PartSums>(args);
  const int64_t elements = c.s.count() * c.s.channels;
  LOADLINE_RETURN_IF_ERROR(
      LaunchKernel(StatisticsKernel<T>, GridFor(c.s.channels * c.parts, 1),
                   kBlock, 0, launch.stream, c, In<T>(args, 0), sums));
  LOADLINE_RETURN_IF_ERROR(
      LaunchKernel(JoinStatisticsKernel, GridFor(c.s.channels), kBlock, 0,
                   launch.stream, c, sums, Out(args, 1), Out(args, 2)));
  constexpr int kWidth = kPackWidth<T>;
  const bool packs = c.s.plane % kWidth == 0;
  return LaunchKernel(
      packs ? NormalizeKernel<kWidth, T> : NormalizeKernel<1, T>,
      GridFor(elements / (packs ? kWidth : 1)), kBlock, 0, launch.stream, c,
      elements, In<T>(args, 0), In(args, 1), In(args, 2), Out(args, 1),
      Out(args, 2), Out<T>(args, 0));
}

PreparedKernel BatchNormTraining(const Prepare& p) {
  const Channels c = MakeChannels(p, p.input(0));
  if (c.s.count() == 0) return p.Invalid("statistics of nothing");
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {}, {0}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {1, 2}, {1, 2}));
  return WithFloat(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [c](const KernelArgs& args, const LaunchContext& launch) {
          return LaunchTraining<T>(c, args, launch);
        },
        WorkspaceBytes(c));
  });
}

template <typename T>
absl::Status LaunchGrad(const Channels& c, const KernelArgs& args,
                        const LaunchContext& launch) {
  const GradTensors<T> t = {In<T>(args, 0), In<T>(args, 1), In(args, 2),
                            In(args, 3), In(args, 4)};
  auto* sums = Workspace<PartSums>(args);
  const int64_t elements = c.s.count() * c.s.channels;
  LOADLINE_RETURN_IF_ERROR(LaunchKernel(GradSumsKernel<T>,
                                        GridFor(c.s.channels * c.parts, 1),
                                        kBlock, 0, launch.stream, c, t, sums));
  LOADLINE_RETURN_IF_ERROR(
      LaunchKernel(JoinGradSumsKernel, GridFor(c.s.channels), kBlock, 0,
                   launch.stream, c, sums, t.rstd, Out(args, 1), Out(args, 2)));
  constexpr int kWidth = kPackWidth<T>;
  const bool packs = c.s.plane % kWidth == 0;
  return LaunchKernel(
      packs ? BatchNormGradKernel<kWidth, T> : BatchNormGradKernel<1, T>,
      GridFor(elements / (packs ? kWidth : 1)), kBlock, 0, launch.stream, c,
      elements, t, Out(args, 1), Out(args, 2), Out<T>(args, 0));
}

PreparedKernel BatchNormGrad(const Prepare& p) {
  const Channels c = MakeChannels(p, p.input(1));
  if (c.s.count() == 0) return p.Invalid("statistics of nothing");
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(1).dtype, {0}, {0}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {2, 3, 4}, {1, 2}));
  return WithFloat(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [c](const KernelArgs& args, const LaunchContext& launch) {
          return LaunchGrad<T>(c, args, launch);
        },
        WorkspaceBytes(c));
  });
}

PreparedKernel BatchNormalization(const Prepare& p) {
  const Channels c = MakeChannels(p, p.input(0));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {}, {0}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {1, 2, 3, 4}, {}));
  const int64_t n = p.output(0).elements();
  return WithFloat(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
      if (n == 0) return absl::OkStatus();
      return LaunchKernel(InferenceKernel<T>, GridFor(n), kBlock, 0,
                          launch.stream, c, n, In<T>(args, 0), In(args, 1),
                          In(args, 2), In(args, 3), In(args, 4),
                          Out<T>(args, 0));
    });
  });
}

PreparedKernel RunningStatsUpdate(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t channels = p.output(0).elements();
  const RunningStats s = MakeRunningStats(p);
  const int inputs = p.inputs();
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    const float* mean = In(args, 0);
    const float* variance = In(args, 1);
    for (int i = 2; i < inputs; i += 2) {
      LOADLINE_RETURN_IF_ERROR(
          LaunchKernel(RunningStatsKernel, GridFor(channels), kBlock, 0,
                       launch.stream, s, channels, mean, variance, In(args, i),
                       In(args, i + 1), Out(args, 0), Out(args, 1)));
      mean = Out(args, 0);
      variance = Out(args, 1);
    }
    return absl::OkStatus();
  });
}

constexpr KernelEntry kKernels[] = {
    {"BatchNormalization", BatchNormalization},
    {"BatchNormTraining", BatchNormTraining},
    {"BatchNormGrad", BatchNormGrad},
    {"RunningStatsUpdate", RunningStatsUpdate},
};

}  // namespace

absl::Span<const KernelEntry> BatchNormKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
