// Shape arithmetic of ONNX operators, shared by folding and by the rules that
// emit nodes. Errors are InvalidArgument without the node's name; the importer
// adds it.
#ifndef LOADLINE_MODELS_ONNX_SHAPE_MATH_H_
#define LOADLINE_MODELS_ONNX_SHAPE_MATH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/attributes.h"

namespace loadline::models::onnx_internal {

// Product of dims; InvalidArgument if one is negative or the product overflows.
absl::StatusOr<int64_t> ElementCount(const Ints& dims);

// Maps ONNX's -rank <= axis < rank to [0, rank).
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank);
// Sorted, without duplicates.
absl::StatusOr<Ints> NormalizeAxes(const Ints& axes, int64_t rank);

// Normalized axes in the given order; all axes if none is given.
// InvalidArgument for duplicates.
absl::StatusOr<Ints> AxesOrAll(Ints axes, int64_t rank);

// Reshape's target with -1 and (unless `allow_zero`) 0 resolved.
absl::StatusOr<Ints> ResolveReshape(const Ints& dims, Ints target,
                                    bool allow_zero);
absl::StatusOr<Ints> ResolveFlatten(const Ints& dims, int64_t axis);
// `axes` empty: every axis of size 1.
absl::StatusOr<Ints> ResolveSqueeze(const Ints& dims, const Ints& axes);
absl::StatusOr<Ints> ResolveUnsqueeze(const Ints& dims, const Ints& axes);
absl::StatusOr<Ints> BroadcastDims(const Ints& a, const Ints& b);

struct SliceSpec {
  Ints starts, ends, axes, steps;  // as in ONNX; axes, steps optional
};
// Clamps every index into range, normalizes axes and adds missing steps. For a
// step > 0: 0 <= start <= end <= dim. For a step < 0: -1 <= end <= start < dim.
absl::StatusOr<SliceSpec> ResolveSlice(const Ints& dims, SliceSpec spec);
// Number of elements in a resolved slice.
int64_t SliceLength(int64_t start, int64_t end, int64_t step);

// Sizes of `parts` near-equal parts; the last one may be smaller.
absl::StatusOr<Ints> EqualParts(int64_t size, int64_t parts);

// Pads (begin..., end...) for ONNX's auto_pad "SAME_UPPER", "SAME_LOWER",
// "VALID". `spatial` are the input's spatial dims.
absl::StatusOr<Ints> AutoPads(const std::string& auto_pad, const Ints& spatial,
                              const Ints& kernel, const Ints& strides,
                              const Ints& dilations);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_SHAPE_MATH_H_
