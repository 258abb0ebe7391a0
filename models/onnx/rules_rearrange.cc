// Rules for operators that are movements or comparisons with constants. Tested
// in tests/conformance/imported_operators_test.cc and onnx_node_test.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/model_file.h"
#include "models/onnx/movement.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// [N, C, H, W]: blocks of b x b channels become b x b pixels.
absl::Status DepthToSpace(Importer& importer, const onnx::NodeProto& node) {
  const Ints x = importer.Type(node, 0).dims;
  const int64_t b = IntAttribute(node, "blocksize", 1);
  if (x.size() != 4 || b < 1 || b > kMaxAxis || x[1] % (b * b) != 0) {
    return absl::InvalidArgumentError("its blocks do not divide the channels");
  }
  const int64_t c = x[1] / (b * b);
  const bool columns_last = StringAttribute(node, "mode", "DCR") == "CRD";
  Emitter e(importer, node);
  const ValueId apart =
      columns_last ? e.Reshape(e.Input(0), {x[0], c, b, b, x[2], x[3]})
                   : e.Reshape(e.Input(0), {x[0], b, b, c, x[2], x[3]});
  const ValueId moved = e.Transpose(
      apart, columns_last ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2});
  return e.Define(0, e.Reshape(moved, {x[0], c, x[2] * b, x[3] * b}));
}

absl::Status SpaceToDepth(Importer& importer, const onnx::NodeProto& node) {
  const Ints x = importer.Type(node, 0).dims;
  const int64_t b = IntAttribute(node, "blocksize", 1);
  if (x.size() != 4 || b < 1 || b > kMaxAxis || x[2] % b != 0 ||
      x[3] % b != 0) {
    return absl::InvalidArgumentError("its blocks do not divide the image");
  }
  Emitter e(importer, node);
  const ValueId apart =
      e.Reshape(e.Input(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
  const ValueId moved = e.Transpose(apart, {0, 3, 5, 1, 2, 4});
  return e.Define(0,
                  e.Reshape(moved, {x[0], x[1] * b * b, x[2] / b, x[3] / b}));
}

// Zeros beyond a diagonal, by a constant mask.
absl::Status Trilu(Importer& importer, const onnx::NodeProto& node) {
  const TensorType x = importer.Type(node, 0);
  if (x.rank() < 2) return absl::InvalidArgumentError("needs two axes");
  const int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  int64_t k = 0;
  if (importer.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(const Ints given, importer.ConstantInts(node, 1));
    if (given.size() != 1) return absl::InvalidArgumentError("needs one k");
    k = std::clamp(given[0], -rows - 1, columns + 1);
  }
  LOADLINE_ASSIGN_OR_RETURN(const int64_t count, ElementCount({rows, columns}));
  if (count > kMaxConstant) {
    importer.Unsupported(node, "of so many elements");
    return absl::OkStatus();
  }
  const bool upper = IntAttribute(node, "upper", 1) != 0;
  std::vector<uint8_t> kept(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i / columns, column = i % columns;
    kept[static_cast<size_t>(i)] =
        upper ? column >= row + k : column <= row + k;
  }
  Emitter e(importer, node);
  const ValueId mask =
      e.Constant(MakeTensor({DType::kBool, {rows, columns}}, kept.data()));
  const ValueId zero = e.Number(0, x.dtype);
  return e.Define(0, e.Emit("Where", {mask, e.Input(0), zero}));
}

// Compares the indices with every class. One outside all classes is no error:
// it equals none.
absl::Status OneHot(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const double given, importer.ConstantReal(node, 1));
  if (!(given >= 1 && given <= static_cast<double>(kMaxAxis))) {
    return absl::InvalidArgumentError(absl::StrCat("depth is ", given));
  }
  const int64_t depth = static_cast<int64_t>(given);
  Ints shape = importer.Type(node, 0).dims;
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t axis,
      NormalizeAxis(IntAttribute(node, "axis", -1),
                    static_cast<int64_t>(shape.size()) + 1));
  if (importer.Type(node, 2).dims != Ints{2}) {
    return absl::InvalidArgumentError("values are not two");
  }
  shape.insert(shape.begin() + axis, 1);
  Emitter e(importer, node);
  const ValueId indices = e.Reshape(e.Cast(e.Input(0), DType::kI64), shape);
  const ValueId classes =
      e.Constant(AxisPositions(depth, shape.size(), static_cast<size_t>(axis)));
  const ValueId size = e.Number(static_cast<double>(depth), DType::kI64);
  const ValueId from_end = e.Emit("Add", {indices, size});
  const ValueId hot = e.Emit("Or", {e.Emit("Equal", {indices, classes}),
                                    e.Emit("Equal", {from_end, classes})});
  const auto value = [&](int64_t i) {
    const ValueId one = e.Emit("Slice", {e.Input(2)},
                               {{"starts", Ints{i}},
                                {"ends", Ints{i + 1}},
                                {"axes", Ints{0}},
                                {"steps", Ints{1}}});
    return e.Reshape(one, {});
  };
  const ValueId on = value(1);
  return e.Define(0, e.Emit("Where", {hot, on, value(0)}));
}

// Ones on a diagonal of a matrix with the input's shape.
absl::Status EyeLike(Importer& importer, const onnx::NodeProto& node) {
  const TensorType x = importer.Type(node, 0);
  DType dtype = x.dtype;
  if (FindAttribute(node, "dtype") != nullptr) {
    LOADLINE_ASSIGN_OR_RETURN(
        dtype,
        DTypeFromOnnx(static_cast<int32_t>(IntAttribute(node, "dtype", 0)),
                      "its result"));
  }
  if (x.rank() != 2 || x.elements() > kMaxConstant) {
    importer.Unsupported(node, "of this shape");
    return absl::OkStatus();
  }
  const int64_t k = IntAttribute(node, "k", 0);
  std::vector<uint8_t> ones(static_cast<size_t>(x.elements()));
  for (int64_t i = 0; i < x.elements(); ++i) {
    ones[static_cast<size_t>(i)] = i % x.dims[1] - i / x.dims[1] == k;
  }
  Emitter e(importer, node);
  const ValueId eye =
      e.Constant(MakeTensor({DType::kBool, x.dims}, ones.data()));
  return e.Define(0, e.Cast(eye, dtype));
}

}  // namespace

const std::map<std::string, Rule>& RearrangeRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"DepthToSpace", DepthToSpace},
      {"SpaceToDepth", SpaceToDepth},
      {"Trilu", Trilu},
      {"OneHot", OneHot},
      {"EyeLike", EyeLike},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
