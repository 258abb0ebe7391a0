// Layer normalization over rows: all dimensions from `axis` on form one row,
// which a warp or a block computes. x, y and their gradients are f32 or bf16;
// scale, bias and statistics f32. Sums are in float; the variance takes two
// passes.
//
// The gradient also sums over rows (dscale, dbias): blocks sum 32 columns of a
// part of the rows, and the parts are added from the workspace in order. Tested
// in tests/conformance/.
#include <algorithm>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kColumnRows = 8;  // threads that share a column
constexpr int64_t kPartRows = 64;
constexpr int64_t kMostParts = 64;

template <int kTeam, int kWidth, typename T>
__global__ void LayerNormKernel(NormRows r, const T* x, const float* scale,
                                const float* bias, T* y, float* means,
                                float* rstds) {
  const auto size = static_cast<float>(r.size);
  for (int64_t row = TeamIndex<kTeam>(); row < r.rows;
       row += TeamsOfGrid<kTeam>()) {
    const T* from = x + row * r.size;
    float sum = 0;
    ForRowPacks<kTeam, kWidth>(r.size, [&](int64_t j) {
      const Pack<T, kWidth> pack = LoadPack<kWidth>(from + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) sum += Widen(pack.at[k]);
    });
    const float mean = TeamSum<kTeam>(sum) / size;
    float squares = 0;
    ForRowPacks<kTeam, kWidth>(r.size, [&](int64_t j) {
      const Pack<T, kWidth> pack = LoadPack<kWidth>(from + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const float d = Widen(pack.at[k]) - mean;
        squares += d * d;
      }
    });
    const float variance = TeamSum<kTeam>(squares) / size;
    const float rstd = 1.0f / sqrtf(variance + r.epsilon);
    ForRowPacks<kTeam, kWidth>(r.size, [&](int64_t j) {
      Pack<T, kWidth> pack = LoadPack<kWidth>(from + j);
      const Pack<float, kWidth> factor = LoadPack<kWidth>(scale + j);
      Pack<float, kWidth> shift = {};
      if (bias != nullptr) shift = LoadPack<kWidth>(bias + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        pack.at[k] = Narrow<T>(
            (Widen(pack.at[k]) - mean) * rstd * factor.at[k] + shift.at[k]);
      }
      StorePack(y + row * r.size + j, pack);
    });
    if (TeamThread<kTeam>() == 0) {
      means[row] = mean;
      rstds[row] = rstd;
    }
  }
}

struct PairSum {
  float a, b;
};
struct AddPairs {
  __device__ PairSum operator()(const PairSum& x, const PairSum& y) const {
    return {x.a + y.a, x.b + y.b};
  }
};

template <typename T>
struct GradTensors {
  const T *dy, *x;
  const float *scale, *mean, *rstd;
};

// dx of every row.
template <int kTeam, int kWidth, typename T>
__global__ void LayerNormGradKernel(NormRows r, GradTensors<T> t, T* dx) {
  const auto size = static_cast<float>(r.size);
  for (int64_t row = TeamIndex<kTeam>(); row < r.rows;
       row += TeamsOfGrid<kTeam>()) {
    const T* dy = t.dy + row * r.size;
    const T* x = t.x + row * r.size;
    const float mean = t.mean[row];
    const float rstd = t.rstd[row];
    // Sums over the row of g and of g xhat, where g = dy scale.
    PairSum sums = {0, 0};
    ForRowPacks<kTeam, kWidth>(r.size, [&](int64_t j) {
      const Pack<T, kWidth> d = LoadPack<kWidth>(dy + j);
      const Pack<T, kWidth> of_x = LoadPack<kWidth>(x + j);
      const Pack<float, kWidth> scale = LoadPack<kWidth>(t.scale + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const float g = Widen(d.at[k]) * scale.at[k];
        sums.a += g;
        sums.b += g * ((Widen(of_x.at[k]) - mean) * rstd);
      }
    });
    sums = TeamReduce<kTeam>(sums, AddPairs());
    const float mean_g = sums.a / size;
    const float mean_gx = sums.b / size;
    ForRowPacks<kTeam, kWidth>(r.size, [&](int64_t j) {
      Pack<T, kWidth> d = LoadPack<kWidth>(dy + j);
      const Pack<T, kWidth> of_x = LoadPack<kWidth>(x + j);
      const Pack<float, kWidth> scale = LoadPack<kWidth>(t.scale + j);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const float xhat = (Widen(of_x.at[k]) - mean) * rstd;
        const float g = Widen(d.at[k]) * scale.at[k];
        d.at[k] = Narrow<T>(rstd * (g - mean_g - xhat * mean_gx));
      }
      StorePack(dx + row * r.size + j, d);
    });
  }
}

// partial[part, 0, j] and [part, 1, j]: terms of dscale and dbias of column j.
template <typename T>
__global__ void SumColumnsKernel(NormRows r, int64_t parts, GradTensors<T> t,
                                 float* partial) {
  __shared__ PairSum sums[kColumnRows][kWarp];
  const int64_t groups = (r.size + kWarp - 1) / kWarp;
  const int lane = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(threadIdx.y);
  for (int64_t unit = blockIdx.x; unit < groups * parts; unit += gridDim.x) {
    const int64_t part = unit / groups;
    const int64_t j = unit % groups * kWarp + lane;
    const int64_t end = r.rows * (part + 1) / parts;
    PairSum sum = {0, 0};
    if (j < r.size) {
      for (int64_t row = r.rows * part / parts + first; row < end;
           row += kColumnRows) {
        const float d = Widen(t.dy[row * r.size + j]);
        const float x = Widen(t.x[row * r.size + j]);
        sum.a += d * ((x - t.mean[row]) * t.rstd[row]);
        sum.b += d;
      }
    }
    sums[first][lane] = sum;
    __syncthreads();
    if (first == 0 && j < r.size) {
      for (int i = 1; i < kColumnRows; ++i) {
        sum = AddPairs()(sum, sums[i][lane]);
      }
      partial[(part * 2) * r.size + j] = sum.a;
      partial[(part * 2 + 1) * r.size + j] = sum.b;
    }
    __syncthreads();  // before the next iteration overwrites the sums
  }
}

__global__ void AddPartsKernel(const float* partial, int64_t parts,
                               int64_t size, float* dscale, float* dbias) {
  for (int64_t j = GridThread(); j < 2 * size; j += GridThreads()) {
    float sum = 0;
    for (int64_t part = 0; part < parts; ++part) {
      sum += partial[part * 2 * size + j];
    }
    (j < size ? dscale : dbias - size)[j] = sum;
  }
}

// The kernel for this row size: per warp or per block, with packs or without.
template <typename T>
auto ForwardKernelFor(const NormRows& r) {
  constexpr int kWidth = kPackWidth<T>;
  if (r.size % kWidth == 0) {
    return r.size > kLongRow ? LayerNormKernel<kBlock, kWidth, T>
                             : LayerNormKernel<kWarp, kWidth, T>;
  }
  return r.size > kLongRow ? LayerNormKernel<kBlock, 1, T>
                           : LayerNormKernel<kWarp, 1, T>;
}
template <typename T>
auto GradKernelFor(const NormRows& r) {
  constexpr int kWidth = kPackWidth<T>;
  if (r.size % kWidth == 0) {
    return r.size > kLongRow ? LayerNormGradKernel<kBlock, kWidth, T>
                             : LayerNormGradKernel<kWarp, kWidth, T>;
  }
  return r.size > kLongRow ? LayerNormGradKernel<kBlock, 1, T>
                           : LayerNormGradKernel<kWarp, 1, T>;
}

PreparedKernel LayerNormalization(const Prepare& p) {
  const NormRows r = MakeNormRows(p, p.input(0));
  if (r.size == 0) return p.Invalid("statistics of nothing");
  const bool has_bias = p.has_input(2);
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {}, {0}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {1, 2}, {1, 2}));
  return WithFloat(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
      if (r.rows == 0) return absl::OkStatus();
      return LaunchKernel(
          ForwardKernelFor<T>(r), GridForRows(r.rows, r.size), kBlock, 0,
          launch.stream, r, In<T>(args, 0), In(args, 1),
          has_bias ? In(args, 2) : static_cast<const float*>(nullptr),
          Out<T>(args, 0), Out(args, 1), Out(args, 2));
    });
  });
}

template <typename T>
absl::Status LaunchGrad(const NormRows& r, int64_t parts,
                        const KernelArgs& args, const LaunchContext& launch) {
  const GradTensors<T> t = {In<T>(args, 0), In<T>(args, 1), In(args, 2),
                            In(args, 3), In(args, 4)};
  auto* partial = Workspace<float>(args);
  const int64_t groups = (r.size + kWarp - 1) / kWarp;
  LOADLINE_RETURN_IF_ERROR(LaunchKernel(
      SumColumnsKernel<T>, GridFor(groups * parts, 1), dim3(kWarp, kColumnRows),
      0, launch.stream, r, parts, t, partial));
  LOADLINE_RETURN_IF_ERROR(LaunchKernel(
      AddPartsKernel, GridFor(2 * r.size), kBlock, 0, launch.stream, partial,
      parts, r.size, Out(args, 1), Out(args, 2)));
  if (r.rows == 0) return absl::OkStatus();
  return LaunchKernel(GradKernelFor<T>(r), GridForRows(r.rows, r.size), kBlock,
                      0, launch.stream, r, t, Out<T>(args, 0));
}

PreparedKernel LayerNormGrad(const Prepare& p) {
  const NormRows r = MakeNormRows(p, p.input(1));
  if (r.size == 0) return p.Invalid("statistics of nothing");
  const int64_t parts = std::clamp<int64_t>(r.rows / kPartRows, 1, kMostParts);
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(1).dtype, {0}, {0}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {2, 3, 4}, {1, 2}));
  return WithFloat(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [=](const KernelArgs& args, const LaunchContext& launch) {
          return LaunchGrad<T>(r, parts, args, launch);
        },
        parts * 2 * r.size * int64_t{sizeof(float)});
  });
}

constexpr KernelEntry kKernels[] = {
    {"LayerNormalization", LayerNormalization},
    {"LayerNormGrad", LayerNormGrad},
};

}  // namespace

absl::Span<const KernelEntry> LayerNormKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
