// Rules for extremes, positions of extremes, products and sums along axes.
// Tested in tests/conformance/imported_operators_test.cc and onnx_node_test.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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

// A product of more elements than this would be that many nodes.
constexpr int64_t kMostFactors = 256;

// The axes of a reduction as one axis: x is permuted by `perm`, where that is
// needed, and reshaped to `merged`.
struct OneAxis {
  Ints perm;
  Ints merged;
  int64_t axis = 0;
  Ints result;  // dims of the output
};

// No `merged` if nothing is reduced.
absl::StatusOr<OneAxis> MergeAxes(Importer& importer,
                                  const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  LOADLINE_ASSIGN_OR_RETURN(Ints axes, ReducedAxes(importer, node));
  OneAxis one;
  if (axes.empty()) return one;
  std::vector<bool> reduced(dims.size());
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
  const bool keep = IntAttribute(node, "keepdims", 1) != 0;
  Ints kept;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i]) {
      kept.push_back(static_cast<int64_t>(i));
      one.result.push_back(dims[i]);
    } else if (keep) {
      one.result.push_back(1);
    }
  }
  int64_t size = 1;
  for (int64_t axis : axes) size *= dims[static_cast<size_t>(axis)];
  if (axes.back() - axes.front() + 1 == static_cast<int64_t>(axes.size())) {
    one.axis = axes.front();
    one.merged.assign(dims.begin(), dims.begin() + axes.front());
    one.merged.push_back(size);
    one.merged.insert(one.merged.end(), dims.begin() + axes.back() + 1,
                      dims.end());
    return one;
  }
  one.perm = kept;
  one.perm.insert(one.perm.end(), axes.begin(), axes.end());
  for (int64_t axis : kept) {
    one.merged.push_back(dims[static_cast<size_t>(axis)]);
  }
  one.axis = static_cast<int64_t>(one.merged.size());
  one.merged.push_back(size);
  return one;
}

ValueId Merged(Emitter& e, const OneAxis& one) {
  ValueId x = e.Input(0);
  if (!one.perm.empty()) x = e.Transpose(x, one.perm);
  return e.Reshape(x, one.merged);
}

absl::Status Extreme(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const OneAxis one, MergeAxes(importer, node));
  if (one.merged.empty()) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  Emitter e(importer, node);
  ValueId x = Merged(e, one);
  const DType dtype = e.type(x).dtype;
  if (dtype == DType::kBool) x = e.Cast(x, DType::kI32);
  Attributes attributes = {{"axis", one.axis}};
  if (importer.IsFirstOfTies(node)) attributes.Set("first", int64_t{1});
  const ValueId y = e.Emit(node.op_type(), {x}, std::move(attributes));
  return e.Define(0, e.Reshape(e.Cast(y, dtype), one.result));
}

// Sums and means of floats.
absl::Status Reduce(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(Ints axes, ReducedAxes(importer, node));
  if (axes.empty()) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(node, node.op_type(), {x},
                          {{"axes", std::move(axes)},
                           {"keepdims", IntAttribute(node, "keepdims", 1)}});
}

// A sum of integers is the last of their cumulative sums.
absl::Status ReduceSum(Importer& importer, const onnx::NodeProto& node) {
  const DType dtype = importer.Type(node, 0).dtype;
  if (dtype != DType::kI64 && dtype != DType::kI32) {
    return Reduce(importer, node);
  }
  LOADLINE_ASSIGN_OR_RETURN(const OneAxis one, MergeAxes(importer, node));
  if (one.merged.empty()) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  Emitter e(importer, node);
  const int64_t size = one.merged[static_cast<size_t>(one.axis)];
  if (size == 0) return e.Define(0, e.Expand(e.Number(0, dtype), one.result));
  const ValueId sums = e.Emit("CumSum", {Merged(e, one)}, {{"axis", one.axis}});
  const ValueId last = e.Emit("Slice", {sums},
                              {{"starts", Ints{size - 1}},
                               {"ends", Ints{size}},
                               {"axes", Ints{one.axis}},
                               {"steps", Ints{1}}});
  return e.Define(0, e.Reshape(last, one.result));
}

// Multiplies the elements pairwise: so the gradient is right at zeros too.
absl::Status ReduceProd(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const OneAxis one, MergeAxes(importer, node));
  if (one.merged.empty()) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  const int64_t size = one.merged[static_cast<size_t>(one.axis)];
  if (size > kMostFactors || size < 1) {
    importer.Unsupported(node, absl::StrCat("of ", size, " elements"));
    return absl::OkStatus();
  }
  Emitter e(importer, node);
  const ValueId x = Merged(e, one);
  std::vector<ValueId> factors;
  for (int64_t i = 0; i < size; ++i) {
    factors.push_back(e.Emit("Slice", {x},
                             {{"starts", Ints{i}},
                              {"ends", Ints{i + 1}},
                              {"axes", Ints{one.axis}},
                              {"steps", Ints{1}}}));
  }
  while (factors.size() > 1) {
    std::vector<ValueId> products;
    for (size_t i = 0; i + 1 < factors.size(); i += 2) {
      products.push_back(e.Emit("Mul", {factors[i], factors[i + 1]}));
    }
    if (factors.size() % 2 == 1) products.push_back(factors.back());
    factors = std::move(products);
  }
  return e.Define(0, e.Reshape(factors[0], one.result));
}

// m + log(sum(exp(x - m))) with the largest element m, or 0 where that is
// infinite.
absl::Status ReduceLogSumExp(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const OneAxis one, MergeAxes(importer, node));
  if (one.merged.empty()) {
    importer.Alias(node, 0, 0);
    return absl::OkStatus();
  }
  Emitter e(importer, node);
  const ValueId x = Merged(e, one);
  const ValueId largest = e.Emit("ReduceMax", {x}, {{"axis", one.axis}});
  const ValueId infinite =
      e.Emit("Equal", {e.Emit("Abs", {largest}),
                       e.Number(std::numeric_limits<double>::infinity())});
  const ValueId shift = e.Emit("Where", {infinite, e.Number(0), largest});
  const ValueId exp = e.Emit("Exp", {e.Emit("Sub", {x, shift})});
  const ValueId sum = e.Emit(
      "ReduceSum", {exp}, {{"axes", Ints{one.axis}}, {"keepdims", int64_t{1}}});
  const ValueId y = e.Emit("Add", {e.Emit("Log", {sum}), shift});
  return e.Define(0, e.Reshape(y, one.result));
}

absl::StatusOr<int64_t> AxisOf(Importer& importer, const onnx::NodeProto& node,
                               int64_t fallback) {
  return NormalizeAxis(IntAttribute(node, "axis", fallback),
                       importer.Type(node, 0).rank());
}

// The position of the first extreme element along the axis, which stays.
ValueId FirstOf(Emitter& e, ValueId x, int64_t axis, bool largest, bool last) {
  return e.Emit("TopK", {x},
                {{"axis", axis},
                 {"k", int64_t{1}},
                 {"largest", int64_t{largest}},
                 {"last", int64_t{last}}});
}

absl::Status ArgExtreme(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(importer, node, 0));
  Emitter e(importer, node);
  const ValueId y = FirstOf(e, e.Input(0), axis, node.op_type() == "ArgMax",
                            IntAttribute(node, "select_last_index", 0) != 0);
  Ints shape = e.dims(y);
  if (e.status().ok() && IntAttribute(node, "keepdims", 1) == 0) {
    shape.erase(shape.begin() + axis);
  }
  return e.Define(0, e.Reshape(y, shape));
}

// 1 at the first largest element, else 0.
absl::Status Hardmax(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(importer, node, -1));
  const TensorType type = importer.Type(node, 0);
  const size_t a = static_cast<size_t>(axis);
  Emitter e(importer, node);
  const ValueId first = FirstOf(e, e.Input(0), axis, true, false);
  const ValueId positions =
      e.Constant(AxisPositions(type.dims[a], type.dims.size(), a));
  const ValueId hit = e.Emit("Equal", {positions, first});
  return e.Define(0, e.Cast(hit, type.dtype));
}

// The positions, and a gather of the elements there.
absl::Status TopK(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(importer, node, -1));
  LOADLINE_ASSIGN_OR_RETURN(const Ints k, importer.ConstantInts(node, 1));
  if (k.size() != 1) return absl::InvalidArgumentError("needs one k");
  const TensorType type = importer.Type(node, 0);
  Emitter e(importer, node);
  const ValueId x = e.Input(0);
  const ValueId positions =
      e.Emit("TopK", {x},
             {{"axis", axis},
              {"k", k[0]},
              {"largest", IntAttribute(node, "largest", 1)}});
  LOADLINE_RETURN_IF_ERROR(e.Define(1, positions));
  Ints strides = RowMajorStrides(type.dims), others = type.dims;
  const int64_t stride = strides[static_cast<size_t>(axis)];
  others[static_cast<size_t>(axis)] = 1;
  strides[static_cast<size_t>(axis)] = 0;
  LOADLINE_ASSIGN_OR_RETURN(const int64_t lines, ElementCount(others));
  if (lines > kMaxConstant) {
    importer.Unsupported(node, "of so many lines");
    return absl::OkStatus();
  }
  const std::vector<int64_t> starts = StridedIndex(others, strides, 0);
  const ValueId start =
      e.Constant(MakeTensor({DType::kI64, others}, starts.data()));
  const ValueId step = e.Number(static_cast<double>(stride), DType::kI64);
  const ValueId flat = e.Emit(
      "Add",
      {stride == 1 ? positions : e.Emit("Mul", {positions, step}), start});
  const ValueId elements = e.Reshape(x, {type.elements()});
  return e.Define(0,
                  e.Emit("Gather", {elements, flat}, {{"axis", int64_t{0}}}));
}

absl::Status CumSum(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const Ints axes, importer.ConstantInts(node, 1));
  if (axes.size() != 1) return absl::InvalidArgumentError("needs one axis");
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t axis,
      NormalizeAxis(axes[0], importer.Type(node, 0).rank()));
  Emitter e(importer, node);
  return e.Define(0, e.Emit("CumSum", {e.Input(0)},
                            {{"axis", axis},
                             {"exclusive", IntAttribute(node, "exclusive", 0)},
                             {"reverse", IntAttribute(node, "reverse", 0)}}));
}

}  // namespace

const std::map<std::string, Rule>& AlongAxisRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"ReduceMax", Extreme},     {"ReduceMin", Extreme},
      {"ReduceProd", ReduceProd}, {"ReduceLogSumExp", ReduceLogSumExp},
      {"ReduceSum", ReduceSum},   {"ReduceMean", Reduce},
      {"ArgMax", ArgExtreme},     {"ArgMin", ArgExtreme},
      {"Hardmax", Hardmax},       {"TopK", TopK},
      {"CumSum", CumSum},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
