// Folding of operators that move elements or create them from shapes. Tested in
// tests/models/onnx_fold_test.cc.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/fold.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

FoldResult WithDims(const FoldContext& c, absl::StatusOr<Ints> dims) {
  LOADLINE_RETURN_IF_ERROR(dims.status());
  Wide result = *c.in[0];
  result.dims = *std::move(dims);
  return One(std::move(result));
}

FoldResult Identity(const FoldContext& c) { return One(*c.in[0]); }

FoldResult Reshape(const FoldContext& c) {
  return WithDims(c, ResolveReshape(c.in[0]->dims, c.IntsOf(1),
                                    IntAttribute(c.node, "allowzero", 0) != 0));
}

FoldResult Flatten(const FoldContext& c) {
  return WithDims(
      c, ResolveFlatten(c.in[0]->dims, IntAttribute(c.node, "axis", 1)));
}

FoldResult Squeeze(const FoldContext& c) {
  return WithDims(c, ResolveSqueeze(c.in[0]->dims, c.IntsOf(1)));
}

FoldResult Unsqueeze(const FoldContext& c) {
  return WithDims(c, ResolveUnsqueeze(c.in[0]->dims, c.IntsOf(1)));
}

FoldResult Transpose(const FoldContext& c) {
  const Wide& x = *c.in[0];
  Ints perm = IntsAttribute(c.node, "perm");
  if (FindAttribute(c.node, "perm") == nullptr) {
    for (int64_t i = Rank(x); i-- > 0;) perm.push_back(i);
  }
  LOADLINE_ASSIGN_OR_RETURN(Ints sorted, NormalizeAxes(perm, Rank(x)));
  if (sorted.size() != x.dims.size()) {
    return absl::InvalidArgumentError("perm does not name every axis");
  }
  const Ints own = RowMajorStrides(x.dims);
  Ints dims, strides;
  for (int64_t axis : perm) {
    LOADLINE_ASSIGN_OR_RETURN(int64_t a, NormalizeAxis(axis, Rank(x)));
    dims.push_back(x.dims[static_cast<size_t>(a)]);
    strides.push_back(own[static_cast<size_t>(a)]);
  }
  const std::vector<int64_t> index = StridedIndex(dims, strides, 0);
  return One(Pick(x, dims, index));
}

FoldResult Expand(const FoldContext& c) {
  LOADLINE_ASSIGN_OR_RETURN(Ints dims,
                            BroadcastDims(c.in[0]->dims, c.IntsOf(1)));
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  return One(Pick(*c.in[0], dims, BroadcastIndex(c.in[0]->dims, dims)));
}

FoldResult Tile(const FoldContext& c) {
  const Wide& x = *c.in[0];
  const Ints repeats = c.IntsOf(1);
  if (repeats.size() != x.dims.size()) {
    return absl::InvalidArgumentError("repeats do not fit the input");
  }
  // [d0, d1] -> [1, d0, 1, d1], broadcast to [r0, d0, r1, d1].
  Ints split, broadcast, dims;
  for (size_t i = 0; i < repeats.size(); ++i) {
    split.insert(split.end(), {1, x.dims[i]});
    broadcast.insert(broadcast.end(), {repeats[i], x.dims[i]});
    LOADLINE_ASSIGN_OR_RETURN(int64_t d, ElementCount({repeats[i], x.dims[i]}));
    dims.push_back(d);
  }
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  return One(Pick(x, dims, BroadcastIndex(split, broadcast)));
}

FoldResult Slice(const FoldContext& c) {
  const Wide& x = *c.in[0];
  LOADLINE_ASSIGN_OR_RETURN(SliceSpec spec,
                            ResolveSlice(x.dims, {c.IntsOf(1), c.IntsOf(2),
                                                  c.IntsOf(3), c.IntsOf(4)}));
  Ints dims = x.dims;
  Ints strides = RowMajorStrides(x.dims);
  int64_t start = 0;
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(spec.axes[i]);
    dims[axis] = SliceLength(spec.starts[i], spec.ends[i], spec.steps[i]);
    // An axis of one element never advances, so a huge step must not multiply.
    start += spec.starts[i] * strides[axis];
    strides[axis] = dims[axis] > 1 ? strides[axis] * spec.steps[i] : 0;
  }
  return One(Pick(x, dims, StridedIndex(dims, strides, start)));
}

// Takes the given `rows` of x along `axis`.
Wide TakeRows(const Wide& x, size_t axis, const Ints& rows, Ints dims) {
  const int64_t inner = RowMajorStrides(x.dims)[axis];
  const int64_t block = inner * x.dims[axis];
  const int64_t outer = block == 0 ? 0 : x.size() / block;
  std::vector<int64_t> index;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t row : rows) {
      for (int64_t i = 0; i < inner; ++i) {
        index.push_back(o * block + row * inner + i);
      }
    }
  }
  return Pick(x, std::move(dims), index);
}

FoldResult Gather(const FoldContext& c) {
  const Wide& x = *c.in[0];
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis, NormalizeAxis(IntAttribute(c.node, "axis", 0), Rank(x)));
  const int64_t size = x.dims[static_cast<size_t>(axis)];
  Ints rows;
  for (int64_t row : c.in[1]->ints) {
    if (row < -size || row >= size) {
      return absl::InvalidArgumentError(
          absl::StrCat("index ", row, " on an axis of ", size));
    }
    rows.push_back(row < 0 ? row + size : row);
  }
  Ints dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), c.in[1]->dims.begin(), c.in[1]->dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  return One(TakeRows(x, static_cast<size_t>(axis), rows, dims));
}

FoldResult Split(const FoldContext& c) {
  const Wide& x = *c.in[0];
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis, NormalizeAxis(IntAttribute(c.node, "axis", 0), Rank(x)));
  const int64_t size = x.dims[static_cast<size_t>(axis)];
  Ints sizes = c.IntsOf(1);
  if (!c.Has(1)) {
    LOADLINE_ASSIGN_OR_RETURN(sizes, EqualParts(size, c.node.output_size()));
  }
  std::vector<Wide> parts;
  int64_t start = 0;
  for (int64_t part : sizes) {
    if (part < 0 || part > size - start) {
      return absl::InvalidArgumentError("parts do not fit the axis");
    }
    Ints rows(static_cast<size_t>(part));
    for (int64_t i = 0; i < part; ++i) {
      rows[static_cast<size_t>(i)] = start + i;
    }
    Ints dims = x.dims;
    dims[static_cast<size_t>(axis)] = part;
    parts.push_back(TakeRows(x, static_cast<size_t>(axis), rows, dims));
    start += part;
  }
  if (start != size) {
    return absl::InvalidArgumentError("parts do not cover the axis");
  }
  return parts;
}

FoldResult Concat(const FoldContext& c) {
  const Wide& first = *c.in[0];
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis,
      NormalizeAxis(IntAttribute(c.node, "axis", 0), Rank(first)));
  Ints dims = first.dims;
  int64_t& total = dims[static_cast<size_t>(axis)];
  total = 0;
  for (const Wide* part : c.in) {
    if (part == nullptr || part->dtype != first.dtype ||
        part->dims.size() != dims.size()) {
      return absl::InvalidArgumentError("inputs differ in type or rank");
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i != static_cast<size_t>(axis) && part->dims[i] != dims[i]) {
        return absl::InvalidArgumentError("inputs differ in shape");
      }
    }
    if (__builtin_add_overflow(total, part->dims[static_cast<size_t>(axis)],
                               &total)) {
      return absl::InvalidArgumentError("the result is too large");
    }
  }
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  Wide result{first.dtype, dims, {}, {}};
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= dims[static_cast<size_t>(i)];
  for (int64_t o = 0; o < outer; ++o) {
    for (const Wide* part : c.in) {
      const int64_t block = part->size() / outer;
      const auto from = o * block, to = from + block;
      result.ints.insert(result.ints.end(),
                         part->ints.begin() + (part->real() ? 0 : from),
                         part->ints.begin() + (part->real() ? 0 : to));
      result.reals.insert(result.reals.end(),
                          part->reals.begin() + (part->real() ? from : 0),
                          part->reals.begin() + (part->real() ? to : 0));
    }
  }
  return One(std::move(result));
}

FoldResult Where(const FoldContext& c) {
  const Wide &condition = *c.in[0], &a = *c.in[1], &b = *c.in[2];
  if (a.dtype != b.dtype) {
    return absl::InvalidArgumentError("branches differ in type");
  }
  LOADLINE_ASSIGN_OR_RETURN(Ints dims, BroadcastDims(a.dims, b.dims));
  LOADLINE_ASSIGN_OR_RETURN(dims, BroadcastDims(condition.dims, dims));
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  const Wide test = Pick(condition, dims, BroadcastIndex(condition.dims, dims));
  Wide result = Pick(a, dims, BroadcastIndex(a.dims, dims));
  const Wide other = Pick(b, dims, BroadcastIndex(b.dims, dims));
  for (size_t i = 0; i < test.ints.size(); ++i) {
    if (test.ints[i] != 0) continue;
    if (result.real()) {
      result.reals[i] = other.reals[i];
    } else {
      result.ints[i] = other.ints[i];
    }
  }
  return One(std::move(result));
}

FoldResult Trilu(const FoldContext& c) {
  Wide result = *c.in[0];
  if (result.dims.size() < 2) {
    return absl::InvalidArgumentError("needs two axes");
  }
  const int64_t rows = result.dims[result.dims.size() - 2];
  const int64_t columns = result.dims.back();
  const bool upper = IntAttribute(c.node, "upper", 1) != 0;
  const Ints given = c.IntsOf(1, {0});
  // Beyond the matrix all diagonals are equivalent.
  const int64_t k =
      given.empty() ? 0 : std::clamp(given[0], -rows - 1, columns + 1);
  for (int64_t i = 0; i < result.size(); ++i) {
    const int64_t column = i % columns, row = i / columns % rows;
    if (upper ? column >= row + k : column <= row + k) continue;
    if (result.real()) {
      result.reals[static_cast<size_t>(i)] = 0;
    } else {
      result.ints[static_cast<size_t>(i)] = 0;
    }
  }
  return One(std::move(result));
}

FoldResult ConstantOfShape(const FoldContext& c) {
  Wide value{DType::kF32, {}, {}, {0.0}};
  if (const auto* attribute = FindAttribute(c.node, "value")) {
    int64_t budget_bytes = 64;
    LOADLINE_ASSIGN_OR_RETURN(Tensor tensor,
                              ReadTensor(attribute->t(), "", &budget_bytes));
    if (tensor.type.elements() != 1 || !CanWiden(tensor.type.dtype)) {
      return absl::InvalidArgumentError("value must have one element");
    }
    value = Widen(tensor);
    value.dims = {};
  }
  const Ints dims = c.IntsOf(0);
  LOADLINE_RETURN_IF_ERROR(c.CheckSize(dims));
  return One(Pick(value, dims, BroadcastIndex({}, dims)));
}

FoldResult Range(const FoldContext& c) {
  for (size_t i = 0; i < 3; ++i) {
    if (c.in[i]->size() != 1 || c.in[i]->dtype != c.in[0]->dtype) {
      return absl::InvalidArgumentError("start, limit, delta must be scalars");
    }
  }
  const bool real = c.in[0]->real();
  auto at = [&](size_t i) -> long double {
    return real ? static_cast<long double>(c.in[i]->reals[0])
                : static_cast<long double>(c.in[i]->ints[0]);
  };
  const long double start = at(0), delta = at(2);
  const long double steps = std::ceil((at(1) - start) / delta);
  if (delta == 0 || !std::isfinite(steps)) {
    return absl::InvalidArgumentError("endless range");
  }
  const long double count = std::max(steps, 0.0L);
  if (count > static_cast<long double>(c.max_elements)) {
    return absl::ResourceExhaustedError("a range beyond the limit");
  }
  Wide result{c.in[0]->dtype, {static_cast<int64_t>(count)}, {}, {}};
  for (int64_t i = 0; i < result.dims[0]; ++i) {
    // Within [start, limit), so nothing overflows.
    if (real) {
      result.reals.push_back(
          static_cast<double>(start + static_cast<long double>(i) * delta));
    } else {
      result.ints.push_back(c.in[0]->ints[0] + i * c.in[2]->ints[0]);
    }
  }
  return One(std::move(result));
}

}  // namespace

FoldRule FindMovementRule(const std::string& op_type) {
  static const auto* const kRules = new std::map<std::string, FoldRule>{
      {"Identity", Identity},
      {"Reshape", Reshape},
      {"Flatten", Flatten},
      {"Squeeze", Squeeze},
      {"Unsqueeze", Unsqueeze},
      {"Transpose", Transpose},
      {"Expand", Expand},
      {"Tile", Tile},
      {"Slice", Slice},
      {"Gather", Gather},
      {"Split", Split},
      {"Concat", Concat},
      {"Where", Where},
      {"Trilu", Trilu},
      {"ConstantOfShape", ConstantOfShape},
      {"Range", Range},
  };
  auto it = kRules->find(op_type);
  return it == kRules->end() ? nullptr : it->second;
}

}  // namespace loadline::models::onnx_internal
