// References of operators that move or sum elements: reductions, transposes,
// slices, gathers, matrix products.
#include <algorithm>
#include <numeric>
#include <string>

#include "executor/reference/reference.h"

namespace loadline::reference {
namespace {

using models::Ints;

void Reduce(const Call& c, bool mean) {
  const Ints& dims = c.in(0).type.dims;
  std::vector<bool> reduced(dims.size(), !c.attributes.Has("axes"));
  for (int64_t axis : c.attributes.IntList("axes")) {
    reduced[axis < 0 ? axis + dims.size() : axis] = true;
  }
  Ints kept_dims = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (reduced[d]) kept_dims[d] = 1;
  }
  ForEachIndex(dims, [&](const Ints& index) {
    Ints kept = index;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (reduced[d]) kept[d] = 0;
    }
    c.out().values[Position(kept_dims, kept)] +=
        c.in(0).values[Position(dims, index)];
  });
  if (!mean) return;
  const double count = static_cast<double>(c.in(0).values.size()) /
                       static_cast<double>(c.out().values.size());
  for (double& v : c.out().values) v /= count;
}

void Transpose(const Call& c) {
  const Ints perm = c.attributes.IntList("perm");
  const Ints& dims = c.in(0).type.dims;
  ForEachIndex(c.out().type.dims, [&](const Ints& index) {
    Ints from(dims.size());
    for (size_t d = 0; d < perm.size(); ++d) from[perm[d]] = index[d];
    c.out().values[Position(c.out().type.dims, index)] =
        c.in(0).values[Position(dims, from)];
  });
}

int64_t Axis(const Call& c, const Array& whole) {
  const int64_t axis = c.attributes.Int("axis", 0);
  return axis < 0 ? axis + whole.type.rank() : axis;
}

void Concat(const Call& c) {
  const int64_t axis = Axis(c, c.out());
  int64_t begin = 0;
  for (const Array* part : c.inputs) {
    ForEachIndex(part->type.dims, [&](const Ints& index) {
      Ints to = index;
      to[axis] += begin;
      c.out().values[Position(c.out().type.dims, to)] =
          part->values[Position(part->type.dims, index)];
    });
    begin += part->type.dims[axis];
  }
}

void Split(const Call& c) {
  const int64_t axis = Axis(c, c.in(0));
  int64_t begin = 0;
  for (Array& part : c.outputs) {
    ForEachIndex(part.type.dims, [&](const Ints& index) {
      Ints from = index;
      from[axis] += begin;
      part.values[Position(part.type.dims, index)] =
          c.in(0).values[Position(c.in(0).type.dims, from)];
    });
    begin += part.type.dims[axis];
  }
}

// The index in the whole tensor of an index in the slice.
Ints Unslice(const Call& c, const Ints& index) {
  Ints whole = index;
  const Ints starts = c.attributes.IntList("starts");
  const Ints axes = c.attributes.IntList("axes");
  const Ints steps = c.attributes.IntList("steps");
  for (size_t i = 0; i < axes.size(); ++i) {
    whole[axes[i]] = starts[i] + index[axes[i]] * steps[i];
  }
  return whole;
}

void Slice(const Call& c) {
  ForEachIndex(c.out().type.dims, [&](const Ints& index) {
    c.out().values[Position(c.out().type.dims, index)] =
        c.in(0).values[Position(c.in(0).type.dims, Unslice(c, index))];
  });
}

void SliceGrad(const Call& c) {
  ForEachIndex(c.in(0).type.dims, [&](const Ints& index) {
    c.out().values[Position(c.out().type.dims, Unslice(c, index))] =
        c.in(0).values[Position(c.in(0).type.dims, index)];
  });
}

void WriteRows(const Call& c) {
  if (c.has(1)) c.out().values = c.in(1).values;
  const auto start = static_cast<size_t>(c.attributes.Int("start", 0));
  for (size_t i = 0; i < c.in(0).values.size(); ++i) {
    c.out().values[start + i] = c.in(0).values[i];
  }
}

void Expand(const Call& c) {
  ForEachIndex(c.out().type.dims, [&](const Ints& index) {
    c.out().values[Position(c.out().type.dims, index)] =
        BroadcastAt(c.in(0), index);
  });
}

// Calls body(position in data, position in y) for every element of y.
void ForGathered(const Call& c, const Array& data, const Ints& y_dims,
                 const std::function<void(int64_t, int64_t)>& body) {
  const Array& indices = c.in(1);
  const int64_t axis = Axis(c, data);
  const int64_t rank = indices.type.rank();
  ForEachIndex(y_dims, [&](const Ints& index) {
    const Ints at(index.begin() + axis, index.begin() + axis + rank);
    const auto row =
        static_cast<int64_t>(indices.values[Position(indices.type.dims, at)]);
    Ints from(index.begin(), index.begin() + axis);
    from.push_back(row);
    from.insert(from.end(), index.begin() + axis + rank, index.end());
    body(Position(data.type.dims, from), Position(y_dims, index));
  });
}

void Gather(const Call& c) {
  ForGathered(c, c.in(0), c.out().type.dims, [&](int64_t from, int64_t to) {
    c.out().values[to] = c.in(0).values[from];
  });
}

void GatherGrad(const Call& c) {
  ForGathered(c, c.out(), c.in(0).type.dims, [&](int64_t to, int64_t from) {
    c.out().values[to] += c.in(0).values[from];
  });
}

void Scatter(const Call& c) {
  c.out().values = c.in(0).values;
  const Array& updates = c.in(2);
  ForEachIndex(updates.type.dims, [&](const Ints& index) {
    Ints to = index;
    to[0] = static_cast<int64_t>(c.in(1).values[index[0]]);
    c.out().values[Position(c.out().type.dims, to)] =
        updates.values[Position(updates.type.dims, index)];
  });
}

void ScatterReduce(const Call& c) {
  const std::string reduction = c.attributes.String("reduction", "");
  c.out().values = c.in(0).values;
  const Array& updates = c.in(2);
  ForEachIndex(updates.type.dims, [&](const Ints& index) {
    Ints to = index;
    to[0] = static_cast<int64_t>(c.in(1).values[index[0]]);
    double& y = c.out().values[Position(c.out().type.dims, to)];
    const double u = updates.values[Position(updates.type.dims, index)];
    if (reduction == "mul") {
      y *= u;
    } else {
      y = reduction == "max" ? std::max(y, u) : std::min(y, u);
    }
  });
}

// Calls body(positions of a line of x, line of the output) for every line.
void ForLines(const Call& c,
              const std::function<void(const std::vector<int64_t>&,
                                       const std::vector<int64_t>&)>& body) {
  const int64_t axis = Axis(c, c.in(0));
  const auto line = [axis](const Array& a, Ints index) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < a.type.dims[axis]; ++i) {
      index[axis] = i;
      positions.push_back(Position(a.type.dims, index));
    }
    return positions;
  };
  Ints others = c.in(0).type.dims;
  others[axis] = 1;
  ForEachIndex(others, [&](const Ints& index) {
    body(line(c.in(0), index), line(c.out(), index));
  });
}

void Extreme(const Call& c, double sign) {
  ForLines(c, [&](const auto& x, const auto& y) {
    double best = c.in(0).values[x[0]];
    for (int64_t at : x) {
      best = sign * std::max(sign * best, sign * c.in(0).values[at]);
    }
    c.out().values[y[0]] = best;
  });
}

void CumSum(const Call& c) {
  const bool exclusive = c.attributes.Int("exclusive", 0) != 0;
  ForLines(c, [&](std::vector<int64_t> x, std::vector<int64_t> y) {
    if (c.attributes.Int("reverse", 0) != 0) {
      std::reverse(x.begin(), x.end());
      std::reverse(y.begin(), y.end());
    }
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double with = sum + c.in(0).values[x[i]];
      c.out().values[y[i]] = exclusive ? sum : with;
      sum = with;
    }
  });
}

void TopK(const Call& c) {
  const bool largest = c.attributes.Int("largest", 1) != 0;
  const bool last = c.attributes.Int("last", 0) != 0;
  ForLines(c, [&](const auto& x, const auto& y) {
    std::vector<int64_t> order(x.size());
    std::iota(order.begin(), order.end(), 0);
    if (last) std::reverse(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      const double a = c.in(0).values[x[i]], b = c.in(0).values[x[j]];
      return largest ? a > b : a < b;
    });
    for (size_t i = 0; i < y.size(); ++i) {
      c.out().values[y[i]] = static_cast<double>(order[i]);
    }
  });
}

// An element of the last two dimensions, by batch index, row and column.
double MatrixAt(const Array& a, bool transposed, Ints index, int64_t row,
                int64_t column) {
  if (transposed) std::swap(row, column);
  index.push_back(row);
  index.push_back(column);
  return BroadcastAt(a, index);
}

// Not with BroadcastAt, which would repeat a matrix of one row or column.
void MatMul(const Call& c) {
  Array a = c.in(0);
  Array b = c.in(1);
  const bool row_vector = a.type.rank() == 1;
  const bool column_vector = b.type.rank() == 1;
  if (row_vector) a.type.dims.insert(a.type.dims.begin(), 1);
  if (column_vector) b.type.dims.push_back(1);
  const bool ta = !row_vector && c.attributes.Int("trans_a", 0) != 0;
  const bool tb = !column_vector && c.attributes.Int("trans_b", 0) != 0;
  const int64_t inner = a.type.dims[a.type.rank() - (ta ? 2 : 1)];
  Ints dims = c.out().type.dims;
  if (column_vector) dims.push_back(1);
  if (row_vector) dims.insert(dims.end() - 1, 1);
  ForEachIndex(dims, [&](const Ints& index) {
    const Ints batch(index.begin(), index.end() - 2);
    const size_t n = index.size();
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      sum += MatrixAt(a, ta, batch, index[n - 2], k) *
             MatrixAt(b, tb, batch, k, index[n - 1]);
    }
    c.out().values[Position(dims, index)] = sum;
  });
}

void Gemm(const Call& c) {
  const bool ta = c.attributes.Int("transA", 0) != 0;
  const bool tb = c.attributes.Int("transB", 0) != 0;
  const int64_t inner = c.in(0).type.dims[ta ? 0 : 1];
  const Ints& dims = c.out().type.dims;
  ForEachIndex(dims, [&](const Ints& index) {
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      sum += MatrixAt(c.in(0), ta, {}, index[0], k) *
             MatrixAt(c.in(1), tb, {}, k, index[1]);
    }
    sum *= c.attributes.Float("alpha", 1.0);
    if (c.has(2)) {
      sum += c.attributes.Float("beta", 1.0) * BroadcastAt(c.in(2), index);
    }
    c.out().values[Position(dims, index)] = sum;
  });
}

// The operand that is dy, oriented as in the product, summed over the inner
// dimension.
void GemmBiasGrad(const Call& c) {
  Gemm(c);
  const bool a = c.attributes.String("dy", "") == "a";
  const bool transposed = c.attributes.Int(a ? "transA" : "transB", 0) != 0;
  const Array& dy = c.in(a ? 0 : 1);
  ForEachIndex(dy.type.dims, [&](const Ints& index) {
    c.out(1).values[index[a != transposed ? 0 : 1]] += BroadcastAt(dy, index);
  });
}

}  // namespace

void AddShapeReferences(ReferenceTable& t) {
  t["ReduceSum"] = [](const Call& c) { Reduce(c, false); };
  t["ReduceMean"] = [](const Call& c) { Reduce(c, true); };
  t["Transpose"] = Transpose;
  t["Concat"] = Concat;
  t["Split"] = Split;
  t["Slice"] = Slice;
  t["SliceGrad"] = SliceGrad;
  t["Expand"] = Expand;
  t["WriteRows"] = WriteRows;
  t["Gather"] = Gather;
  t["GatherGrad"] = GatherGrad;
  t["Scatter"] = Scatter;
  t["ScatterReduce"] = ScatterReduce;
  t["ReduceMax"] = [](const Call& c) { Extreme(c, 1); };
  t["ReduceMin"] = [](const Call& c) { Extreme(c, -1); };
  t["CumSum"] = CumSum;
  t["TopK"] = TopK;
  t["MatMul"] = MatMul;
  t["Gemm"] = Gemm;
  t["GemmSum"] = Gemm;
  t["GemmBiasGrad"] = GemmBiasGrad;
}

}  // namespace loadline::reference
