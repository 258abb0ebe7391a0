// ReduceSum and ReduceMean over any axes.
//
// The input is traversed as (kept position, reduced position). If the innermost
// dimension is reduced, a team of threads sums one output; if it is kept, a
// block of 32 x 8 threads sums 32 adjacent outputs. If the outputs alone would
// leave a GPU idle, the reduced positions are divided into parts, whose sums
// are added from the workspace in order. Sums are in float; all divisions
// depend on the shape alone. Tested in tests/conformance/.
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

constexpr int kColumnRows = 8;  // threads that share a column
constexpr int64_t kMostParts = 128;
constexpr int64_t kWantedBlocks = 264;  // two for each of 132 processors
// Minimum terms of a part, for columns and for rows.
constexpr int64_t kColumnTerms = 256;
constexpr int64_t kRowTerms = 4096;

struct Reduction {
  Nest<1> kept, reduced;  // all dimensions of each kind
  int64_t parts;
  float divisor;

  __host__ __device__ int64_t Begin(int64_t part) const {
    return reduced.elements * part / parts;
  }
};

// y[part, k] for every kept k; one team each.
template <int kTeam, typename T, typename R>
__global__ void SumRowsKernel(Reduction r, float divisor, const T* x, R* y) {
  const int64_t units = r.kept.elements * r.parts;
  for (int64_t unit = TeamIndex<kTeam>(); unit < units;
       unit += TeamsOfGrid<kTeam>()) {
    const int64_t part = unit / r.kept.elements;
    int64_t base[1];
    r.kept.Offsets(unit % r.kept.elements, base);
    const int64_t end = r.Begin(part + 1);
    float sum = 0;
    for (int64_t i = r.Begin(part) + TeamThread<kTeam>(); i < end; i += kTeam) {
      int64_t at[1];
      r.reduced.Offsets(i, at);
      sum += Widen(x[base[0] + at[0]]);
    }
    sum = TeamSum<kTeam>(sum);
    if (TeamThread<kTeam>() == 0) y[unit] = Narrow<R>(sum / divisor);
  }
}

// The same if adjacent outputs are adjacent in x.
template <typename T, typename R>
__global__ void SumColumnsKernel(Reduction r, float divisor, const T* x, R* y) {
  __shared__ float sums[kColumnRows][kWarp];
  const int64_t groups = (r.kept.elements + kWarp - 1) / kWarp;
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(threadIdx.y);
  for (int64_t unit = blockIdx.x; unit < groups * r.parts; unit += gridDim.x) {
    const int64_t part = unit / groups;
    const int64_t k = unit % groups * kWarp + lane;
    const int64_t end = r.Begin(part + 1);
    float sum = 0;
    if (k < r.kept.elements) {
      int64_t base[1];
      r.kept.Offsets(k, base);
      for (int64_t i = r.Begin(part) + row; i < end; i += kColumnRows) {
        int64_t at[1];
        r.reduced.Offsets(i, at);
        sum += Widen(x[base[0] + at[0]]);
      }
    }
    sums[row][lane] = sum;
    __syncthreads();
    if (row == 0 && k < r.kept.elements) {
      for (int i = 1; i < kColumnRows; ++i) sum += sums[i][lane];
      y[part * r.kept.elements + k] = Narrow<R>(sum / divisor);
    }
    __syncthreads();  // before the next iteration overwrites the sums
  }
}

// y[k] = sum over parts of partial[part, k], in order.
template <typename R>
__global__ void AddPartsKernel(const float* partial, int64_t parts, int64_t n,
                               float divisor, R* y) {
  for (int64_t k = GridThread(); k < n; k += GridThreads()) {
    float sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += partial[part * n + k];
    y[k] = Narrow<R>(sum / divisor);
  }
}

template <typename T, typename R>
absl::Status LaunchSums(const Reduction& r, bool columns, float divisor,
                        const T* x, R* y, const LaunchContext& launch) {
  if (columns) {
    const int64_t groups = (r.kept.elements + kWarp - 1) / kWarp;
    return LaunchKernel(SumColumnsKernel<T, R>, GridFor(groups * r.parts, 1),
                        dim3(kWarp, kColumnRows), 0, launch.stream, r, divisor,
                        x, y);
  }
  const int64_t units = r.kept.elements * r.parts;
  if (r.reduced.elements / r.parts > kLongRow) {
    return LaunchKernel(SumRowsKernel<kBlock, T, R>, GridFor(units * kBlock),
                        kBlock, 0, launch.stream, r, divisor, x, y);
  }
  return LaunchKernel(SumRowsKernel<kWarp, T, R>, GridFor(units * kWarp),
                      kBlock, 0, launch.stream, r, divisor, x, y);
}

absl::StatusOr<Reduction> MakeReduction(const Prepare& p, bool mean,
                                        bool& columns) {
  const std::vector<ReduceAxis> axes = MergedReduceAxes(p);
  Ints dims;
  for (const ReduceAxis& axis : axes) dims.push_back(axis.dim);
  const Ints strides = DenseStrides(dims);
  Ints kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (size_t d = 0; d < axes.size(); ++d) {
    (axes[d].reduced ? reduced_dims : kept_dims).push_back(axes[d].dim);
    (axes[d].reduced ? reduced_strides : kept_strides).push_back(strides[d]);
  }
  Reduction r;
  LOADLINE_ASSIGN_OR_RETURN(
      r.kept, MakeNest(p, LoopNest<1>(kept_dims, {kept_strides})));
  LOADLINE_ASSIGN_OR_RETURN(
      r.reduced, MakeNest(p, LoopNest<1>(reduced_dims, {reduced_strides})));
  columns = !axes.empty() && !axes.back().reduced;
  r.divisor = mean ? MeanDivisor(p) : 1.0f;
  const int64_t blocks = columns
                             ? (r.kept.elements + kWarp - 1) / kWarp
                             : (r.kept.elements * kWarp + kBlock - 1) / kBlock;
  r.parts = std::clamp<int64_t>(
      std::min(kWantedBlocks / std::max<int64_t>(blocks, 1),
               r.reduced.elements / (columns ? kColumnTerms : kRowTerms)),
      1, kMostParts);
  return r;
}

PreparedKernel PrepareReduce(const Prepare& p, bool mean) {
  LOADLINE_RETURN_IF_ERROR(RequireOneType(p));
  bool columns = false;
  LOADLINE_ASSIGN_OR_RETURN(const Reduction r, MakeReduction(p, mean, columns));
  return WithFloat(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    const int64_t n = p.output(0).elements();
    if (r.parts == 1) {
      return MakeKernel(
          [=](const KernelArgs& args, const LaunchContext& launch) {
            if (n == 0) return absl::OkStatus();
            return LaunchSums(r, columns, r.divisor, In<T>(args, 0),
                              Out<T>(args, 0), launch);
          });
    }
    return MakeKernel(
        [=](const KernelArgs& args, const LaunchContext& launch) {
          if (n == 0) return absl::OkStatus();
          auto* partial = Workspace<float>(args);
          LOADLINE_RETURN_IF_ERROR(
              LaunchSums(r, columns, 1.0f, In<T>(args, 0), partial, launch));
          return LaunchKernel(AddPartsKernel<T>, GridFor(n), kBlock, 0,
                              launch.stream, partial, r.parts, n, r.divisor,
                              Out<T>(args, 0));
        },
        r.parts * n * int64_t{sizeof(float)});
  });
}

constexpr KernelEntry kKernels[] = {
    {"ReduceSum", [](const Prepare& p) { return PrepareReduce(p, false); }},
    {"ReduceMean", [](const Prepare& p) { return PrepareReduce(p, true); }},
};

}  // namespace

absl::Span<const KernelEntry> ReduceKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
