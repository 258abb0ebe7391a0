// Layer normalization over rows: all dimensions from `axis` on form one row.
//
// The gradient also sums over rows (dscale, dbias). Rows are divided into parts
// by the shape alone; each part sums into its own row of the workspace, and the
// parts are added in order. Tested in tests/conformance/.
#include <cmath>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/operator_shapes.h"

namespace loadline::executor::cpu {
namespace {

template <typename T>
PreparedKernel Normalize(const NormRows& r, bool has_bias) {
  return MakeKernel([r, has_bias](const KernelArgs& args) {
    const float* scale = In(args, 1);
    const float* bias = has_bias ? In(args, 2) : nullptr;
    ParallelEach(r.rows, r.size, [&](int64_t row) {
      const T* x = In<T>(args, 0) + row * r.size;
      T* y = Out<T>(args, 0) + row * r.size;
      const auto size = static_cast<double>(r.size);
      const auto mean = static_cast<float>(
          SumOf(0, r.size, [x](int64_t j) -> float { return x[j]; }) / size);
      const auto variance =
          static_cast<float>(SumOf(0, r.size,
                                   [x, mean](int64_t j) {
                                     return (x[j] - mean) * (x[j] - mean);
                                   }) /
                             size);
      const float rstd = 1.0f / std::sqrt(variance + r.epsilon);
      Out(args, 1)[row] = mean;
      Out(args, 2)[row] = rstd;
      if (bias != nullptr) {
#pragma omp simd
        for (int64_t j = 0; j < r.size; ++j) {
          y[j] = (x[j] - mean) * rstd * scale[j] + bias[j];
        }
      } else {
#pragma omp simd
        for (int64_t j = 0; j < r.size; ++j) {
          y[j] = (x[j] - mean) * rstd * scale[j];
        }
      }
    });
  });
}

PreparedKernel LayerNormalization(const Prepare& p) {
  const NormRows r = MakeNormRows(p, p.input(0));
  if (r.size == 0) return p.Invalid("statistics of nothing");
  return WithFloat<Bf16>(p, p.input(0).dtype, [&](auto type) {
    return Normalize<decltype(type)>(r, p.has_input(2));
  });
}

template <typename T>
struct RowGradTensors {
  const T *dy, *x;
  const float *scale, *mean, *rstd;
  T* dx;
};

// One row: dx, and its terms added to dscale and dbias.
template <typename T>
void GradRow(const NormRows& r, const RowGradTensors<T>& t, int64_t row,
             float* dscale, float* dbias) {
  const T* dy = t.dy + row * r.size;
  const T* x = t.x + row * r.size;
  const float* scale = t.scale;
  T* dx = t.dx + row * r.size;
  const float mean = t.mean[row];
  const float rstd = t.rstd[row];
  const auto size = static_cast<double>(r.size);
  // Means over the row of g and of g xhat, where g = dy scale.
  const auto mean_g = static_cast<float>(
      SumOf(0, r.size, [=](int64_t j) { return dy[j] * scale[j]; }) / size);
  const auto mean_gx = static_cast<float>(SumOf(0, r.size,
                                                [=](int64_t j) {
                                                  return dy[j] * scale[j] *
                                                         ((x[j] - mean) * rstd);
                                                }) /
                                          size);
#pragma omp simd
  for (int64_t j = 0; j < r.size; ++j) {
    const float xhat = (x[j] - mean) * rstd;
    const float d = dy[j];
    dscale[j] += d * xhat;
    dbias[j] += d;
    dx[j] = rstd * (d * scale[j] - mean_g - xhat * mean_gx);
  }
}

void SumParts(const float* partial, int64_t parts, int64_t stride, int64_t n,
              float* y) {
  std::fill(y, y + n, 0.0f);
  for (int64_t part = 0; part < parts; ++part) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) y[j] += partial[part * stride + j];
  }
}

template <typename T>
PreparedKernel Gradient(const NormRows& r) {
  const int64_t parts = std::clamp<int64_t>(r.rows / 32, 1, 32);
  const int64_t workspace = parts * 2 * r.size * int64_t{sizeof(float)};
  return MakeKernel(
      [r, parts](const KernelArgs& args) {
        const RowGradTensors<T> t = {In<T>(args, 0), In<T>(args, 1),
                                     In(args, 2),    In(args, 3),
                                     In(args, 4),    Out<T>(args, 0)};
        float* partial = Workspace(args);
        ParallelEach(parts, r.rows * r.size / parts, [&](int64_t part) {
          float* dscale = partial + part * 2 * r.size;
          float* dbias = dscale + r.size;
          std::fill(dscale, dbias + r.size, 0.0f);
          const int64_t end = r.rows * (part + 1) / parts;
          for (int64_t row = r.rows * part / parts; row < end; ++row) {
            GradRow(r, t, row, dscale, dbias);
          }
        });
        SumParts(partial, parts, 2 * r.size, r.size, Out(args, 1));
        SumParts(partial + r.size, parts, 2 * r.size, r.size, Out(args, 2));
      },
      workspace);
}

PreparedKernel LayerNormGrad(const Prepare& p) {
  const NormRows r = MakeNormRows(p, p.input(1));
  return WithFloat<Bf16>(p, p.input(1).dtype, [&](auto type) {
    return Gradient<decltype(type)>(r);
  });
}

constexpr KernelEntry kLayerNormKernels[] = {
    {"LayerNormalization", LayerNormalization},
    {"LayerNormGrad", LayerNormGrad},
};

}  // namespace

absl::Span<const KernelEntry> LayerNormKernels() { return kLayerNormKernels; }

}  // namespace loadline::executor::cpu
