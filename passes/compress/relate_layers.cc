// Rules of operators that have weights, statistics or windows. Tested in
// tests/passes/compress/prune_groups_test.cc and, operator by operator, in
// tests/conformance/pruned_model_test.cc.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/compress/relation.h"

namespace loadline::passes {
namespace {

using models::Ints;
using models::ValueId;

// NumPy's rules: a vector has no rows (left) or no columns (right).
void MatMul(Relation& r) {
  const ValueId a = r.In(0), b = r.In(1), y = r.Out();
  const bool trans_a = r.node.attributes.Int("trans_a", 0) != 0;
  const bool trans_b = r.node.attributes.Int("trans_b", 0) != 0;
  const int64_t rank_a = r.Rank(a), rank_b = r.Rank(b), rank_y = r.Rank(y);
  const int64_t inner_a = rank_a == 1 || !trans_a ? rank_a - 1 : rank_a - 2;
  const int64_t inner_b = rank_b == 1 || trans_b ? rank_b - 1 : rank_b - 2;
  r.Contract(a, inner_a, b, inner_b);
  const bool columns = rank_b > 1, rows = rank_a > 1;
  if (rows) {
    const int64_t row = trans_a ? rank_a - 1 : rank_a - 2;
    r.Same(a, row, y, rank_y - 1 - (columns ? 1 : 0));
    r.Makes(a, row);
  }
  if (columns) {
    const int64_t column = trans_b ? rank_b - 2 : rank_b - 1;
    r.Same(b, column, y, rank_y - 1);
    r.Makes(b, column);
  }
  // Batch axes, the same in a, b and y.
  const int64_t last = (rows ? 1 : 0) + (columns ? 1 : 0);
  for (int64_t k = 0; k < rank_y - last; ++k) {
    const int64_t axis_y = rank_y - last - 1 - k;
    for (ValueId x : {a, b}) {
      const int64_t axis = r.Rank(x) - 3 - k;
      if (axis < 0) continue;
      r.Same(x, axis, y, axis_y);
      r.Makes(x, axis);
    }
    if (!r.IsWeight(a) && !r.IsWeight(b)) r.atoms.MarkHead({y, axis_y});
  }
}

void Gemm(Relation& r) {
  const ValueId a = r.In(0), b = r.In(1), y = r.Out();
  const int64_t inner_a = r.node.attributes.Int("transA", 0) != 0 ? 0 : 1;
  const int64_t inner_b = r.node.attributes.Int("transB", 0) != 0 ? 1 : 0;
  r.Contract(a, inner_a, b, inner_b);
  r.Same(a, 1 - inner_a, y, 0);
  r.Makes(a, 1 - inner_a);
  r.Same(b, 1 - inner_b, y, 1);
  r.Makes(b, 1 - inner_b);
  if (r.Has(2)) r.SameBroadcast(r.In(2), y);
}

// Ties channel c of `x` to its group and position: for each convolution group,
// `per_group` channels.
void TieByPart(Relation& r, AxisRef x, int64_t per_group, bool whole_groups,
               AxisRef representative) {
  for (int64_t c = 0; c < r.atoms.size(x); ++c) {
    const int64_t unit = whole_groups ? c / per_group : c % per_group;
    r.atoms.Unite(x, c, representative, unit);
  }
}

// `x` has the channels that w's axis 1 reads, `y` those that axis 0 makes. For
// the transposed convolution they change places. `maker`: w's axis that makes.
void Convolve(Relation& r, ValueId x, ValueId w, ValueId y, int64_t maker) {
  const int64_t groups = r.node.attributes.Int("group", 1);
  r.Same(x, 0, y, 0);
  for (ValueId id : {x, y, w}) {
    for (int64_t axis = 2; axis < r.Rank(id); ++axis) {
      r.Freeze(id, axis, "the window of");
    }
  }
  if (groups == 1) {
    if (maker == 0) {
      r.Contract(x, 1, w, 1);
      r.Same(w, 0, y, 1);
    } else {
      r.Contract(y, 1, w, 0);
      r.Same(w, 1, x, 1);
    }
    r.Makes(w, maker);
    return;
  }
  const int64_t in = r.Type(x).dims[1] / groups;   // per group
  const int64_t out = r.Type(y).dims[1] / groups;  // per group
  const bool whole_groups = groups >= std::min(in, out);
  if (whole_groups) {
    // One index of each group stands for it: the group's first channel of y.
    for (int64_t c = 0; c < groups * in; ++c) {
      r.atoms.Unite({x, 1}, c, {y, 1}, c / in * out);
    }
    for (int64_t c = 0; c < groups * out; ++c) {
      r.atoms.Unite({y, 1}, c, {y, 1}, c / out * out);
      r.atoms.Unite({w, 0}, c, {y, 1}, c);
    }
    r.Freeze(w, 1, "channels within a group of");
  } else {
    TieByPart(r, {x, 1}, in, false, {w, 1});
    TieByPart(r, {y, 1}, out, false, {y, 1});
    r.Same(w, 0, y, 1);
    if (!r.IsWeight(w))
      r.Approximate(w, 1, "the sum without a trained weight in");
  }
  if (maker == 0 || !whole_groups) {
    r.Makes(w, maker);
  } else {
    // Whole groups of the transposed convolution: channels of x are tied to
    // axis 0 of w.
    r.Makes(w, 0);
  }
}

void Conv(Relation& r) {
  Convolve(r, r.In(0), r.In(1), r.Out(), 0);
  if (r.Has(2)) r.Same(r.In(2), 0, r.Out(), 1);
}
void ConvInputGrad(Relation& r) { Convolve(r, r.Out(), r.In(1), r.In(0), 1); }

void Pool(Relation& r) {
  for (ValueId out : r.node.outputs) {
    for (int64_t axis = 0; axis < r.Rank(r.In(0)); ++axis) {
      if (axis < 2) {
        r.Same(r.In(0), axis, out, axis);
      } else {
        r.Freeze(r.In(0), axis, "the window of");
        r.Freeze(out, axis, "the window of");
      }
    }
  }
}

void BatchNorm(Relation& r) {
  const ValueId x = r.In(0);
  for (size_t i = 1; i < r.node.inputs.size(); ++i) r.Same(r.In(i), 0, x, 1);
  r.SameAxes(x, r.Out());
  for (size_t i = 1; i < r.node.outputs.size(); ++i) r.Same(r.Out(i), 0, x, 1);
  if (r.node.op != "BatchNormTraining") return;
  for (int64_t axis = 0; axis < r.Rank(x); ++axis) {
    if (axis != 1) r.Approximate(x, axis, "statistics of");
  }
}

void LayerNorm(Relation& r) {
  const ValueId x = r.In(0);
  const int64_t first = r.node.attributes.Int("axis", 0);
  for (size_t i = 1; i < r.node.inputs.size(); ++i) {
    if (r.Has(i)) r.SameBroadcast(r.In(i), x);
  }
  r.SameAxes(x, r.Out());
  for (int64_t axis = first; axis < r.Rank(x); ++axis) {
    r.Approximate(x, axis, "statistics of");
  }
  for (size_t i = 1; i < r.node.outputs.size(); ++i) {
    for (int64_t axis = 0; axis < first; ++axis)
      r.Same(x, axis, r.Out(i), axis);
  }
}

}  // namespace

RelateRules LayerRelations() {
  return {
      {"MatMul", MatMul},
      {"Gemm", Gemm},
      {"Conv", Conv},
      {"ConvInputGrad", ConvInputGrad},
      {"MaxPool", Pool},
      {"AveragePool", Pool},
      {"BatchNormalization", BatchNorm},
      {"BatchNormTraining", BatchNorm},
      {"LayerNormalization", LayerNorm},
  };
}

}  // namespace loadline::passes
