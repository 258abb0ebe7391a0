// Adafactor: sums along rows and columns, then the norm of the update, then the
// update. The blocks of a sum follow from its length alone. Tested in
// tests/conformance/.
#include <algorithm>
#include <cstdint>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/adafactor_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// More parts of a sum would not make it faster.
constexpr int64_t kMostParts = 256;
// Below this a row is too short for the lanes of LaneSum.
constexpr int64_t kShortRow = 64;
constexpr int64_t kColumnBlock = 64;
// Squares that are added in f32 before they are added in double.
constexpr int64_t kRun = 256;

// The sum of term(begin, end) over parts of [0, n), each a whole number of
// units of about `cost` elements.
template <typename Term>
double SumOfParts(int64_t n, int64_t cost, const Term& term) {
  const int64_t block =
      std::max({(n + kMostParts - 1) / kMostParts,
                kElementBlock / std::max<int64_t>(cost, 1), int64_t{1}});
  double parts[kMostParts] = {};
  ParallelFor(n, block, [&](int64_t begin, int64_t end) {
    parts[begin / block] = term(begin, end);
  });
  double sum = 0;
  for (double part : parts) sum += part;
  return sum;
}

template <typename Term>
double RowSum(int64_t columns, const Term& term) {
  if (columns >= kShortRow) return SumOf(0, columns, term);
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += double{term(c)};
  return sum;
}

double SumOfSquares(const float* x, int64_t n) {
  return SumOfParts(n, 1, [x](int64_t begin, int64_t end) {
    return SumOf(begin, end, [x](int64_t i) { return x[i] * x[i]; });
  });
}

// One node's buffers and what its elements share. Rows are those of all
// matrices.
struct Update {
  AdafactorShape shape;
  AdafactorStep step;
  const float *g, *row_in, *column_in;
  float *row, *column;
  float* divisors;  // of each matrix
  float factor;     // of the gradient

  int64_t rows() const { return shape.matrices * shape.rows; }

  void AverageRows() const {
    ParallelEach(rows(), shape.columns, [this](int64_t r) {
      const float* of_row = g + r * shape.columns;
      const double sum = RowSum(shape.columns, [this, of_row](int64_t c) {
        const float x = of_row[c] * factor;
        return x * x;
      });
      row[r] = Averaged(
          step, row_in[r],
          static_cast<float>(sum / static_cast<double>(shape.columns)));
    });
  }

  // Columns [begin, end) of matrix m, at most kColumnBlock.
  void AverageColumnsOf(int64_t m, int64_t begin, int64_t end) const {
    double sums[kColumnBlock] = {};
    const int64_t n = end - begin;
    for (int64_t first = 0; first < shape.rows; first += kRun) {
      float run[kColumnBlock] = {};
      const int64_t last = std::min(shape.rows, first + kRun);
      for (int64_t r = first; r < last; ++r) {
        const float* from = g + (m * shape.rows + r) * shape.columns + begin;
#pragma omp simd
        for (int64_t c = 0; c < n; ++c) {
          const float x = from[c] * factor;
          run[c] += x * x;
        }
      }
      for (int64_t c = 0; c < n; ++c) sums[c] += double{run[c]};
    }
    const int64_t at = m * shape.columns + begin;
    for (int64_t c = 0; c < n; ++c) {
      column[at + c] = Averaged(
          step, column_in[at + c],
          static_cast<float>(sums[c] / static_cast<double>(shape.rows)));
    }
  }

  void AverageColumns() const {
    const int64_t blocks = (shape.columns + kColumnBlock - 1) / kColumnBlock;
    const int64_t cost = shape.rows * std::min(shape.columns, kColumnBlock);
    ParallelEach(shape.matrices * blocks, cost, [=, this](int64_t i) {
      const int64_t begin = i % blocks * kColumnBlock;
      AverageColumnsOf(i / blocks, begin,
                       std::min(shape.columns, begin + kColumnBlock));
    });
  }

  void FindDivisors() const {
    ParallelEach(shape.matrices, shape.rows, [this](int64_t m) {
      const float* of_matrix = row + m * shape.rows;
      const double sum =
          RowSum(shape.rows, [of_matrix](int64_t r) { return of_matrix[r]; });
      divisors[m] = Divisor(step, sum / static_cast<double>(shape.rows));
    });
  }

  // The scaled gradients of row r as a function of the column; where nothing is
  // factored, all elements are one row.
  auto RowOf(int64_t r) const {
    return [=, this](int64_t c) {
      const float gradient = g[r * shape.columns + c] * factor;
      const int64_t m = r / shape.rows;
      return Scaled(step, gradient,
                    row[r] * column[m * shape.columns + c] / divisors[m]);
    };
  }
};

void Apply(float decay, float scale, const float* p, float* p_out, int64_t n,
           const auto& scaled) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) p_out[i] = p[i] * decay - scale * scaled(i);
}

void UpdateFactored(const Update& u, const AdafactorSettings& settings,
                    const StepScalars& scalars, const float* p, float* p_out) {
  const int64_t columns = u.shape.columns;
  const double squares = SumOfSquares(p, u.shape.elements);
  u.AverageRows();
  u.AverageColumns();
  u.FindDivisors();
  const double update =
      SumOfParts(u.rows(), columns, [&u, columns](int64_t begin, int64_t end) {
        double sum = 0;
        for (int64_t r = begin; r < end; ++r) {
          const auto scaled = u.RowOf(r);
          sum += RowSum(columns, [&scaled](int64_t c) {
            const float x = scaled(c);
            return x * x;
          });
        }
        return sum;
      });
  const float scale =
      UpdateScale(settings, scalars, u.shape.elements, squares, update);
  ParallelEach(u.rows(), columns, [=, &u](int64_t r) {
    Apply(u.step.decay, scale, p + r * columns, p_out + r * columns, columns,
          u.RowOf(r));
  });
}

void UpdateUnfactored(const Update& u, const AdafactorSettings& settings,
                      const StepScalars& scalars, const float* p,
                      float* p_out) {
  const int64_t n = u.shape.elements;
  const double squares = SumOfSquares(p, n);
  ParallelFor(n, kElementBlock, [&u](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float gradient = u.g[i] * u.factor;
      u.row[i] = Averaged(u.step, u.row_in[i], gradient * gradient);
    }
  });
  const auto scaled = [&u](int64_t i) {
    return Scaled(u.step, u.g[i] * u.factor, u.row[i]);
  };
  const double update = SumOfParts(n, 1, [&](int64_t begin, int64_t end) {
    return SumOf(begin, end, [&](int64_t i) {
      const float x = scaled(i);
      return x * x;
    });
  });
  const float scale = UpdateScale(settings, scalars, n, squares, update);
  ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
    Apply(u.step.decay, scale, p + begin, p_out + begin, end - begin,
          [&](int64_t i) { return scaled(begin + i); });
  });
}

PreparedKernel Adafactor(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const AdafactorShape shape = AdafactorShapeOf(p);
  const AdafactorSettings settings = MakeAdafactorSettings(p);
  if (shape.elements == 0) {
    Ints state_bytes;
    for (int i = 1; i < p.outputs(); ++i) {
      state_bytes.push_back(p.output(i).bytes());
    }
    return MakeKernel([state_bytes](const KernelArgs& args) {
      for (size_t i = 0; i < state_bytes.size(); ++i) {
        if (args.inputs[2 + i] == args.outputs[1 + i]) continue;
        CopyBytes(args.inputs[2 + i], args.outputs[1 + i], state_bytes[i]);
      }
    });
  }
  return MakeKernel(
      [shape, settings](const KernelArgs& args) {
        const bool factored = shape.factored();
        const bool has_factor =
            args.inputs.size() > 4 && args.inputs[4] != nullptr;
        const Update u = {shape,
                          MakeStep(settings, *args.scalars),
                          In(args, 1),
                          In(args, 2),
                          factored ? In(args, 3) : nullptr,
                          Out(args, 1),
                          factored ? Out(args, 2) : nullptr,
                          Workspace(args),
                          has_factor ? *In(args, 4) : 1.0f};
        (factored ? UpdateFactored : UpdateUnfactored)(
            u, settings, *args.scalars, In(args, 0), Out(args, 0));
      },
      shape.matrices * int64_t{sizeof(float)});
}

constexpr KernelEntry kAdafactorKernels[] = {{"Adafactor", Adafactor}};

}  // namespace

absl::Span<const KernelEntry> AdafactorKernels() { return kAdafactorKernels; }

}  // namespace loadline::executor::cpu
