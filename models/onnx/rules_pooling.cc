// Rules for pools and reductions. Tested in tests/models/onnx_rules_test.cc.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "models/onnx/supported.h"
#include "models/onnx/window.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {

absl::StatusOr<Ints> ReducedAxes(const Importer& importer,
                                 const onnx::NodeProto& node) {
  const int64_t rank = importer.Type(node, 0).rank();
  Ints axes;
  if (importer.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(axes, importer.ConstantInts(node, 1));
    LOADLINE_ASSIGN_OR_RETURN(axes, NormalizeAxes(axes, rank));
  }
  if (axes.empty() && IntAttribute(node, "noop_with_empty_axes", 0) == 0) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

namespace {

// One window over all spatial axes of [N, C, spatial...].
Attributes WholeWindow(const Ints& dims) {
  const size_t n = dims.size() - 2;
  return {{"kernel_shape", Ints(dims.begin() + 2, dims.end())},
          {"strides", Ints(n, 1)},
          {"pads", Ints(2 * n, 0)},
          {"dilations", Ints(n, 1)},
          {"ceil_mode", int64_t{0}}};
}

// A window's attributes for the spatial axes [first, end), and for an axis of
// one element after them if `pads_out`.
Attributes WindowOver(Attributes window, size_t first, size_t end,
                      bool pads_out) {
  for (const char* name : {"kernel_shape", "strides", "dilations"}) {
    const Ints all = window.IntList(name);
    Ints part(all.begin() + first, all.begin() + end);
    if (pads_out) part.push_back(1);
    window.Set(name, part);
  }
  const Ints all = window.IntList("pads");
  const size_t n = all.size() / 2;
  Ints pads;
  for (size_t side : {size_t{0}, n}) {
    pads.insert(pads.end(), all.begin() + side + first,
                all.begin() + side + end);
    if (pads_out) pads.push_back(0);
  }
  window.Set("pads", pads);
  return window;
}

// A pool. One of volumes is a pool of each image and then one over the images:
// the maximum, its first position and the divisor of a mean are the same.
ValueId Pool(Emitter& e, const std::string& op, ValueId x,
             const Attributes& window) {
  const Ints d = e.dims(x);
  if (d.size() != 5) return e.Emit(op, {x}, window);
  const ValueId images =
      e.Emit(op, {e.Reshape(x, {d[0], d[1] * d[2], d[3], d[4]})},
             WindowOver(window, 1, 3, false));
  if (!e.status().ok()) return kNoValue;
  const Ints p = e.dims(images);
  const ValueId pooled =
      e.Emit(op, {e.Reshape(images, {d[0], d[1], d[2], p[2] * p[3]})},
             WindowOver(window, 0, 1, true));
  if (!e.status().ok()) return kNoValue;
  return e.Reshape(pooled, {d[0], d[1], e.dims(pooled)[2], p[2], p[3]});
}

// The window of a pool of the node. Warns where ONNX Runtime pads otherwise:
// for auto_pad it takes a dilated kernel for as long as one that is not
// dilated.
absl::StatusOr<Attributes> PoolWindow(Importer& importer,
                                      const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(
      Attributes window,
      WindowAttributes(node, importer.Type(node, 0).dims, {}));
  const std::string auto_pad = StringAttribute(node, "auto_pad", "NOTSET");
  const Ints dilations = window.IntList("dilations");
  if ((auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") &&
      std::any_of(dilations.begin(), dilations.end(),
                  [](int64_t d) { return d > 1; })) {
    importer.Warn(absl::StrCat(
        NodeLabel(node),
        ": its output is its input divided by the stride, as "
        "ONNX says of auto_pad; ONNX Runtime pads less where a pool has "
        "dilations too. With pads instead of auto_pad both compute the same"));
  }
  return window;
}

// ONNX's indices count through the whole tensor, argmax through one plane.
ValueId WholeIndices(Emitter& e, ValueId argmax, const Ints& dims) {
  const int64_t planes = dims[0] * dims[1];
  int64_t size = 1;
  for (size_t i = 2; i < dims.size(); ++i) size *= dims[i];
  Ints starts(static_cast<size_t>(planes));
  for (size_t i = 0; i < starts.size(); ++i) {
    starts[i] = static_cast<int64_t>(i) * size;
  }
  Ints shape(dims.size(), 1);
  shape[0] = dims[0];
  shape[1] = dims[1];
  const ValueId first =
      e.Constant(MakeTensor({DType::kI64, shape}, starts.data()));
  return e.Emit("Add", {e.Cast(argmax, DType::kI64), first});
}

absl::Status MaxPool(Importer& importer, const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  const bool indices = importer.Wants(node, 1);
  if (indices && dims.size() > 4) {
    importer.Unsupported(node, "of volumes, whose indices are read");
    return absl::OkStatus();
  }
  if (indices && IntAttribute(node, "storage_order", 0) != 0) {
    importer.Unsupported(node, "whose indices count columns");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(Attributes attributes, PoolWindow(importer, node));
  attributes.Set("ceil_mode", IntAttribute(node, "ceil_mode", 0));
  Emitter e(importer, node);
  if (!indices) return e.Define(0, Pool(e, "MaxPool", e.Input(0), attributes));
  const std::vector<ValueId> outputs =
      e.EmitAll("MaxPool", {e.Input(0)}, attributes, 2);
  LOADLINE_RETURN_IF_ERROR(e.status());
  LOADLINE_RETURN_IF_ERROR(e.Define(0, outputs[0]));
  return e.Define(1, WholeIndices(e, outputs[1], dims));
}

absl::Status AveragePool(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(Attributes attributes, PoolWindow(importer, node));
  attributes.Set("ceil_mode", IntAttribute(node, "ceil_mode", 0));
  attributes.Set("count_include_pad",
                 IntAttribute(node, "count_include_pad", 0));
  Emitter e(importer, node);
  return e.Define(0, Pool(e, "AveragePool", e.Input(0), attributes));
}

// The p-th root of the sum of |x|^p: AveragePool, times the window's size.
// Where the sum is 0, the root of 1 takes its place, as for ReduceL2.
absl::Status EmitLpPool(Importer& importer, const onnx::NodeProto& node,
                        Attributes window) {
  const double p = static_cast<double>(IntAttribute(node, "p", 2));
  if (!(p >= 1)) return absl::InvalidArgumentError("p is below 1");
  LOADLINE_ASSIGN_OR_RETURN(const int64_t size,
                            ElementCount(window.IntList("kernel_shape")));
  window.Set("count_include_pad", int64_t{1});
  Emitter e(importer, node);
  const ValueId x = e.Input(0);
  const ValueId above = p == 2
                            ? e.Emit("Mul", {x, x})
                            : e.Emit("Pow", {e.Emit("Abs", {x}), e.Number(p)});
  const ValueId mean = Pool(e, "AveragePool", above, window);
  const ValueId sum =
      e.Emit("Mul", {mean, e.Number(static_cast<double>(size))});
  const ValueId none = e.Emit("Equal", {sum, e.Number(0)});
  const ValueId safe = e.Emit("Where", {none, e.Number(1), sum});
  const ValueId root =
      p == 2 ? e.Emit("Sqrt", {safe}) : e.Emit("Pow", {safe, e.Number(1 / p)});
  return e.Define(0, e.Emit("Where", {none, e.Number(0), root}));
}

// A last window beyond the padded input has fewer elements, and AveragePool
// counts only those.
absl::Status LpPool(Importer& importer, const onnx::NodeProto& node) {
  if (IntAttribute(node, "ceil_mode", 0) != 0) {
    importer.Unsupported(node, "with ceil_mode");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(Attributes window, PoolWindow(importer, node));
  window.Set("ceil_mode", int64_t{0});
  return EmitLpPool(importer, node, std::move(window));
}

absl::Status GlobalLpPool(Importer& importer, const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  if (dims.size() < 3) {
    return absl::InvalidArgumentError("needs an input with spatial axes");
  }
  return EmitLpPool(importer, node, WholeWindow(dims));
}

absl::Status GlobalMaxPool(Importer& importer, const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  if (dims.size() < 3) {
    return absl::InvalidArgumentError("needs an input with spatial axes");
  }
  Emitter e(importer, node);
  return e.Define(0, Pool(e, "MaxPool", e.Input(0), WholeWindow(dims)));
}

absl::Status GlobalAveragePool(Importer& importer,
                               const onnx::NodeProto& node) {
  Ints axes;
  for (int64_t i = 2; i < importer.Type(node, 0).rank(); ++i) axes.push_back(i);
  if (axes.empty()) {
    return absl::InvalidArgumentError("needs an input with spatial axes");
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  return importer.EmitOne(
      node, "ReduceMean", {x},
      {{"axes", std::move(axes)}, {"keepdims", int64_t{1}}});
}

// The root of the sum of squares. Where the sum is 0, the root of 1 takes its
// place, because the gradient of the root of 0 is infinite; PyTorch's is 0.
absl::Status ReduceL2(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(Ints axes, ReducedAxes(importer, node));
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  const auto emit = [&](const char* op, std::vector<ValueId> inputs,
                        Attributes attributes = {}) {
    return importer.EmitValue(node, op, std::move(inputs),
                              std::move(attributes));
  };
  LOADLINE_ASSIGN_OR_RETURN(ValueId sum, emit("Mul", {x, x}));
  if (!axes.empty()) {
    LOADLINE_ASSIGN_OR_RETURN(
        sum, emit("ReduceSum", {sum},
                  {{"axes", std::move(axes)},
                   {"keepdims", IntAttribute(node, "keepdims", 1)}}));
  }
  const ValueId zero = importer.UseTensor("zero", ScalarTensor(0));
  const ValueId one = importer.UseTensor("one", ScalarTensor(1));
  LOADLINE_ASSIGN_OR_RETURN(ValueId none, emit("Equal", {sum, zero}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId safe, emit("Where", {none, one, sum}));
  LOADLINE_ASSIGN_OR_RETURN(ValueId root, emit("Sqrt", {safe}));
  return importer.EmitOne(node, "Where", {none, zero, root});
}

}  // namespace

const std::map<std::string, Rule>& PoolingRules() {
  static const auto* const kRules = new std::map<std::string, Rule>{
      {"MaxPool", MaxPool},
      {"AveragePool", AveragePool},
      {"GlobalMaxPool", GlobalMaxPool},
      {"LpPool", LpPool},
      {"GlobalLpPool", GlobalLpPool},
      {"GlobalAveragePool", GlobalAveragePool},
      {"ReduceL2", ReduceL2},
  };
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
