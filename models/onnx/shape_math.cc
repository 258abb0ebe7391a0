// Sizes come from the file, so every product and difference is checked. Tested
// in tests/models/onnx_fold_test.cc.
#include "models/onnx/shape_math.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

std::string Text(const Ints& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

}  // namespace

absl::StatusOr<int64_t> ElementCount(const Ints& dims) {
  int64_t count = 1;
  for (int64_t d : dims) {
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) {
      return Bad(absl::StrCat("impossible shape ", Text(dims)));
    }
  }
  return count;
}

absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return Bad(
        absl::StrCat("axis ", axis, " of a tensor with ", rank, " axes"));
  }
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<Ints> NormalizeAxes(const Ints& axes, int64_t rank) {
  Ints result;
  for (int64_t axis : axes) {
    LOADLINE_ASSIGN_OR_RETURN(int64_t a, NormalizeAxis(axis, rank));
    result.push_back(a);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return Bad(absl::StrCat("axes ", Text(axes), " name one axis twice"));
  }
  return result;
}

absl::StatusOr<Ints> AxesOrAll(Ints axes, int64_t rank) {
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) {
    LOADLINE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  LOADLINE_ASSIGN_OR_RETURN(Ints distinct, NormalizeAxes(axes, rank));
  if (distinct.size() != axes.size()) {
    return absl::InvalidArgumentError("an axis is given twice");
  }
  return axes;
}

absl::StatusOr<Ints> ResolveReshape(const Ints& dims, Ints target,
                                    bool allow_zero) {
  LOADLINE_ASSIGN_OR_RETURN(int64_t count, ElementCount(dims));
  const absl::Status misfit =
      Bad(absl::StrCat("cannot reshape ", Text(dims), " to ", Text(target)));
  int64_t open = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allow_zero) {
      if (i >= dims.size()) return misfit;
      target[i] = dims[i];
    } else if (target[i] == -1) {
      if (open >= 0) return misfit;
      open = static_cast<int64_t>(i);
    }
  }
  Ints known = target;
  if (open >= 0) known[static_cast<size_t>(open)] = 1;
  LOADLINE_ASSIGN_OR_RETURN(int64_t known_count, ElementCount(known));
  if (open >= 0) {
    if (known_count == 0 || count % known_count != 0) return misfit;
    target[static_cast<size_t>(open)] = count / known_count;
  } else if (known_count != count) {
    return misfit;
  }
  return target;
}

absl::StatusOr<Ints> ResolveFlatten(const Ints& dims, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (axis < -rank || axis > rank) {
    return Bad(absl::StrCat("cannot flatten ", Text(dims), " at ", axis));
  }
  if (axis < 0) axis += rank;
  LOADLINE_ASSIGN_OR_RETURN(int64_t rows,
                            ElementCount({dims.begin(), dims.begin() + axis}));
  LOADLINE_ASSIGN_OR_RETURN(int64_t columns,
                            ElementCount({dims.begin() + axis, dims.end()}));
  return Ints{rows, columns};
}

absl::StatusOr<Ints> ResolveSqueeze(const Ints& dims, const Ints& axes) {
  LOADLINE_ASSIGN_OR_RETURN(
      Ints drop, NormalizeAxes(axes, static_cast<int64_t>(dims.size())));
  Ints result;
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    const int64_t d = dims[static_cast<size_t>(i)];
    const bool named = std::binary_search(drop.begin(), drop.end(), i);
    if (named && d != 1) {
      return Bad(absl::StrCat("cannot squeeze axis ", i, " of ", Text(dims)));
    }
    if (!named && (d != 1 || !axes.empty())) result.push_back(d);
  }
  return result;
}

absl::StatusOr<Ints> ResolveUnsqueeze(const Ints& dims, const Ints& axes) {
  const int64_t rank = static_cast<int64_t>(dims.size() + axes.size());
  LOADLINE_ASSIGN_OR_RETURN(Ints added, NormalizeAxes(axes, rank));
  Ints result;
  auto next = dims.begin();
  for (int64_t i = 0; i < rank; ++i) {
    const bool named = std::binary_search(added.begin(), added.end(), i);
    result.push_back(named ? 1 : *next++);
  }
  return result;
}

absl::StatusOr<Ints> BroadcastDims(const Ints& a, const Ints& b) {
  const size_t rank = std::max(a.size(), b.size());
  Ints result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t da = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t db = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (da != db && da != 1 && db != 1) {
      return Bad(absl::StrCat("shapes ", Text(a), " and ", Text(b),
                              " do not broadcast"));
    }
    result[i] = da == 1 ? db : da;
  }
  return result;
}

absl::StatusOr<SliceSpec> ResolveSlice(const Ints& dims, SliceSpec spec) {
  const size_t n = spec.starts.size();
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (spec.axes.empty()) {
    for (size_t i = 0; i < n; ++i) {
      spec.axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (spec.steps.empty()) spec.steps.assign(n, 1);
  if (spec.ends.size() != n || spec.axes.size() != n ||
      spec.steps.size() != n) {
    return Bad("starts, ends, axes and steps differ in length");
  }
  LOADLINE_RETURN_IF_ERROR(NormalizeAxes(spec.axes, rank).status());
  for (size_t i = 0; i < n; ++i) {
    LOADLINE_ASSIGN_OR_RETURN(spec.axes[i], NormalizeAxis(spec.axes[i], rank));
    const int64_t d = dims[static_cast<size_t>(spec.axes[i])];
    const int64_t step = spec.steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) {
      return Bad(absl::StrCat("slice step ", step));
    }
    auto wrap = [d](int64_t v) { return v < 0 ? std::max(v, -d - 1) + d : v; };
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? d : d - 1;
    int64_t& start = spec.starts[i];
    int64_t& end = spec.ends[i];
    start = std::clamp(wrap(start), step > 0 ? 0 : low, std::max(low, high));
    end = std::clamp(wrap(end), low, std::max(low, high));
    if (step > 0) end = std::max(end, start);
    if (step < 0) end = std::min(end, start);
  }
  return spec;
}

int64_t SliceLength(int64_t start, int64_t end, int64_t step) {
  const int64_t span = step > 0 ? end - start : start - end;
  const int64_t stride = step > 0 ? step : -step;
  return span <= 0 ? 0 : (span - 1) / stride + 1;
}

absl::StatusOr<Ints> EqualParts(int64_t size, int64_t parts) {
  if (parts <= 0 || parts > size) {
    return Bad(absl::StrCat("cannot split ", size, " into ", parts, " parts"));
  }
  const int64_t part = (size - 1) / parts + 1;
  Ints sizes(static_cast<size_t>(parts), part);
  sizes.back() = size - part * (parts - 1);
  if (sizes.back() < 0) {
    return Bad(absl::StrCat("cannot split ", size, " into ", parts, " parts"));
  }
  return sizes;
}

absl::StatusOr<Ints> AutoPads(const std::string& auto_pad, const Ints& spatial,
                              const Ints& kernel, const Ints& strides,
                              const Ints& dilations) {
  const size_t n = spatial.size();
  Ints pads(2 * n, 0);
  if (auto_pad == "VALID") return pads;
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") {
    return Bad(absl::StrCat("unknown auto_pad '", auto_pad, "'"));
  }
  if (kernel.size() != n || strides.size() != n || dilations.size() != n) {
    return Bad("kernel, strides or dilations do not fit the input");
  }
  for (size_t i = 0; i < n; ++i) {
    constexpr int64_t kMax = int64_t{1} << 30;
    if (strides[i] < 1 || kernel[i] < 1 || dilations[i] < 1 ||
        kernel[i] > kMax || dilations[i] > kMax || strides[i] > kMax ||
        spatial[i] > kMax || spatial[i] < 1) {
      return Bad("absurd kernel, strides or dilations");
    }
    const int64_t out = (spatial[i] - 1) / strides[i] + 1;
    const int64_t total = std::max<int64_t>(
        0, (out - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 -
               spatial[i]);
    const int64_t small = total / 2;
    pads[i] = auto_pad == "SAME_UPPER" ? small : total - small;
    pads[n + i] = total - pads[i];
  }
  return pads;
}

}  // namespace loadline::models::onnx_internal
