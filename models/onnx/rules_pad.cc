// The rule for Pad: SliceGrad pads with zeros, Concat integers and masks,
// Gather with elements of the tensor. Tested in
// tests/conformance/imported_operators_test.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/movement.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

struct Margins {
  Ints before, after;  // by axis; negative: removes elements
};

absl::StatusOr<Margins> ReadMargins(Importer& importer,
                                    const onnx::NodeProto& node,
                                    const Ints& dims) {
  const int64_t rank = static_cast<int64_t>(dims.size());
  LOADLINE_ASSIGN_OR_RETURN(Ints pads, importer.ConstantInts(node, 1));
  Ints axes;
  if (importer.Has(node, 3)) {
    LOADLINE_ASSIGN_OR_RETURN(axes, importer.ConstantInts(node, 3));
  }
  LOADLINE_ASSIGN_OR_RETURN(axes, AxesOrAll(axes, rank));
  if (pads.size() != 2 * axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(pads.size(), " pads for ", axes.size(), " axes"));
  }
  Margins margins{Ints(dims.size(), 0), Ints(dims.size(), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axes[i]);
    margins.before[axis] = pads[i];
    margins.after[axis] = pads[axes.size() + i];
    if (std::min(margins.before[axis], margins.after[axis]) < -dims[axis] ||
        std::max(margins.before[axis], margins.after[axis]) > kMaxAxis ||
        dims[axis] + margins.before[axis] + margins.after[axis] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("pads ", margins.before[axis], " and ",
                       margins.after[axis], " on an axis of ", dims[axis]));
    }
  }
  return margins;
}

// Removes what negative pads remove, and leaves the others.
absl::StatusOr<ValueId> CutMargins(Importer& importer,
                                   const onnx::NodeProto& node, ValueId x,
                                   Ints& dims, Margins& margins) {
  Ints starts, ends, axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t start = std::max<int64_t>(0, -margins.before[i]);
    const int64_t end = dims[i] - std::max<int64_t>(0, -margins.after[i]);
    if (start == 0 && end == dims[i]) continue;
    axes.push_back(static_cast<int64_t>(i));
    starts.push_back(start);
    ends.push_back(std::max(start, end));
    dims[i] = ends.back() - start;
    margins.before[i] = std::max<int64_t>(0, margins.before[i]);
    margins.after[i] = std::max<int64_t>(0, margins.after[i]);
  }
  if (axes.empty()) return x;
  const Ints steps(axes.size(), 1);
  return importer.EmitValue(
      node, "Slice", {x},
      {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
}

// A constant that broadcasts to the padded shape: `value` in the margins, 0
// elsewhere.
Tensor MarginValues(const Ints& dims, const Margins& margins, float value) {
  Ints shape;
  int64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t more = margins.before[i] + margins.after[i];
    shape.push_back(more > 0 ? dims[i] + more : 1);
    count *= shape.back();
  }
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t at = 0; at < count; ++at) {
    int64_t rest = at;
    bool inside = true;
    for (size_t i = shape.size(); i-- > 0;) {
      const int64_t place = rest % shape[i];
      rest /= shape[i];
      if (shape[i] == 1) continue;
      inside &=
          place >= margins.before[i] && place < margins.before[i] + dims[i];
    }
    values[static_cast<size_t>(at)] = inside ? 0.0f : value;
  }
  return MakeTensor({DType::kF32, std::move(shape)}, values.data());
}

// Labels and masks: SliceGrad is for f32.
absl::Status PadBeside(Importer& importer, const onnx::NodeProto& node,
                       ValueId x, const Margins& margins, double value) {
  Emitter e(importer, node);
  for (size_t axis = 0; axis < margins.before.size(); ++axis) {
    const DType dtype = e.type(x).dtype;
    std::vector<ValueId> parts;
    const auto add_margin = [&](int64_t size) {
      if (size == 0) return;
      Ints shape = e.dims(x);
      shape[axis] = size;
      parts.push_back(e.Expand(e.Number(value, dtype), shape));
    };
    add_margin(margins.before[axis]);
    parts.push_back(x);
    add_margin(margins.after[axis]);
    if (parts.size() == 1) continue;
    x = e.Emit("Concat", parts, {{"axis", static_cast<int64_t>(axis)}});
  }
  return e.Define(0, x);
}

absl::Status PadConstant(Importer& importer, const onnx::NodeProto& node,
                         ValueId x, const Ints& dims, const Margins& margins,
                         double value) {
  Ints starts, ends, axes, shape = dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    shape[i] += margins.before[i] + margins.after[i];
    if (shape[i] == dims[i]) continue;
    axes.push_back(static_cast<int64_t>(i));
    starts.push_back(margins.before[i]);
    ends.push_back(margins.before[i] + dims[i]);
  }
  if (axes.empty()) {
    importer.Define(node, 0, x);
    return absl::OkStatus();
  }
  const Ints steps(axes.size(), 1);
  LOADLINE_RETURN_IF_ERROR(ElementCount(shape).status());
  LOADLINE_ASSIGN_OR_RETURN(ValueId wide,
                            importer.EmitValue(node, "SliceGrad", {x},
                                               {{"starts", starts},
                                                {"ends", ends},
                                                {"axes", axes},
                                                {"steps", steps},
                                                {"shape", shape}}));
  if (value == 0) {
    importer.Define(node, 0, wide);
    return absl::OkStatus();
  }
  // Larger than about a plane, the constant would be as large as an activation.
  int64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    count *= shape[i] == dims[i] ? 1 : shape[i];
  }
  if (count > kMaxConstant) {
    importer.Unsupported(node, "with a value in too many axes");
    return absl::OkStatus();
  }
  const ValueId values = importer.UseTensor(
      absl::StrCat(node.name(), "/margins"),
      MarginValues(dims, margins, static_cast<float>(value)));
  return importer.EmitOne(node, "Add", {wide, values});
}

// Index of the element that an axis of `size` has at position i, beyond its
// ends.
int64_t Beyond(const std::string& mode, int64_t i, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, size - 1);
  const int64_t period =
      mode == "wrap" ? size : std::max<int64_t>(1, 2 * (size - 1));
  const int64_t place = (i % period + period) % period;
  return place < size ? place : period - place;
}

absl::Status PadFromInside(Importer& importer, const onnx::NodeProto& node,
                           ValueId x, const Ints& dims, const Margins& margins,
                           const std::string& mode) {
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (margins.before[axis] == 0 && margins.after[axis] == 0) continue;
    if (dims[axis] == 0) {
      return absl::InvalidArgumentError("pads an empty axis from its inside");
    }
    Ints positions;
    for (int64_t i = -margins.before[axis];
         i < dims[axis] + margins.after[axis]; ++i) {
      positions.push_back(Beyond(mode, i, dims[axis]));
    }
    LOADLINE_ASSIGN_OR_RETURN(
        x, EmitTake(importer, node, x, static_cast<int64_t>(axis), positions));
  }
  importer.Define(node, 0, x);
  return absl::OkStatus();
}

absl::Status Pad(Importer& importer, const onnx::NodeProto& node) {
  const TensorType type = importer.Type(node, 0);
  Ints dims = type.dims;
  const std::string mode = StringAttribute(node, "mode", "constant");
  LOADLINE_ASSIGN_OR_RETURN(Margins margins, ReadMargins(importer, node, dims));
  double value = 0;
  if (importer.Has(node, 2)) {
    LOADLINE_ASSIGN_OR_RETURN(value, importer.ConstantReal(node, 2));
  }
  const bool nothing =
      std::all_of(dims.begin(), dims.end(), [&](const int64_t& dim) {
        const size_t i = static_cast<size_t>(&dim - dims.data());
        return margins.before[i] == 0 && margins.after[i] == 0;
      });
  if (nothing) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(x, CutMargins(importer, node, x, dims, margins));
  if (mode == "constant" && type.dtype != DType::kF32) {
    return PadBeside(importer, node, x, margins, value);
  }
  return mode == "constant"
             ? PadConstant(importer, node, x, dims, margins, value)
             : PadFromInside(importer, node, x, dims, margins, mode);
}

}  // namespace

const std::map<std::string, Rule>& PadRules() {
  static const auto* const kRules =
      new std::map<std::string, Rule>{{"Pad", Pad}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
