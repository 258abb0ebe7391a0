// ReduceSum and ReduceMean over any axes.
//
// The input is traversed as (kept index, reduced index). If the innermost
// dimension is reduced, each output element sums contiguous runs; if it is
// kept, whole rows are added to a row of sums. Either way memory is read in
// order. Additions are in runs of 64 elements or rows, then over runs. A
// reduction to few outputs is divided into parts (by the shape alone) that
// threads share and that are added in order at the end. Tested in
// tests/conformance/.
#include <cstring>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/loop_nest.h"
#include "executor/ops/operator_shapes.h"

namespace loadline::executor::cpu {
namespace {

constexpr int64_t kRun = 64;       // stretches or rows summed before carrying
constexpr int64_t kColumns = 512;  // of a row summed at once: fits the L1 cache
constexpr int64_t kInnerPiece = 4096;

// Shape and axes of a reduction, reduced to loops. Strides are the input's.
struct Reduction {
  LoopNest<1> kept;     // without the innermost stretch, if that one is kept
  LoopNest<1> reduced;  // without the innermost stretch, if that is reduced
  bool inner_reduced;
  int64_t inner;  // elements of the innermost stretch
  int64_t parts;  // of the reduced range
  float divisor;
};

// Sums the reduced runs [begin, end) of one output element.
template <typename T>
float SumStretches(const Reduction& r, const T* x, int64_t begin, int64_t end) {
  float total = 0;
  for (int64_t run = begin; run < end; run += kRun) {
    float sum = 0;
    r.reduced.Run(run, std::min(end, run + kRun),
                  [&](const std::array<int64_t, 1>& at, int64_t n) {
                    for (int64_t i = 0; i < n; ++i) {
                      const T* row = x + at[0] + i * r.reduced.inner_stride(0);
                      for (int64_t j = 0; j < r.inner; j += kInnerPiece) {
                        sum += LaneSum(
                            j, std::min(r.inner, j + kInnerPiece),
                            [row](int64_t k) -> float { return row[k]; });
                      }
                    }
                  });
    total += sum;
  }
  return total;
}

// Sums rows [begin, end) of `columns` (at most kColumns) columns into y.
template <typename T>
void SumRows(const Reduction& r, const T* x, int64_t columns, int64_t begin,
             int64_t end, float* y) {
  alignas(64) float sums[kColumns];
  std::fill(y, y + columns, 0.0f);
  for (int64_t run = begin; run < end; run += kRun) {
    std::fill(sums, sums + columns, 0.0f);
    r.reduced.Run(run, std::min(end, run + kRun),
                  [&](const std::array<int64_t, 1>& at, int64_t n) {
                    for (int64_t i = 0; i < n; ++i) {
                      const T* row = x + at[0] + i * r.reduced.inner_stride(0);
#pragma omp simd
                      for (int64_t j = 0; j < columns; ++j) sums[j] += row[j];
                    }
                  });
    for (int64_t j = 0; j < columns; ++j) y[j] += sums[j];
  }
}

int64_t KeptOffset(const Reduction& r, int64_t index) {
  int64_t offset = 0;
  r.kept.Run(index, index + 1, [&](const std::array<int64_t, 1>& at, int64_t) {
    offset = at[0];
  });
  return offset;
}

// Sums part `part` of every output into y.
template <typename T>
void SumPart(const Reduction& r, const T* x, int64_t part, float* y) {
  const int64_t terms = r.reduced.elements();
  const int64_t begin = terms * part / r.parts;
  const int64_t end = terms * (part + 1) / r.parts;
  if (r.inner_reduced) {
    ParallelEach(r.kept.elements(), (end - begin) * r.inner, [&](int64_t k) {
      y[k] = SumStretches(r, x + KeptOffset(r, k), begin, end);
    });
    return;
  }
  const int64_t pieces = (r.inner + kColumns - 1) / kColumns;
  ParallelEach(r.kept.elements() * pieces, (end - begin) * kColumns,
               [&](int64_t unit) {
                 const int64_t k = unit / pieces;
                 const int64_t column = unit % pieces * kColumns;
                 SumRows(r, x + KeptOffset(r, k) + column,
                         std::min(kColumns, r.inner - column), begin, end,
                         y + k * r.inner + column);
               });
}

template <typename T>
void Reduce(const Reduction& r, const T* x, float* y, float* partial) {
  const int64_t n = r.kept.elements() * (r.inner_reduced ? 1 : r.inner);
  if (r.parts == 1) {
    SumPart(r, x, 0, y);
  } else {
    ParallelFor(r.parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        SumPart(r, x, part, partial + part * n);
      }
    });
    std::copy(partial, partial + n, y);
    for (int64_t part = 1; part < r.parts; ++part) {
      for (int64_t i = 0; i < n; ++i) y[i] += partial[part * n + i];
    }
  }
  if (r.divisor != 1.0f) {
    for (int64_t i = 0; i < n; ++i) y[i] /= r.divisor;
  }
}

// Few outputs of many terms: one part per 64 Ki elements, at most 16.
int64_t Parts(int64_t kept_units, int64_t reduced_terms, int64_t elements) {
  if (kept_units >= 4) return 1;
  const int64_t wanted = std::min<int64_t>(16, elements / 65536);
  return std::max<int64_t>(1, std::min(wanted, reduced_terms / kRun));
}

std::vector<ReduceAxis> CutAxes(const Prepare& p) {
  std::vector<ReduceAxis> merged = MergedReduceAxes(p);
  // One long contiguous reduction becomes rows, so that parts can share it.
  if (!merged.empty() && merged.back().reduced) {
    const int64_t inner = merged.back().dim;
    if (inner > kInnerPiece && inner % kInnerPiece == 0) {
      merged.back().dim = inner / kInnerPiece;
      merged.push_back({kInnerPiece, true});
    }
  }
  return merged;
}

Reduction MakeReduction(const Prepare& p, bool mean) {
  std::vector<ReduceAxis> axes = CutAxes(p);
  Ints dims;
  for (const ReduceAxis& axis : axes) dims.push_back(axis.dim);
  const Ints strides = DenseStrides(dims);
  int64_t inner = 1;
  bool inner_reduced = true;
  if (!axes.empty()) {
    inner = axes.back().dim;
    inner_reduced = axes.back().reduced;
    axes.pop_back();
  }
  Ints kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (size_t d = 0; d < axes.size(); ++d) {
    (axes[d].reduced ? reduced_dims : kept_dims).push_back(axes[d].dim);
    (axes[d].reduced ? reduced_strides : kept_strides).push_back(strides[d]);
  }
  const LoopNest<1> kept(kept_dims, {kept_strides});
  const LoopNest<1> reduced(reduced_dims, {reduced_strides});
  const int64_t elements = p.input(0).elements();
  const int64_t units =
      kept.elements() * (inner_reduced ? 1 : (inner + kColumns - 1) / kColumns);
  return {kept,
          reduced,
          inner_reduced,
          inner,
          Parts(units, reduced.elements(), elements),
          mean ? MeanDivisor(p) : 1.0f};
}

PreparedKernel PrepareReduce(const Prepare& p, bool mean) {
  const Reduction r = MakeReduction(p, mean);
  const int64_t n = p.output(0).elements();
  const int64_t partial = r.parts == 1 ? 0 : r.parts * n;
  if (p.output(0).dtype == DType::kF32) {
    return MakeKernel(
        [r](const KernelArgs& args) {
          Reduce(r, In(args, 0), Out(args, 0), Workspace(args));
        },
        partial * int64_t{sizeof(float)});
  }
  // Sums stay float until they are complete.
  return WithFloat<Bf16>(p, p.output(0).dtype,
                         [&](auto type) -> PreparedKernel {
                           using T = decltype(type);
                           return MakeKernel(
                               [r, n](const KernelArgs& args) {
                                 float* sums = Workspace(args);
                                 Reduce(r, In<T>(args, 0), sums, sums + n);
                                 std::copy(sums, sums + n, Out<T>(args, 0));
                               },
                               (n + partial) * int64_t{sizeof(float)});
                         });
}

constexpr KernelEntry kReduceKernels[] = {
    {"ReduceSum", [](const Prepare& p) { return PrepareReduce(p, false); }},
    {"ReduceMean", [](const Prepare& p) { return PrepareReduce(p, true); }},
};

}  // namespace

absl::Span<const KernelEntry> ReduceKernels() { return kReduceKernels; }

}  // namespace loadline::executor::cpu
