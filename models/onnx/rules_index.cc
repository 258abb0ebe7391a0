// Rules for the operators that pick or overwrite elements by several indices.
// The indices become positions in a flat tensor, known at import if they are;
// then Gather and Scatter along one axis do the rest. Positions that depend on
// data are checked in the step: one outside its axis becomes a position behind
// the tensor, which the kernel reports. Tested in
// tests/conformance/imported_operators_test.cc and onnx_node_test.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/movement.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "models/onnx/wide.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// One of several indices whose combination selects a row.
struct IndexPart {
  int64_t size = 0;    // of the axis
  int64_t stride = 0;  // rows from one index of it to the next
};

// Rows of data[rows, inner] that a node selects: positions = base + sum of
// index * stride over the parts.
struct RowSelection {
  int64_t rows = 0;
  int64_t inner = 1;
  Ints shape;  // of the positions
  std::vector<IndexPart> parts;
  Tensor base;  // i64; broadcasts to `shape`
};

Tensor IndexTensor(Ints dims, const std::vector<int64_t>& numbers) {
  return MakeTensor({DType::kI64, std::move(dims)}, numbers.data());
}

// Element [i, j, k] of `indices` names data[i, index, k] for axis 1.
absl::StatusOr<RowSelection> SelectElements(const Ints& data,
                                            const Ints& indices, size_t axis) {
  if (indices.size() != data.size()) {
    return absl::InvalidArgumentError("indices differ from data in rank");
  }
  RowSelection s;
  LOADLINE_ASSIGN_OR_RETURN(s.rows, ElementCount(data));
  s.shape = indices;
  Ints strides = RowMajorStrides(data);
  s.parts = {{data[axis], strides[axis]}};
  Ints others = indices;
  others[axis] = 1;
  strides[axis] = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    if (i != axis && indices[i] > data[i]) {
      return absl::InvalidArgumentError("indices reach beyond data");
    }
  }
  LOADLINE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(others));
  if (count > kMaxConstant) {
    return absl::InvalidArgumentError("has too many indices");
  }
  s.base = IndexTensor(others, StridedIndex(others, strides, 0));
  return s;
}

// The last axis of `indices` holds one index for each of data's axes from
// `batch_dims` on.
absl::StatusOr<RowSelection> SelectRows(const Ints& data, const Ints& indices,
                                        int64_t batch_dims) {
  const int64_t rank = static_cast<int64_t>(indices.size());
  const int64_t picked = indices.empty() ? 0 : indices.back();
  if (picked < 1 || batch_dims < 0 || batch_dims >= rank ||
      batch_dims + picked > static_cast<int64_t>(data.size()) ||
      !std::equal(data.begin(), data.begin() + batch_dims, indices.begin())) {
    return absl::InvalidArgumentError("indices do not fit data");
  }
  const size_t count = static_cast<size_t>(batch_dims + picked);
  RowSelection s;
  LOADLINE_ASSIGN_OR_RETURN(
      s.rows, ElementCount(Ints(data.begin(), data.begin() + count)));
  LOADLINE_ASSIGN_OR_RETURN(
      s.inner, ElementCount(Ints(data.begin() + count, data.end())));
  s.shape.assign(indices.begin(), indices.end() - 1);
  const Ints strides =
      RowMajorStrides(Ints(data.begin(), data.begin() + count));
  for (size_t i = static_cast<size_t>(batch_dims); i < count; ++i) {
    s.parts.push_back({data[i], strides[i]});
  }
  Ints batches(s.shape.size(), 1), batch_strides(s.shape.size(), 0);
  for (size_t i = 0; i < static_cast<size_t>(batch_dims); ++i) {
    batches[i] = data[i];
    batch_strides[i] = strides[i];
  }
  s.base = IndexTensor(batches, StridedIndex(batches, batch_strides, 0));
  return s;
}

// An index from the start of an axis of `size`.
absl::StatusOr<int64_t> FromStart(int64_t index, int64_t size) {
  if (index < -size || index >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ", index, " on an axis of ", size));
  }
  return index < 0 ? index + size : index;
}

// The positions of indices that are known.
absl::StatusOr<Tensor> KnownPositions(const RowSelection& s,
                                      const Ints& indices) {
  LOADLINE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(s.shape));
  const std::vector<int64_t> base = BroadcastIndex(s.base.type.dims, s.shape);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at =
        s.base.as<int64_t>()[static_cast<size_t>(base[static_cast<size_t>(i)])];
    for (size_t part = 0; part < s.parts.size(); ++part) {
      const auto [size, stride] = s.parts[part];
      LOADLINE_ASSIGN_OR_RETURN(
          const int64_t index,
          FromStart(indices[static_cast<size_t>(i) * s.parts.size() + part],
                    size));
      at += index * stride;
    }
    positions.push_back(at);
  }
  return IndexTensor({count}, positions);
}

// The term of one index in the positions; `inside` becomes false where the
// index leaves its axis.
ValueId CheckedTerm(Emitter& e, ValueId index, const IndexPart& part,
                    ValueId* inside) {
  const auto number = [&e](int64_t n) {
    return e.Number(static_cast<double>(n), DType::kI64);
  };
  const ValueId zero = number(0);
  const ValueId size = number(part.size);
  const ValueId negative = e.Emit("Less", {index, zero});
  const ValueId from_end = e.Emit("Add", {index, size});
  const ValueId row = e.Emit("Where", {negative, from_end, index});
  const ValueId after = e.Emit("GreaterOrEqual", {row, zero});
  const ValueId before = e.Emit("Less", {row, size});
  const ValueId here = e.Emit("And", {after, before});
  *inside = *inside == kNoValue ? here : e.Emit("And", {*inside, here});
  return part.stride == 1 ? row : e.Emit("Mul", {row, number(part.stride)});
}

// Column k of the last axis of `indices`. Of joined columns it is taken before
// they are joined, so that those that count rows stay apart from computed ones.
ValueId Column(Importer& importer, Emitter& e, ValueId indices, int64_t k) {
  const Graph& graph = importer.graph();
  const int64_t last = graph.value(indices).type.rank() - 1;
  const auto maker = std::find_if(
      graph.nodes.rbegin(), graph.nodes.rend(),
      [indices](const Node& node) { return node.outputs[0] == indices; });
  if (maker != graph.nodes.rend() && maker->op == "Concat" &&
      maker->attributes.Int("axis", 0) == last) {
    for (const ValueId part : maker->inputs) {
      const int64_t width =
          graph.value(part).type.dims[static_cast<size_t>(last)];
      if (k < width) {
        indices = part;
        break;
      }
      k -= width;
    }
  }
  if (graph.value(indices).type.dims[static_cast<size_t>(last)] == 1) {
    return indices;
  }
  return e.Emit("Slice", {indices},
                {{"starts", Ints{k}},
                 {"ends", Ints{k + 1}},
                 {"axes", Ints{last}},
                 {"steps", Ints{1}}});
}

// The positions as a value of shape [count]. `last_axis`: the parts are along
// the last axis of the indices.
absl::StatusOr<ValueId> Positions(Importer& importer,
                                  const onnx::NodeProto& node, Emitter& e,
                                  int input, const RowSelection& s,
                                  bool last_axis) {
  LOADLINE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(s.shape));
  if (importer.IsConstant(node, input)) {
    LOADLINE_ASSIGN_OR_RETURN(Ints indices, importer.ConstantInts(node, input));
    LOADLINE_ASSIGN_OR_RETURN(Tensor known, KnownPositions(s, indices));
    return e.Constant(known);
  }
  const ValueId indices = e.Cast(e.Input(input), DType::kI64);
  const ValueId outside = e.Number(static_cast<double>(s.rows), DType::kI64);
  ValueId inside = kNoValue;
  ValueId positions = e.Constant(s.base);
  for (size_t i = 0; i < s.parts.size(); ++i) {
    ValueId index = indices;
    if (last_axis) {
      index = Column(importer, e, indices, static_cast<int64_t>(i));
      const Value& column = importer.graph().value(index);
      if (column.kind == ValueKind::kConstant &&
          column.type.dtype == DType::kI64) {
        std::vector<int64_t> terms;
        for (const int64_t known : column.initial->as<int64_t>()) {
          LOADLINE_ASSIGN_OR_RETURN(const int64_t row,
                                    FromStart(known, s.parts[i].size));
          terms.push_back(row * s.parts[i].stride);
        }
        positions =
            e.Emit("Add", {e.Constant(IndexTensor(s.shape, terms)), positions});
        continue;
      }
      index = e.Reshape(index, s.shape);
    }
    positions =
        e.Emit("Add", {CheckedTerm(e, index, s.parts[i], &inside), positions});
  }
  if (inside != kNoValue) {
    positions = e.Emit("Where", {inside, positions, outside});
  }
  return e.Reshape(positions, {count});
}

absl::StatusOr<RowSelection> Select(Importer& importer,
                                    const onnx::NodeProto& node,
                                    bool elements) {
  const TensorType& data = importer.Type(node, 0);
  const Ints indices = importer.Type(node, 1).dims;
  const DType dtype = importer.Type(node, 1).dtype;
  if (dtype != DType::kI64 && dtype != DType::kI32) {
    return absl::InvalidArgumentError("indices are no integers");
  }
  if (!elements) {
    return SelectRows(data.dims, indices, IntAttribute(node, "batch_dims", 0));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      int64_t axis, NormalizeAxis(IntAttribute(node, "axis", 0), data.rank()));
  return SelectElements(data.dims, indices, static_cast<size_t>(axis));
}

absl::Status GatherBy(Importer& importer, const onnx::NodeProto& node,
                      bool elements) {
  LOADLINE_ASSIGN_OR_RETURN(const RowSelection s,
                            Select(importer, node, elements));
  Emitter e(importer, node);
  LOADLINE_ASSIGN_OR_RETURN(
      const ValueId positions,
      Positions(importer, node, e, 1, s, /*last_axis=*/!elements));
  const Ints data = importer.Type(node, 0).dims;
  Ints shape = s.shape;
  if (!elements) {
    const size_t tail =
        static_cast<size_t>(IntAttribute(node, "batch_dims", 0) +
                            static_cast<int64_t>(s.parts.size()));
    shape.insert(shape.end(), data.begin() + tail, data.end());
  }
  const ValueId rows = e.Reshape(e.Input(0), {s.rows, s.inner});
  const ValueId y = e.Emit("Gather", {rows, positions}, {{"axis", int64_t{0}}});
  return e.Define(0, e.Reshape(y, shape));
}

absl::Status GatherElements(Importer& importer, const onnx::NodeProto& node) {
  return GatherBy(importer, node, /*elements=*/true);
}

absl::Status GatherND(Importer& importer, const onnx::NodeProto& node) {
  return GatherBy(importer, node, /*elements=*/false);
}

absl::Status ScatterBy(Importer& importer, const onnx::NodeProto& node,
                       bool elements) {
  const TensorType data = importer.Type(node, 0);
  const std::string reduction = StringAttribute(node, "reduction", "none");
  const bool reduces =
      reduction == "max" || reduction == "min" || reduction == "mul";
  if (reduction != "none" && reduction != "add" && !reduces) {
    importer.Unsupported(node, absl::StrCat("with reduction ", reduction));
    return absl::OkStatus();
  }
  if (reduction != "none" && data.dtype != DType::kF32) {
    importer.Unsupported(node, absl::StrCat("with reduction ", reduction,
                                            " of other numbers than f32"));
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(const RowSelection s,
                            Select(importer, node, elements));
  LOADLINE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(s.shape));
  Emitter e(importer, node);
  LOADLINE_ASSIGN_OR_RETURN(
      const ValueId positions,
      Positions(importer, node, e, 1, s, /*last_axis=*/!elements));
  const ValueId rows = e.Reshape(e.Input(0), {s.rows, s.inner});
  const ValueId updates = e.Reshape(e.Input(2), {count, s.inner});
  ValueId y = kNoValue;
  if (reduction == "add") {
    const ValueId sums =
        e.Emit("GatherGrad", {updates, positions},
               {{"axis", int64_t{0}}, {"shape", Ints{s.rows, s.inner}}});
    y = e.Emit("Add", {rows, sums});
  } else if (reduces) {
    y = e.Emit("ScatterReduce", {rows, positions, updates},
               {{"reduction", reduction}});
  } else {
    y = e.Emit("Scatter", {rows, positions, updates});
  }
  return e.Define(0, e.Reshape(y, data.dims));
}

absl::Status ScatterElements(Importer& importer, const onnx::NodeProto& node) {
  return ScatterBy(importer, node, /*elements=*/true);
}

absl::Status ScatterND(Importer& importer, const onnx::NodeProto& node) {
  return ScatterBy(importer, node, /*elements=*/false);
}

}  // namespace

const std::map<std::string, Rule>& IndexRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"GatherElements", GatherElements}, {"GatherND", GatherND},
      {"Scatter", ScatterElements},       {"ScatterElements", ScatterElements},
      {"ScatterND", ScatterND},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
