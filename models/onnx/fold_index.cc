// Folding of operators that read or write at positions that a tensor names.
// Tested in tests/models/onnx_fold_test.cc.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/fold.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

FoldResult GatherElements(const FoldContext& c) {
  const Wide &x = *c.in[0], &indices = *c.in[1];
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis, NormalizeAxis(IntAttribute(c.node, "axis", 0), Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  if (Rank(indices) != Rank(x)) {
    return absl::InvalidArgumentError("indices differ from data in rank");
  }
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i != a && indices.dims[i] > x.dims[i]) {
      return absl::InvalidArgumentError("indices reach beyond data");
    }
  }
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(indices.dims));
  Ints strides = RowMajorStrides(x.dims);
  const int64_t step = strides[a];
  strides[a] = 0;
  std::vector<int64_t> index = StridedIndex(indices.dims, strides, 0);
  for (size_t i = 0; i < index.size(); ++i) {
    const int64_t row = indices.ints[i], size = x.dims[a];
    if (row < -size || row >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", row, " on an axis of ", size));
    }
    index[i] += (row < 0 ? row + size : row) * step;
  }
  return One(Pick(x, indices.dims, index));
}

// Where the element or block lies that row `row` of `indices` names, by its
// places on the axes of `x` from `first_axis` on.
absl::StatusOr<int64_t> PositionOf(const Wide& x, const Wide& indices,
                                   int64_t row, int64_t first_axis,
                                   const Ints& strides) {
  const int64_t picked = indices.dims.back();
  int64_t at = 0;
  for (int64_t k = 0; k < picked; ++k) {
    const size_t axis = static_cast<size_t>(first_axis + k);
    const int64_t i = indices.ints[static_cast<size_t>(row * picked + k)];
    if (i < -x.dims[axis] || i >= x.dims[axis]) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", i, " on an axis of ", x.dims[axis]));
    }
    at += (i < 0 ? i + x.dims[axis] : i) * strides[axis];
  }
  return at;
}

FoldResult GatherND(const FoldContext& c) {
  const Wide &x = *c.in[0], &indices = *c.in[1];
  const int64_t batch_dims = IntAttribute(c.node, "batch_dims", 0);
  const int64_t picked = indices.dims.empty() ? 0 : indices.dims.back();
  if (indices.dims.empty() || batch_dims < 0 || picked < 1 ||
      batch_dims >= Rank(indices) || batch_dims + picked > Rank(x)) {
    return absl::InvalidArgumentError("indices do not fit data");
  }
  const auto first = x.dims.begin() + batch_dims;
  const Ints inner(first + picked, x.dims.end());
  Ints dims(indices.dims.begin(), indices.dims.end() - 1);
  if (!std::equal(x.dims.begin(), first, dims.begin())) {
    return absl::InvalidArgumentError("batch dimensions differ");
  }
  LOADLINE_ASSIGN_OR_RETURN(int64_t batches,
                            ElementCount({x.dims.begin(), first}));
  LOADLINE_ASSIGN_OR_RETURN(int64_t block, ElementCount(inner));
  dims.insert(dims.end(), inner.begin(), inner.end());
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  const Ints strides = RowMajorStrides(x.dims);
  const int64_t rows = indices.size() / picked;
  std::vector<int64_t> index;
  for (int64_t row = 0; row < rows; ++row) {
    LOADLINE_ASSIGN_OR_RETURN(const int64_t inside,
                              PositionOf(x, indices, row, batch_dims, strides));
    const int64_t at = row / (rows / batches) * (x.size() / batches) + inside;
    for (int64_t i = 0; i < block; ++i) index.push_back(at + i);
  }
  return One(Pick(x, dims, index));
}

// Whether updates are added. Integers only: a sum of floats would be rounded in
// another order than the kernel's.
absl::StatusOr<bool> AddsUpdates(const FoldContext& c) {
  const std::string reduction = StringAttribute(c.node, "reduction", "none");
  if (reduction == "none") return false;
  if (reduction == "add" && !c.in[0]->real()) return true;
  return absl::UnimplementedError("such reductions are not folded");
}

// Wraps around.
int64_t WrappedSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}

// One update after the other, so that the last of several stays.
FoldResult ScatterND(const FoldContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(const bool adds, AddsUpdates(c));
  const Wide &x = *c.in[0], &indices = *c.in[1], &updates = *c.in[2];
  const int64_t picked = indices.dims.empty() ? 0 : indices.dims.back();
  if (picked < 1 || picked > Rank(x)) {
    return absl::InvalidArgumentError("indices do not fit data");
  }
  Ints dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + picked, x.dims.end());
  if (updates.dims != dims || updates.dtype != x.dtype) {
    return absl::InvalidArgumentError("updates do not fit indices and data");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t block, ElementCount({x.dims.begin() + picked, x.dims.end()}));
  const Ints strides = RowMajorStrides(x.dims);
  Wide result = x;
  for (int64_t row = 0; row < indices.size() / picked; ++row) {
    LOADLINE_ASSIGN_OR_RETURN(const int64_t at,
                              PositionOf(x, indices, row, 0, strides));
    const auto write = [&](auto& to, const auto& from) {
      std::copy_n(from.begin() + row * block, block, to.begin() + at);
    };
    if (x.real()) {
      write(result.reals, updates.reals);
    } else if (adds) {
      for (int64_t i = 0; i < block; ++i) {
        int64_t& sum = result.ints[static_cast<size_t>(at + i)];
        sum =
            WrappedSum(sum, updates.ints[static_cast<size_t>(row * block + i)]);
      }
    } else {
      write(result.ints, updates.ints);
    }
  }
  return One(std::move(result));
}

// One update after the other as well.
FoldResult ScatterElements(const FoldContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(const bool adds, AddsUpdates(c));
  const Wide &x = *c.in[0], &indices = *c.in[1], &updates = *c.in[2];
  if (Rank(indices) != Rank(x) || updates.dims != indices.dims ||
      updates.dtype != x.dtype) {
    return absl::InvalidArgumentError("updates do not fit indices and data");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis, NormalizeAxis(IntAttribute(c.node, "axis", 0), Rank(x)));
  const size_t along = static_cast<size_t>(axis);
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (i != along && indices.dims[i] > x.dims[i]) {
      return absl::InvalidArgumentError("indices reach beyond data");
    }
  }
  Ints strides = RowMajorStrides(x.dims);
  const int64_t stride = strides[along];
  strides[along] = 0;
  const std::vector<int64_t> others = StridedIndex(indices.dims, strides, 0);
  Wide result = x;
  for (size_t i = 0; i < others.size(); ++i) {
    const int64_t row = indices.ints[i];
    if (row < -x.dims[along] || row >= x.dims[along]) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", row, " on an axis of ", x.dims[along]));
    }
    const auto at = static_cast<size_t>(
        others[i] + (row < 0 ? row + x.dims[along] : row) * stride);
    if (x.real()) {
      result.reals[at] = updates.reals[i];
    } else {
      result.ints[at] =
          adds ? WrappedSum(result.ints[at], updates.ints[i]) : updates.ints[i];
    }
  }
  return One(std::move(result));
}

// An index outside all classes is no error: it equals none.
FoldResult OneHot(const FoldContext& c) {
  const Wide &indices = *c.in[0], &depth = *c.in[1], &values = *c.in[2];
  if (indices.real() || depth.real()) {
    return absl::UnimplementedError("classes that are no integers");
  }
  if (depth.size() != 1 || depth.ints[0] < 1 || values.size() != 2) {
    return absl::InvalidArgumentError("depth or values do not fit");
  }
  const int64_t classes = depth.ints[0];
  Ints dims = indices.dims;
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis,
      NormalizeAxis(IntAttribute(c.node, "axis", -1), Rank(indices) + 1));
  LOADLINE_ASSIGN_OR_RETURN(int64_t inner,
                            ElementCount({dims.begin() + axis, dims.end()}));
  dims.insert(dims.begin() + axis, classes);
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  std::vector<int64_t> picked(
      static_cast<size_t>(indices.size() * classes));  // 0 off, 1 on
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t hot = indices.ints[static_cast<size_t>(i)];
    if (hot < 0) hot += classes;
    if (hot < 0 || hot >= classes) continue;
    const int64_t at = (i / inner * classes + hot) * inner + i % inner;
    picked[static_cast<size_t>(at)] = 1;
  }
  return One(Pick(values, dims, picked));
}

// A column of places on the axes for each element that is not zero, in order.
// Of a scalar, as ONNX says, no axis.
FoldResult NonZero(const FoldContext& c) {
  const Wide& x = *c.in[0];
  std::vector<int64_t> found;  // positions of elements
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (x.real() ? x.reals[at] != 0 : x.ints[at] != 0) found.push_back(i);
  }
  Wide places = {.dims = {Rank(x), static_cast<int64_t>(found.size())}};
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(places.dims));
  const Ints strides = RowMajorStrides(x.dims);
  for (size_t axis = 0; axis < x.dims.size(); ++axis) {
    for (int64_t i : found) {
      places.ints.push_back(i / strides[axis] % x.dims[axis]);
    }
  }
  return One(std::move(places));
}

}  // namespace

FoldRule FindIndexRule(const std::string& op_type) {
  static const auto* const kRules = new std::map<std::string, FoldRule>{
      {"GatherElements", GatherElements},
      {"GatherND", GatherND},
      {"NonZero", NonZero},
      {"OneHot", OneHot},
      {"Scatter", ScatterElements},
      {"ScatterElements", ScatterElements},
      {"ScatterND", ScatterND},
  };
  auto it = kRules->find(op_type);
  return it == kRules->end() ? nullptr : it->second;
}

}  // namespace loadline::models::onnx_internal
