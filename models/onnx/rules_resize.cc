// The rule for Resize: repeated elements are a broadcast, other nearest
// elements a gather, and mixtures of neighbours a product with a constant
// matrix. Tested in tests/conformance/imported_operators_test.cc.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/importer.h"
#include "models/onnx/movement.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/resample.h"
#include "models/onnx/shape_math.h"
#include "models/onnx/supported.h"
#include "models/onnx/wide.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// One axis of a Resize.
struct ResizedAxis {
  int64_t axis = 0;
  int64_t in = 0;
  std::vector<std::vector<Tap>> taps;
};

absl::StatusOr<std::vector<double>> ConstantReals(Importer& importer,
                                                  const onnx::NodeProto& node,
                                                  int i) {
  if (!importer.IsConstant(node, i) ||
      !CanWiden(importer.Input(node, i).constant->type.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " must be known when the model is imported"));
  }
  return Widen(*importer.Input(node, i).constant).reals;
}

bool IsGiven(Importer& importer, const onnx::NodeProto& node, int i) {
  return importer.Has(node, i) && importer.Type(node, i).elements() > 0;
}

// New size of an axis, and the ratio that determines positions.
struct NewSize {
  int64_t out = 0;
  double scale = 1;
};

// With the attribute that asks for it, one ratio for all axes: the smallest or
// the largest of theirs.
absl::Status KeepAspectRatio(Importer& importer, const onnx::NodeProto& node,
                             const Ints& dims, const Ints& axes,
                             std::vector<NewSize>* sizes) {
  const std::string policy =
      StringAttribute(node, "keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || sizes->empty()) return absl::OkStatus();
  const Ints written = IntsAttribute(node, "axes");
  if (std::any_of(written.begin(), written.end(),
                  [](int64_t axis) { return axis < 0; })) {
    importer.Warn(
        absl::StrCat(NodeLabel(node),
                     ": ONNX Runtime does not resize negative axes with "
                     "keep_aspect_ratio_policy; write its axes from 0"));
  }
  if (policy != "not_larger" && policy != "not_smaller") {
    return absl::InvalidArgumentError(
        absl::StrCat("keep_aspect_ratio_policy is ", policy));
  }
  double ratio = (*sizes)[0].scale;
  for (const NewSize& size : *sizes) {
    ratio = policy == "not_larger" ? std::min(ratio, size.scale)
                                   : std::max(ratio, size.scale);
  }
  for (size_t i = 0; i < sizes->size(); ++i) {
    const double in = static_cast<double>(dims[static_cast<size_t>(axes[i])]);
    if (!(ratio * in < 1e9)) {
      return absl::InvalidArgumentError("makes an axis absurdly long");
    }
    (*sizes)[i] = {static_cast<int64_t>(std::floor(ratio * in + 0.5)), ratio};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NewSize>> ReadSizes(Importer& importer,
                                               const onnx::NodeProto& node,
                                               const Ints& dims,
                                               const Ints& axes) {
  std::vector<NewSize> sizes;
  if (IsGiven(importer, node, 2)) {
    LOADLINE_ASSIGN_OR_RETURN(std::vector<double> scales,
                              ConstantReals(importer, node, 2));
    for (size_t i = 0; i < std::min(axes.size(), scales.size()); ++i) {
      // In float, as ONNX infers the shape and PyTorch resizes: 10 * 0.7f is 7.
      const auto in = static_cast<float>(dims[static_cast<size_t>(axes[i])]);
      const double out = std::floor(in * static_cast<float>(scales[i]));
      if (!(scales[i] > 0) || !(out < 1e9)) {
        return absl::InvalidArgumentError(
            absl::StrCat("holds the absurd scale ", scales[i]));
      }
      sizes.push_back({static_cast<int64_t>(out), scales[i]});
    }
  } else if (IsGiven(importer, node, 3)) {
    LOADLINE_ASSIGN_OR_RETURN(Ints outs, importer.ConstantInts(node, 3));
    for (size_t i = 0; i < std::min(axes.size(), outs.size()); ++i) {
      const double in = static_cast<double>(dims[static_cast<size_t>(axes[i])]);
      sizes.push_back({outs[i], static_cast<double>(outs[i]) / in});
    }
    LOADLINE_RETURN_IF_ERROR(
        KeepAspectRatio(importer, node, dims, axes, &sizes));
  }
  if (sizes.size() != axes.size()) {
    return absl::InvalidArgumentError("needs a scale or a size for every axis");
  }
  return sizes;
}

absl::StatusOr<std::vector<ResizedAxis>> ReadResizedAxes(
    Importer& importer, const onnx::NodeProto& node, const Ints& dims,
    const Resampling& resampling) {
  LOADLINE_ASSIGN_OR_RETURN(Ints axes,
                            AxesOrAll(IntsAttribute(node, "axes"),
                                      static_cast<int64_t>(dims.size())));
  LOADLINE_ASSIGN_OR_RETURN(std::vector<NewSize> sizes,
                            ReadSizes(importer, node, dims, axes));
  std::vector<ResizedAxis> resized;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = dims[static_cast<size_t>(axes[i])];
    const auto [out, scale] = sizes[i];
    if (in == out && scale == 1) continue;
    // Antialiasing reads all of a long axis.
    if (in < 1 || out < 1 || out > kMaxAxis ||
        (resampling.antialias && in > kMaxAxis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("makes ", out, " elements of an axis of ", in));
    }
    resized.push_back({axes[i], in, ResampleTaps(resampling, in, out, scale)});
  }
  return resized;
}

// [d0, d1] -> [d0, 1, d1, 1] -> [d0, r0, d1, r1] -> [d0 r0, d1 r1], for all
// axes that are repeated; removes them from `resized`.
absl::StatusOr<ValueId> Repeat(Importer& importer, const onnx::NodeProto& node,
                               ValueId x, Ints& dims,
                               std::vector<ResizedAxis>& resized) {
  Ints repeats(dims.size(), 1);
  std::erase_if(resized, [&](const ResizedAxis& axis) {
    const std::optional<int64_t> r = RepeatsOf(axis.taps, axis.in);
    if (r) repeats[static_cast<size_t>(axis.axis)] = *r;
    return r.has_value();
  });
  Ints apart, broadcast, result;
  for (size_t i = 0; i < dims.size(); ++i) {
    apart.push_back(dims[i]);
    broadcast.push_back(dims[i]);
    LOADLINE_ASSIGN_OR_RETURN(int64_t size,
                              ElementCount({dims[i], repeats[i]}));
    result.push_back(size);
    if (repeats[i] == 1) continue;
    apart.push_back(1);
    broadcast.push_back(repeats[i]);
  }
  if (result == dims) return x;
  dims = result;
  return EmitRepeat(importer, node, x, apart, broadcast, result);
}

// Multiplies x by a matrix of weights, along one of the last two axes.
absl::StatusOr<ValueId> MixInner(Importer& importer,
                                 const onnx::NodeProto& node, ValueId x,
                                 bool last, const ResizedAxis& axis) {
  const int64_t out = static_cast<int64_t>(axis.taps.size());
  std::vector<float> weights(static_cast<size_t>(out * axis.in));
  for (int64_t row = 0; row < out; ++row) {
    for (const Tap& tap : axis.taps[static_cast<size_t>(row)]) {
      const int64_t at = last ? tap.from * out + row : row * axis.in + tap.from;
      weights[static_cast<size_t>(at)] += static_cast<float>(tap.weight);
    }
  }
  const Ints shape = last ? Ints{axis.in, out} : Ints{out, axis.in};
  const ValueId matrix =
      importer.UseTensor(absl::StrCat(node.name(), "/weights"),
                         MakeTensor({DType::kF32, shape}, weights.data()));
  const std::vector<ValueId> operands =
      last ? std::vector{x, matrix} : std::vector{matrix, x};
  return importer.EmitValue(node, "MatMul", operands, {{"exact", int64_t{1}}});
}

// The same along any axis; an outer one changes places with the last.
absl::StatusOr<ValueId> Mix(Importer& importer, const onnx::NodeProto& node,
                            ValueId x, size_t rank, const ResizedAxis& axis) {
  const size_t at = static_cast<size_t>(axis.axis);
  if (at + 2 >= rank) {
    return MixInner(importer, node, x, at + 1 == rank, axis);
  }
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[at], perm[rank - 1]);
  LOADLINE_ASSIGN_OR_RETURN(
      x, importer.EmitValue(node, "Transpose", {x}, {{"perm", perm}}));
  LOADLINE_ASSIGN_OR_RETURN(x, MixInner(importer, node, x, true, axis));
  return importer.EmitValue(node, "Transpose", {x}, {{"perm", perm}});
}

absl::Status Resize(Importer& importer, const onnx::NodeProto& node) {
  Resampling resampling;
  resampling.mode = StringAttribute(node, "mode", "nearest");
  resampling.coordinates =
      StringAttribute(node, "coordinate_transformation_mode", "half_pixel");
  resampling.nearest_mode =
      StringAttribute(node, "nearest_mode", "round_prefer_floor");
  resampling.cubic_coeff_a = FloatAttribute(node, "cubic_coeff_a", -0.75);
  resampling.exclude_outside = IntAttribute(node, "exclude_outside", 0) != 0;
  resampling.antialias = IntAttribute(node, "antialias", 0) != 0;
  const absl::Status known = CheckResampling(resampling);
  if (!known.ok()) {
    importer.Unsupported(node, std::string(known.message()));
    return absl::OkStatus();
  }
  Ints dims = importer.Type(node, 0).dims;
  LOADLINE_ASSIGN_OR_RETURN(std::vector<ResizedAxis> resized,
                            ReadResizedAxes(importer, node, dims, resampling));
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(x, Repeat(importer, node, x, dims, resized));
  for (const ResizedAxis& axis : resized) {
    if (resampling.mode == "nearest") {
      Ints positions;
      for (const std::vector<Tap>& row : axis.taps) {
        positions.push_back(row[0].from);
      }
      LOADLINE_ASSIGN_OR_RETURN(
          x, EmitTake(importer, node, x, axis.axis, positions));
      continue;
    }
    const int64_t out = static_cast<int64_t>(axis.taps.size());
    if (dims.size() < 2 || out * axis.in > kMaxConstant) {
      importer.Unsupported(node, "of so many elements");
      return absl::OkStatus();
    }
    LOADLINE_ASSIGN_OR_RETURN(x, Mix(importer, node, x, dims.size(), axis));
  }
  importer.Define(node, 0, x);
  return absl::OkStatus();
}

}  // namespace

const std::map<std::string, Rule>& ResizeRules() {
  static const auto* const kRules =
      new std::map<std::string, Rule>{{"Resize", Resize}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
