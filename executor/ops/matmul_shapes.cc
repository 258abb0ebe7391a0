// A transposition only changes strides. Leading dimensions are merged into runs
// from the innermost outwards, as long as both operands advance by constant
// steps. Tested in tests/executor/ops/matmul_shapes_test.cc.
#include "executor/ops/matmul_shapes.h"

#include <algorithm>
#include <utility>

namespace loadline::executor {
namespace {

MatMulOperand MakeOperand(const Ints& dims, bool transposed) {
  MatMulOperand o{dims, DenseStrides(dims)};
  if (transposed) {
    const size_t rank = dims.size();
    std::swap(o.dims[rank - 1], o.dims[rank - 2]);
    std::swap(o.strides[rank - 1], o.strides[rank - 2]);
  }
  return o;
}

// Adds dimensions of size 1 at the front, up to `rank`.
MatMulOperand WithRank(MatMulOperand o, size_t rank) {
  const int64_t elements = Elements(o.dims, 0, o.dims.size());
  while (o.dims.size() < rank) {
    o.dims.insert(o.dims.begin(), 1);
    o.strides.insert(o.strides.begin(), std::max<int64_t>(elements, 1));
  }
  return o;
}

// Whether all leading dimensions of a can be rows of one product with a 2-d b.
bool CanFold(const MatMulShapes& s) {
  if (s.transpose_a || s.a.dims.size() < 3) return false;
  return std::all_of(s.b.dims.begin(), s.b.dims.end() - 2,
                     [](int64_t d) { return d == 1; });
}

MatMulOperand Folded(const MatMulOperand& o) {
  const int64_t columns = o.dims.back();
  const int64_t rows = Elements(o.dims, 0, o.dims.size() - 1);
  return {{rows, columns}, {columns, 1}};
}

MatMulOperand LastTwo(const MatMulOperand& o) {
  return {Ints(o.dims.end() - 2, o.dims.end()),
          Ints(o.strides.end() - 2, o.strides.end())};
}

}  // namespace

MatMulShapes MakeMatMulShapes(const Prepare& p) {
  MatMulShapes s;
  Ints a_dims = p.input(0).dims;
  Ints b_dims = p.input(1).dims;
  s.transpose_a = p.attributes().Int("trans_a", 0) != 0 && a_dims.size() > 1;
  s.transpose_b = p.attributes().Int("trans_b", 0) != 0 && b_dims.size() > 1;
  // A vector is a row on the left and a column on the right.
  if (a_dims.size() == 1) a_dims.insert(a_dims.begin(), 1);
  if (b_dims.size() == 1) b_dims.push_back(1);
  const size_t rank = std::max(a_dims.size(), b_dims.size());
  s.a = WithRank(MakeOperand(a_dims, s.transpose_a), rank);
  s.b = WithRank(MakeOperand(b_dims, s.transpose_b), rank);
  Ints y_dims(rank);
  for (size_t d = 0; d + 2 < rank; ++d) {
    y_dims[d] = std::max(s.a.dims[d], s.b.dims[d]);
  }
  y_dims[rank - 2] = s.a.dims[rank - 2];
  y_dims[rank - 1] = s.b.dims[rank - 1];
  s.y = MakeOperand(y_dims, false);
  if (CanFold(s)) {
    s.a = Folded(s.a);
    s.b = LastTwo(s.b);
    s.y = Folded(s.y);
  }
  return s;
}

MatMulShapes MakeGemmShapes(const Prepare& p) {
  MatMulShapes s;
  s.transpose_a = p.attributes().Int("transA", 0) != 0;
  s.transpose_b = p.attributes().Int("transB", 0) != 0;
  s.a = MakeOperand(p.input(0).dims, s.transpose_a);
  s.b = MakeOperand(p.input(1).dims, s.transpose_b);
  s.y = MakeOperand(p.output(0).dims, false);
  return s;
}

SummedOperand MakeSummedOperand(const Prepare& p) {
  const bool a = p.attributes().String("dy", "") == "a";
  const bool transposed = p.attributes().Int(a ? "transA" : "transB", 0) != 0;
  // The product's operands are [rows, inner] and [inner, columns].
  return {a ? 0 : 1, a == transposed ? 0 : 1};
}

ProductRuns MakeProductRuns(const MatMulShapes& s) {
  const size_t leading = s.y.dims.size() - 2;
  const auto step = [](const MatMulOperand& o, size_t d) {
    return o.dims[d] == 1 ? 0 : o.strides[d];
  };
  ProductRuns runs;
  size_t outer = leading;  // dimensions [0, outer) are not in the run
  while (outer > 0) {
    const size_t d = outer - 1;
    const int64_t n = s.y.dims[d];
    if (n != 1) {
      if (runs.count == 1) {
        runs.a_step = step(s.a, d);
        runs.b_step = step(s.b, d);
      } else if (step(s.a, d) != runs.a_step * runs.count ||
                 step(s.b, d) != runs.b_step * runs.count) {
        break;
      }
      runs.count *= n;
    }
    outer = d;
  }
  const int64_t starts = Elements(s.y.dims, 0, static_cast<int64_t>(outer));
  const int64_t y_step = Elements(s.y.dims, static_cast<int64_t>(outer),
                                  static_cast<int64_t>(s.y.dims.size()));
  for (int64_t i = 0; i < starts; ++i) {
    ProductRuns::Start start{0, 0, i * y_step};
    int64_t rest = i;
    for (size_t d = outer; d-- > 0;) {
      const int64_t at = rest % s.y.dims[d];
      rest /= s.y.dims[d];
      start.a += at * step(s.a, d);
      start.b += at * step(s.b, d);
    }
    runs.starts.push_back(start);
  }
  return runs;
}

}  // namespace loadline::executor
