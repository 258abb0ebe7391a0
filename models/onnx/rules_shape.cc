// Rules for operators that rearrange elements: ONNX's constant input tensors
// become normalized attributes, without negative axes or indices. Tested in
// tests/models/onnx_rules_test.cc.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/onnx/importer.h"
#include "models/onnx/movement.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int64_t kMaxParts = 1 << 16;

absl::Status EmitReshape(Importer& importer, const onnx::NodeProto& node,
                         absl::StatusOr<Ints> shape) {
  LOADLINE_RETURN_IF_ERROR(shape.status());
  if (*shape == importer.Type(node, 0).dims) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(node, "Reshape", {x}, {{"shape", *std::move(shape)}});
}

absl::Status Reshape(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(Ints target, importer.ConstantInts(node, 1));
  return EmitReshape(
      importer, node,
      ResolveReshape(importer.Type(node, 0).dims, std::move(target),
                     IntAttribute(node, "allowzero", 0) != 0));
}

absl::Status Flatten(Importer& importer, const onnx::NodeProto& node) {
  return EmitReshape(importer, node,
                     ResolveFlatten(importer.Type(node, 0).dims,
                                    IntAttribute(node, "axis", 1)));
}

absl::Status Squeeze(Importer& importer, const onnx::NodeProto& node) {
  Ints axes;
  if (importer.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(axes, importer.ConstantInts(node, 1));
  }
  return EmitReshape(importer, node,
                     ResolveSqueeze(importer.Type(node, 0).dims, axes));
}

absl::Status Unsqueeze(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(Ints axes, importer.ConstantInts(node, 1));
  return EmitReshape(importer, node,
                     ResolveUnsqueeze(importer.Type(node, 0).dims, axes));
}

absl::Status Transpose(Importer& importer, const onnx::NodeProto& node) {
  const int64_t rank = importer.Type(node, 0).rank();
  Ints perm = IntsAttribute(node, "perm");
  if (FindAttribute(node, "perm") == nullptr) {
    for (int64_t i = rank; i-- > 0;) perm.push_back(i);
  }
  for (int64_t& axis : perm) {
    LOADLINE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  if (std::is_sorted(perm.begin(), perm.end()) &&
      static_cast<int64_t>(perm.size()) == rank) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(node, "Transpose", {x}, {{"perm", perm}});
}

absl::Status Concat(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(int64_t axis,
                            NormalizeAxis(IntAttribute(node, "axis", 0),
                                          importer.Type(node, 0).rank()));
  std::vector<ValueId> inputs;
  for (int i = 0; i < node.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, importer.Use(node, i));
    inputs.push_back(id);
  }
  return importer.EmitOne(node, "Concat", std::move(inputs), {{"axis", axis}});
}

// The axis of a split and its size.
struct SplitAxis {
  int64_t axis = 0;
  int64_t size = 0;
};

absl::StatusOr<SplitAxis> ReadSplitAxis(Importer& importer,
                                        const onnx::NodeProto& node) {
  const TensorType& type = importer.Type(node, 0);
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis, NormalizeAxis(IntAttribute(node, "axis", 0), type.rank()));
  return SplitAxis{axis, type.dims[static_cast<size_t>(axis)]};
}

absl::StatusOr<std::vector<ValueId>> EmitSplit(Importer& importer,
                                               const onnx::NodeProto& node,
                                               int64_t axis, Ints sizes) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.Emit(node, "Split", {x},
                       {{"axis", axis}, {"sizes", std::move(sizes)}});
}

absl::Status Split(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(SplitAxis along, ReadSplitAxis(importer, node));
  Ints sizes;
  if (importer.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(sizes, importer.ConstantInts(node, 1));
  } else {
    LOADLINE_ASSIGN_OR_RETURN(
        sizes, EqualParts(along.size, IntAttribute(node, "num_outputs",
                                                   node.output_size())));
  }
  if (static_cast<int64_t>(sizes.size()) != node.output_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        sizes.size(), " parts for ", node.output_size(), " outputs"));
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<ValueId> parts,
                            EmitSplit(importer, node, along.axis, sizes));
  for (size_t i = 0; i < parts.size(); ++i) {
    importer.Define(node, static_cast<int>(i), parts[i]);
  }
  return absl::OkStatus();
}

// torch's default exporter without optimization writes Tensor.split as
// SplitToSequence and one SequenceAt per part.
absl::Status SplitToSequence(Importer& importer, const onnx::NodeProto& node) {
  if (!importer.Has(node, 1) && IntAttribute(node, "keepdims", 1) == 0) {
    importer.Unsupported(node, "with keepdims=0");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(SplitAxis along, ReadSplitAxis(importer, node));
  Ints sizes;
  int64_t chunk = 1;
  if (importer.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(sizes, importer.ConstantInts(node, 1));
    if (importer.Type(node, 1).rank() == 0) {
      chunk = sizes[0];
      sizes.clear();
    }
  }
  if (!importer.Has(node, 1) || importer.Type(node, 1).rank() == 0) {
    if (chunk < 1 || along.size / chunk > kMaxParts) {
      return absl::InvalidArgumentError(
          absl::StrCat("parts of ", chunk, " of an axis of ", along.size));
    }
    for (int64_t rest = along.size; rest > 0; rest -= chunk) {
      sizes.push_back(std::min(rest, chunk));
    }
  }
  if (sizes.empty()) {
    return absl::InvalidArgumentError("splits into no parts");
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<ValueId> parts,
                            EmitSplit(importer, node, along.axis, sizes));
  importer.DefineSequence(node, std::move(parts));
  return absl::OkStatus();
}

absl::Status SequenceAt(Importer& importer, const onnx::NodeProto& node) {
  const std::vector<ValueId>& parts = importer.Input(node, 0).sequence;
  LOADLINE_ASSIGN_OR_RETURN(Ints position, importer.ConstantInts(node, 1));
  if (position.size() != 1 || parts.empty()) {
    return absl::InvalidArgumentError("needs a sequence and one position");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t i,
      NormalizeAxis(position[0], static_cast<int64_t>(parts.size())));
  importer.Define(node, 0, parts[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

// The axes with a negative step, by Gather; removes them from `spec`, and those
// that are taken whole: x[:, :, None] has two of them.
absl::StatusOr<ValueId> TakeBackwards(Importer& importer,
                                      const onnx::NodeProto& node, ValueId x,
                                      SliceSpec* spec) {
  SliceSpec forwards;
  const Ints dims = importer.Type(node, 0).dims;
  for (size_t i = 0; i < spec->axes.size(); ++i) {
    const int64_t size = dims[static_cast<size_t>(spec->axes[i])];
    if (spec->steps[i] == 1 && spec->ends[i] - spec->starts[i] == size) {
      continue;
    }
    if (spec->steps[i] > 0) {
      forwards.starts.push_back(spec->starts[i]);
      forwards.ends.push_back(spec->ends[i]);
      forwards.axes.push_back(spec->axes[i]);
      forwards.steps.push_back(spec->steps[i]);
      continue;
    }
    const int64_t length =
        SliceLength(spec->starts[i], spec->ends[i], spec->steps[i]);
    Ints positions;
    for (int64_t k = 0; k < length; ++k) {
      positions.push_back(spec->starts[i] + k * spec->steps[i]);
    }
    LOADLINE_ASSIGN_OR_RETURN(
        x, EmitTake(importer, node, x, spec->axes[i], positions));
  }
  *spec = std::move(forwards);
  return x;
}

absl::Status Slice(Importer& importer, const onnx::NodeProto& node) {
  SliceSpec spec;
  LOADLINE_ASSIGN_OR_RETURN(spec.starts, importer.ConstantInts(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(spec.ends, importer.ConstantInts(node, 2));
  if (importer.Has(node, 3)) {
    LOADLINE_ASSIGN_OR_RETURN(spec.axes, importer.ConstantInts(node, 3));
  }
  if (importer.Has(node, 4)) {
    LOADLINE_ASSIGN_OR_RETURN(spec.steps, importer.ConstantInts(node, 4));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      spec, ResolveSlice(importer.Type(node, 0).dims, std::move(spec)));
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(x, TakeBackwards(importer, node, x, &spec));
  if (spec.axes.empty() && importer.Type(node, 0).rank() > 0) {
    importer.Define(node, 0, x);
    return absl::OkStatus();
  }
  return importer.EmitOne(node, "Slice", {x},
                          {{"starts", spec.starts},
                           {"ends", spec.ends},
                           {"axes", spec.axes},
                           {"steps", spec.steps}});
}

absl::Status Expand(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(Ints target, importer.ConstantInts(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(Ints shape,
                            BroadcastDims(importer.Type(node, 0).dims, target));
  if (shape == importer.Type(node, 0).dims) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(node, "Expand", {x}, {{"shape", shape}});
}

// [d0, d1] -> [1, d0, 1, d1] -> [r0, d0, r1, d1] -> [r0 d0, r1 d1].
absl::Status Tile(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(Ints repeats, importer.ConstantInts(node, 1));
  const Ints dims = importer.Type(node, 0).dims;
  if (repeats.size() != dims.size()) {
    return absl::InvalidArgumentError("repeats do not fit the input");
  }
  Ints split, broadcast, result;
  for (size_t i = 0; i < dims.size(); ++i) {
    split.insert(split.end(), {1, dims[i]});
    broadcast.insert(broadcast.end(), {repeats[i], dims[i]});
    LOADLINE_ASSIGN_OR_RETURN(int64_t d, ElementCount({repeats[i], dims[i]}));
    result.push_back(d);
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(
      x, EmitRepeat(importer, node, x, split, broadcast, result));
  importer.Define(node, 0, x);
  return absl::OkStatus();
}

// Constant indices are checked and made non-negative here.
absl::Status Gather(Importer& importer, const onnx::NodeProto& node) {
  const TensorType& data = importer.Type(node, 0);
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis, NormalizeAxis(IntAttribute(node, "axis", 0), data.rank()));
  const int64_t size = data.dims[static_cast<size_t>(axis)];
  ValueId indices = kNoValue;
  if (importer.IsConstant(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(Ints values, importer.ConstantInts(node, 1));
    for (int64_t& v : values) {
      if (v < -size || v >= size) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", v, " on an axis of ", size));
      }
      if (v < 0) v += size;
    }
    indices = importer.UseTensor(
        node.input(1),
        MakeTensor({DType::kI64, importer.Type(node, 1).dims}, values.data()));
  } else {
    LOADLINE_ASSIGN_OR_RETURN(indices, importer.Use(node, 1));
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  Attributes attributes = {{"axis", axis}};
  const std::optional<int64_t> padding_row = importer.PaddingRow(node);
  if (padding_row && axis == 0 && *padding_row < size) {
    attributes.Set("padding_row", *padding_row);
  }
  return importer.EmitOne(node, "Gather", {x, indices}, std::move(attributes));
}

}  // namespace

const std::map<std::string, Rule>& ShapeRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"Reshape", Reshape},       {"Flatten", Flatten},
      {"Squeeze", Squeeze},       {"Unsqueeze", Unsqueeze},
      {"Transpose", Transpose},   {"Concat", Concat},
      {"Split", Split},           {"SplitToSequence", SplitToSequence},
      {"SequenceAt", SequenceAt}, {"Slice", Slice},
      {"Expand", Expand},         {"Tile", Tile},
      {"Gather", Gather},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
