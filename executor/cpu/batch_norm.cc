// Batch normalization over [N, C, plane...] per channel.
//
// Two loop orders. Large planes: channel by channel, each plane contiguous; a
// channel's data stays in the cache between passes. Small planes (late stages
// of a CNN on small images): rows of C * plane elements are added elementwise
// over N into a row of sums, so that memory is still read in long contiguous
// runs. The variance takes two passes. Tested in tests/conformance/.
#include <cmath>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// Below this a plane is too short for vector loops of its own.
constexpr int64_t kSmallPlane = 64;
// Columns (channel, position) handled together; whole channels.
constexpr int64_t kColumns = 256;

struct Shape : NormChannels {
  template <typename T>
  T* At(T* x, int64_t i, int64_t c) const {
    return x + (i * channels + c) * plane;
  }
};

Shape MakeShape(const Prepare& p, const TensorType& x) {
  return {MakeNormChannels(p, x)};
}

// Calls body(c, channels) for groups of channels that share a row of sums.
template <typename Body>
void ForChannelGroups(const Shape& s, const Body& body) {
  const int64_t group = std::max<int64_t>(1, kColumns / s.plane);
  const int64_t cost = s.count() * group;
  ParallelEach((s.channels + group - 1) / group, cost, [&](int64_t g) {
    body(g * group, std::min(group, s.channels - g * group));
  });
}

// Repeats one number per channel over the channel's columns.
void Spread(const Shape& s, const float* per_channel, int64_t channels,
            float* columns) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < s.plane; ++i) {
      columns[c * s.plane + i] = per_channel[c];
    }
  }
}

// Sums the columns of each channel.
void Fold(const Shape& s, const float* columns, int64_t channels,
          float* per_channel) {
  for (int64_t c = 0; c < channels; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < s.plane; ++i) sum += columns[c * s.plane + i];
    per_channel[c] = sum;
  }
}

// Sum over n of term(n, column) for `columns` columns, in runs of 64 rows.
template <typename Term>
void SumColumns(int64_t n, int64_t columns, float* sums, const Term& term) {
  constexpr int64_t kRun = 64;
  alignas(64) float run[kColumns];
  std::fill(sums, sums + columns, 0.0f);
  for (int64_t begin = 0; begin < n; begin += kRun) {
    std::fill(run, run + columns, 0.0f);
    for (int64_t i = begin; i < std::min(n, begin + kRun); ++i) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) run[j] += term(i, j);
    }
    for (int64_t j = 0; j < columns; ++j) sums[j] += run[j];
  }
}

template <typename T>
void TrainSmallPlanes(const Shape& s, const T* x, const float* scale,
                      const float* bias, T* y, float* mean, float* rstd) {
  ForChannelGroups(s, [&](int64_t c, int64_t channels) {
    alignas(64) float sums[kColumns], means[kColumns], factors[kColumns],
        shifts[kColumns], factor[kColumns];
    const int64_t columns = channels * s.plane;
    const int64_t stride = s.channels * s.plane;
    const T* from = s.At(x, 0, c);
    SumColumns(s.n, columns, sums,
               [=](int64_t i, int64_t j) { return from[i * stride + j]; });
    Fold(s, sums, channels, mean + c);
    for (int64_t k = 0; k < channels; ++k) {
      mean[c + k] /= static_cast<float>(s.count());
    }
    Spread(s, mean + c, channels, means);
    SumColumns(s.n, columns, sums, [=, &means](int64_t i, int64_t j) {
      const float d = from[i * stride + j] - means[j];
      return d * d;
    });
    Fold(s, sums, channels, rstd + c);
    for (int64_t k = 0; k < channels; ++k) {
      const float variance = rstd[c + k] / static_cast<float>(s.count());
      rstd[c + k] = 1.0f / std::sqrt(variance + s.epsilon);
      factor[k] = rstd[c + k] * scale[c + k];
    }
    Spread(s, factor, channels, factors);
    Spread(s, bias + c, channels, shifts);
    T* to = s.At(y, 0, c);
    for (int64_t i = 0; i < s.n; ++i) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        to[i * stride + j] =
            (from[i * stride + j] - means[j]) * factors[j] + shifts[j];
      }
    }
  });
}

template <typename T>
void TrainLargePlanes(const Shape& s, const T* x, const float* scale,
                      const float* bias, T* y, float* mean, float* rstd) {
  const auto count = static_cast<double>(s.count());
  ParallelEach(s.channels, s.count(), [&](int64_t c) {
    double sum = 0;
    for (int64_t i = 0; i < s.n; ++i) {
      const T* row = s.At(x, i, c);
      sum += SumOf(0, s.plane, [row](int64_t j) -> float { return row[j]; });
    }
    const auto m = static_cast<float>(sum / count);
    double squares = 0;
    for (int64_t i = 0; i < s.n; ++i) {
      const T* row = s.At(x, i, c);
      squares += SumOf(0, s.plane, [row, m](int64_t j) {
        return (row[j] - m) * (row[j] - m);
      });
    }
    const auto variance = static_cast<float>(squares / count);
    const float r = 1.0f / std::sqrt(variance + s.epsilon);
    mean[c] = m;
    rstd[c] = r;
    const float factor = r * scale[c];
    const float shift = bias[c];
    for (int64_t i = 0; i < s.n; ++i) {
      const T* row = s.At(x, i, c);
      T* to = s.At(y, i, c);
#pragma omp simd
      for (int64_t j = 0; j < s.plane; ++j) {
        to[j] = (row[j] - m) * factor + shift;
      }
    }
  });
}

PreparedKernel BatchNormTraining(const Prepare& p) {
  const Shape s = MakeShape(p, p.input(0));
  if (s.count() == 0) return p.Invalid("statistics of nothing");
  return WithFloat<Bf16>(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    const auto train =
        s.plane < kSmallPlane ? TrainSmallPlanes<T> : TrainLargePlanes<T>;
    return MakeKernel([s, train](const KernelArgs& args) {
      train(s, In<T>(args, 0), In(args, 1), In(args, 2), Out<T>(args, 0),
            Out(args, 1), Out(args, 2));
    });
  });
}

template <typename T>
struct GradTensors {
  const T *dy, *x;
  const float *scale, *mean, *rstd;
  T* dx;
  float *dscale, *dbias;
};

template <typename T>
void GradSmallPlanes(const Shape& s, const GradTensors<T>& t) {
  ForChannelGroups(s, [&](int64_t c, int64_t channels) {
    alignas(64) float sums[kColumns], means[kColumns], factors[kColumns],
        slopes[kColumns], shifts[kColumns], factor[kColumns], slope[kColumns],
        shift[kColumns];
    const int64_t columns = channels * s.plane;
    const int64_t stride = s.channels * s.plane;
    const T* x = s.At(t.x, 0, c);
    const T* dy = s.At(t.dy, 0, c);
    SumColumns(s.n, columns, sums,
               [=](int64_t i, int64_t j) { return dy[i * stride + j]; });
    Fold(s, sums, channels, t.dbias + c);
    Spread(s, t.mean + c, channels, means);
    SumColumns(s.n, columns, sums, [=, &means](int64_t i, int64_t j) {
      return dy[i * stride + j] * (x[i * stride + j] - means[j]);
    });
    Fold(s, sums, channels, t.dscale + c);
    for (int64_t k = 0; k < channels; ++k) {
      t.dscale[c + k] *= t.rstd[c + k];
      const ChannelGrad g = MakeChannelGrad(s, t.scale[c + k], t.rstd[c + k],
                                            t.dscale[c + k], t.dbias[c + k]);
      factor[k] = g.factor;
      slope[k] = g.slope;
      shift[k] = g.shift;
    }
    Spread(s, factor, channels, factors);
    Spread(s, slope, channels, slopes);
    Spread(s, shift, channels, shifts);
    T* dx = s.At(t.dx, 0, c);
    for (int64_t i = 0; i < s.n; ++i) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = i * stride + j;
        dx[at] =
            factors[j] * dy[at] + slopes[j] * (x[at] - means[j]) + shifts[j];
      }
    }
  });
}

template <typename T>
void GradLargePlanes(const Shape& s, const GradTensors<T>& t) {
  ParallelEach(s.channels, s.count(), [&](int64_t c) {
    const float m = t.mean[c];
    double sum = 0;
    double product = 0;
    for (int64_t i = 0; i < s.n; ++i) {
      const T* x = s.At(t.x, i, c);
      const T* dy = s.At(t.dy, i, c);
      sum += SumOf(0, s.plane, [dy](int64_t j) -> float { return dy[j]; });
      product += SumOf(0, s.plane,
                       [dy, x, m](int64_t j) { return dy[j] * (x[j] - m); });
    }
    t.dbias[c] = static_cast<float>(sum);
    t.dscale[c] = static_cast<float>(product) * t.rstd[c];
    const ChannelGrad g =
        MakeChannelGrad(s, t.scale[c], t.rstd[c], t.dscale[c], t.dbias[c]);
    for (int64_t i = 0; i < s.n; ++i) {
      const T* x = s.At(t.x, i, c);
      const T* dy = s.At(t.dy, i, c);
      T* dx = s.At(t.dx, i, c);
#pragma omp simd
      for (int64_t j = 0; j < s.plane; ++j) {
        dx[j] = g.factor * dy[j] + g.slope * (x[j] - m) + g.shift;
      }
    }
  });
}

PreparedKernel BatchNormGrad(const Prepare& p) {
  const Shape s = MakeShape(p, p.input(1));
  if (s.count() == 0) return p.Invalid("statistics of nothing");
  return WithFloat<Bf16>(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    const auto grad =
        s.plane < kSmallPlane ? GradSmallPlanes<T> : GradLargePlanes<T>;
    return MakeKernel([s, grad](const KernelArgs& args) {
      grad(s, {In<T>(args, 0), In<T>(args, 1), In(args, 2), In(args, 3),
               In(args, 4), Out<T>(args, 0), Out(args, 1), Out(args, 2)});
    });
  });
}

PreparedKernel BatchNormalization(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const Shape s = MakeShape(p, p.input(0));
  return MakeKernel([s](const KernelArgs& args) {
    const float* scale = In(args, 1);
    const float* bias = In(args, 2);
    const float* mean = In(args, 3);
    const float* variance = In(args, 4);
    ParallelEach(s.n * s.channels, s.plane, [&](int64_t unit) {
      const int64_t c = unit % s.channels;
      const float factor = scale[c] / std::sqrt(variance[c] + s.epsilon);
      const float m = mean[c];
      const float shift = bias[c];
      const float* x = In(args, 0) + unit * s.plane;
      float* y = Out(args, 0) + unit * s.plane;
#pragma omp simd
      for (int64_t j = 0; j < s.plane; ++j) y[j] = (x[j] - m) * factor + shift;
    });
  });
}

PreparedKernel RunningStatsUpdate(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t channels = p.output(0).elements();
  const RunningStats stats = MakeRunningStats(p);
  const int inputs = p.inputs();
  return MakeKernel([=](const KernelArgs& args) {
    for (int64_t c = 0; c < channels; ++c) {
      float mean = In(args, 0)[c];
      float variance = In(args, 1)[c];
      for (int i = 2; i < inputs; i += 2) {
        mean = stats.Mean(mean, In(args, i)[c]);
        variance = stats.Variance(variance, In(args, i + 1)[c]);
      }
      Out(args, 0)[c] = mean;
      Out(args, 1)[c] = variance;
    }
  });
}

constexpr KernelEntry kBatchNormKernels[] = {
    {"BatchNormalization", BatchNormalization},
    {"BatchNormTraining", BatchNormTraining},
    {"BatchNormGrad", BatchNormGrad},
    {"RunningStatsUpdate", RunningStatsUpdate},
};

}  // namespace

absl::Span<const KernelEntry> BatchNormKernels() { return kBatchNormKernels; }

}  // namespace loadline::executor::cpu
