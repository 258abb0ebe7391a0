// Adafactor: sums along rows and columns, then the norm of the update, then the
// update. Sums are added in an order that follows from the shape alone.
// Learning rate and step are read on the device. Gradients may be bf16. Tested
// in tests/conformance/.
#include <algorithm>
#include <cstdint>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/ops/adafactor_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int64_t kMostParts = 256;
constexpr int kFactorInput = 4;
// Rows of a column that one thread adds; more columns than this fill a GPU.
constexpr int64_t kColumnRows = 512;
constexpr int64_t kMostColumnParts = 64;

// What all kernels of one update read and write. Sums in the workspace are in
// double.
template <typename G>
struct Update {
  AdafactorSettings settings;
  AdafactorShape shape;
  const StepScalars* scalars;
  const float* p;
  const G* g;
  const float *row_in, *column_in, *factor;  // factor may be null
  float *p_out, *row, *column;
  int64_t column_parts;  // of a column's rows
  double *parameter_parts, *update_parts, *divisors, *column_sums;

  __device__ int64_t rows() const { return shape.matrices * shape.rows; }
  __device__ float Gradient(int64_t i) const {
    return Widen(g[i]) * (factor == nullptr ? 1 : *factor);
  }
  // Of element i.
  __device__ float ScaledGradient(const AdafactorStep& s, int64_t i) const {
    if (!shape.factored()) return Scaled(s, Gradient(i), row[i]);
    const int64_t r = i / shape.columns, c = i % shape.columns;
    const int64_t m = r / shape.rows;
    const float square = row[r] * column[m * shape.columns + c] /
                         static_cast<float>(divisors[m]);
    return Scaled(s, Gradient(i), square);
  }
};

// The same in every block, from numbers that are the same in all.
template <typename G>
__device__ inline AdafactorStep StepOf(const Update<G>& u) {
  __shared__ AdafactorStep step;
  if (threadIdx.x == 0) step = MakeStep(u.settings, *u.scalars);
  __syncthreads();
  return step;
}

template <typename G>
__global__ void ParameterPartsKernel(Update<G> u) {
  double sum = 0;
  for (int64_t i = GridThread(); i < u.shape.elements; i += GridThreads()) {
    sum += static_cast<double>(u.p[i]) * u.p[i];
  }
  sum = TeamSum<kBlock>(sum);
  if (threadIdx.x == 0) u.parameter_parts[blockIdx.x] = sum;
}

template <typename G, int kTeam>
__global__ void AverageRowsKernel(Update<G> u) {
  const AdafactorStep step = StepOf(u);
  const int64_t columns = u.shape.columns;
  for (int64_t r = TeamIndex<kTeam>(); r < u.rows();
       r += TeamsOfGrid<kTeam>()) {
    double sum = 0;
    for (int64_t c = TeamThread<kTeam>(); c < columns; c += kTeam) {
      const float x = u.Gradient(r * columns + c);
      sum += static_cast<double>(x) * x;
    }
    sum = TeamSum<kTeam>(sum);
    if (TeamThread<kTeam>() == 0) {
      u.row[r] =
          Averaged(step, u.row_in[r],
                   static_cast<float>(sum / static_cast<double>(columns)));
    }
  }
}

// A thread adds a part of the rows of one column.
template <typename G>
__global__ void ColumnSumsKernel(Update<G> u) {
  const int64_t rows = u.shape.rows, columns = u.shape.columns;
  const int64_t all = u.shape.matrices * columns;
  for (int64_t i = GridThread(); i < all * u.column_parts; i += GridThreads()) {
    const int64_t part = i / all, at = i % all;
    const int64_t m = at / columns, c = at % columns;
    const int64_t begin = rows * part / u.column_parts;
    const int64_t end = rows * (part + 1) / u.column_parts;
    double sum = 0;
    for (int64_t r = begin; r < end; ++r) {
      const float x = u.Gradient((m * rows + r) * columns + c);
      sum += static_cast<double>(x) * x;
    }
    u.column_sums[i] = sum;
  }
}

template <typename G>
__global__ void AverageColumnsKernel(Update<G> u) {
  const AdafactorStep step = StepOf(u);
  const int64_t all = u.shape.matrices * u.shape.columns;
  for (int64_t i = GridThread(); i < all; i += GridThreads()) {
    double sum = 0;
    for (int64_t part = 0; part < u.column_parts; ++part) {
      sum += u.column_sums[part * all + i];
    }
    u.column[i] =
        Averaged(step, u.column_in[i],
                 static_cast<float>(sum / static_cast<double>(u.shape.rows)));
  }
}

template <typename G, int kTeam>
__global__ void DivisorsKernel(Update<G> u) {
  const AdafactorStep step = StepOf(u);
  for (int64_t m = TeamIndex<kTeam>(); m < u.shape.matrices;
       m += TeamsOfGrid<kTeam>()) {
    double sum = 0;
    for (int64_t r = TeamThread<kTeam>(); r < u.shape.rows; r += kTeam) {
      sum += u.row[m * u.shape.rows + r];
    }
    sum = TeamSum<kTeam>(sum);
    if (TeamThread<kTeam>() == 0) {
      u.divisors[m] = Divisor(step, sum / static_cast<double>(u.shape.rows));
    }
  }
}

// Of a parameter with fewer than two axes.
template <typename G>
__global__ void AverageElementsKernel(Update<G> u) {
  const AdafactorStep step = StepOf(u);
  for (int64_t i = GridThread(); i < u.shape.elements; i += GridThreads()) {
    const float x = u.Gradient(i);
    u.row[i] = Averaged(step, u.row_in[i], x * x);
  }
}

template <typename G>
__global__ void UpdatePartsKernel(Update<G> u) {
  const AdafactorStep step = StepOf(u);
  double sum = 0;
  for (int64_t i = GridThread(); i < u.shape.elements; i += GridThreads()) {
    const float x = u.ScaledGradient(step, i);
    sum += static_cast<double>(x) * x;
  }
  sum = TeamSum<kBlock>(sum);
  if (threadIdx.x == 0) u.update_parts[blockIdx.x] = sum;
}

// Every block adds the parts of both norms in the same order.
template <typename G>
__global__ void ApplyKernel(Update<G> u, int64_t parts) {
  const AdafactorStep step = StepOf(u);
  const bool has = threadIdx.x < parts;
  const double p = TeamSum<kBlock>(has ? u.parameter_parts[threadIdx.x] : 0.0);
  const double update =
      TeamSum<kBlock>(has ? u.update_parts[threadIdx.x] : 0.0);
  const float scale =
      UpdateScale(u.settings, *u.scalars, u.shape.elements, p, update);
  for (int64_t i = GridThread(); i < u.shape.elements; i += GridThreads()) {
    u.p_out[i] = u.p[i] * step.decay - scale * u.ScaledGradient(step, i);
  }
}
static_assert(kMostParts <= kBlock);

template <typename G>
absl::Status AverageFactored(const Update<G>& u, const LaunchContext& launch) {
  const AdafactorShape& shape = u.shape;
  const auto run = [&](auto kernel, unsigned grid) {
    return LaunchKernel(kernel, grid, kBlock, 0, launch.stream, u);
  };
  const int64_t rows = shape.matrices * shape.rows;
  LOADLINE_RETURN_IF_ERROR(run(shape.columns > kLongRow
                                   ? AverageRowsKernel<G, kBlock>
                                   : AverageRowsKernel<G, kWarp>,
                               GridForRows(rows, shape.columns)));
  const int64_t all = shape.matrices * shape.columns;
  LOADLINE_RETURN_IF_ERROR(
      run(ColumnSumsKernel<G>, GridFor(all * u.column_parts)));
  LOADLINE_RETURN_IF_ERROR(run(AverageColumnsKernel<G>, GridFor(all)));
  return run(shape.rows > kLongRow ? DivisorsKernel<G, kBlock>
                                   : DivisorsKernel<G, kWarp>,
             GridForRows(shape.matrices, shape.rows));
}

template <typename G>
absl::Status RunUpdate(const Update<G>& u, int64_t parts,
                       const LaunchContext& launch) {
  const auto grid = static_cast<unsigned>(parts);
  LOADLINE_RETURN_IF_ERROR(
      LaunchKernel(ParameterPartsKernel<G>, grid, kBlock, 0, launch.stream, u));
  LOADLINE_RETURN_IF_ERROR(u.shape.factored()
                               ? AverageFactored(u, launch)
                               : LaunchKernel(AverageElementsKernel<G>,
                                              GridFor(u.shape.elements), kBlock,
                                              0, launch.stream, u));
  LOADLINE_RETURN_IF_ERROR(
      LaunchKernel(UpdatePartsKernel<G>, grid, kBlock, 0, launch.stream, u));
  return LaunchKernel(ApplyKernel<G>, GridFor(u.shape.elements), kBlock, 0,
                      launch.stream, u, parts);
}

// A parameter without elements: its states stay.
PreparedKernel KeepStates(const Prepare& p) {
  Ints state_bytes;
  for (int i = 1; i < p.outputs(); ++i) {
    state_bytes.push_back(p.output(i).bytes());
  }
  return MakeKernel(
      [state_bytes](const KernelArgs& args, const LaunchContext& launch) {
        for (size_t i = 0; i < state_bytes.size(); ++i) {
          const std::byte* from = args.inputs[2 + i];
          std::byte* to = args.outputs[1 + i];
          if (from == to || state_bytes[i] == 0) continue;
          LOADLINE_RETURN_IF_ERROR(CudaStatus(
              cudaMemcpyAsync(to, from, static_cast<size_t>(state_bytes[i]),
                              cudaMemcpyDeviceToDevice, launch.stream),
              "copying a state"));
        }
        return absl::OkStatus();
      });
}

PreparedKernel Adafactor(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(
      RequireType(p, DType::kF32, {0, 2, 3, 4}, {0, 1, 2}));
  const AdafactorShape shape = AdafactorShapeOf(p);
  const AdafactorSettings settings = MakeAdafactorSettings(p);
  const int64_t parts = std::clamp<int64_t>(
      (shape.elements + kBlock - 1) / kBlock, 1, kMostParts);
  const int64_t column_parts =
      std::clamp<int64_t>(shape.rows / kColumnRows, 1, kMostColumnParts);
  const int64_t doubles = 2 * parts + shape.matrices +
                          shape.matrices * shape.columns * column_parts;
  return WithFloat(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using G = decltype(type);
    if (shape.elements == 0) return KeepStates(p);
    return MakeKernel(
        [=](const KernelArgs& args, const LaunchContext& launch) {
          const bool factored = shape.factored();
          const bool has_factor = args.inputs.size() > kFactorInput &&
                                  args.inputs[kFactorInput] != nullptr;
          auto* sums = Workspace<double>(args);
          const Update<G> u = {settings,
                               shape,
                               args.scalars,
                               In(args, 0),
                               In<G>(args, 1),
                               In(args, 2),
                               factored ? In(args, 3) : nullptr,
                               has_factor ? In(args, kFactorInput) : nullptr,
                               Out(args, 0),
                               Out(args, 1),
                               factored ? Out(args, 2) : nullptr,
                               column_parts,
                               sums,
                               sums + parts,
                               sums + 2 * parts,
                               sums + 2 * parts + shape.matrices};
          return RunUpdate(u, parts, launch);
        },
        doubles * int64_t{sizeof(double)});
  });
}

constexpr KernelEntry kKernels[] = {{"Adafactor", Adafactor}};

}  // namespace

absl::Span<const KernelEntry> AdafactorKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
