// Rules for matrix products and convolutions. Tested in
// tests/models/onnx_rules_test.cc.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/movement.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "models/onnx/supported.h"
#include "models/onnx/window.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

absl::Status MatMul(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(ValueId a, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId b, importer.Use(node, 1));
  return importer.EmitOne(node, "MatMul", {a, b});
}

absl::Status Gemm(Importer& importer, const onnx::NodeProto& node) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < (importer.Has(node, 2) ? 3 : 2); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, importer.Use(node, i));
    inputs.push_back(id);
  }
  return importer.EmitOne(node, "Gemm", std::move(inputs),
                          {{"alpha", FloatAttribute(node, "alpha", 1.0)},
                           {"beta", FloatAttribute(node, "beta", 1.0)},
                           {"transA", IntAttribute(node, "transA", 0)},
                           {"transB", IntAttribute(node, "transB", 0)}});
}

// Zeros that are no initializer: torch's newer exporter gives every Conv a
// bias, and one of a 3-d Conv has a shape that ONNX does not allow.
bool IsZeroBias(const Importer& importer, const onnx::NodeProto& node) {
  if (!importer.IsConstant(node, 2)) return false;
  const Tensor& bias = *importer.Input(node, 2).constant;
  if (bias.type.dtype != DType::kF32 || bias.data == nullptr) return false;
  const auto values = bias.as<float>();
  return std::all_of(values.begin(), values.end(),
                     [](float v) { return v == 0; });
}

absl::Status Conv(Importer& importer, const onnx::NodeProto& node) {
  const Ints weight = importer.Type(node, 1).dims;
  if (weight.size() < 3) {
    return absl::InvalidArgumentError("its weight needs spatial axes");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      Attributes attributes,
      WindowAttributes(node, importer.Type(node, 0).dims,
                       {weight.begin() + 2, weight.end()}));
  attributes.Set("group", IntAttribute(node, "group", 1));
  const bool has_bias = importer.Has(node, 2) && !IsZeroBias(importer, node);
  std::vector<ValueId> inputs;
  for (int i = 0; i < (has_bias ? 3 : 2); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(ValueId id, importer.Use(node, i));
    inputs.push_back(id);
  }
  return importer.EmitOne(node, "Conv", std::move(inputs),
                          std::move(attributes));
}

// Sizes of a ConvTranspose's output, which is the input of the Conv whose
// output has `dims`. ONNX, ConvTranspose: stride (in - 1) + output_padding +
// (kernel - 1) dilation + 1 - pads.
absl::StatusOr<Ints> TransposedShape(const onnx::NodeProto& node,
                                     const Ints& dims, int64_t channels,
                                     const Attributes& window) {
  const size_t n = dims.size() - 2;
  const Ints kernel = window.IntList("kernel_shape");
  const Ints strides = window.IntList("strides");
  const Ints dilations = window.IntList("dilations");
  const Ints pads = window.IntList("pads");
  const Ints more = IntsAttribute(node, "output_padding", Ints(n, 0));
  if (more.size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("output_padding has ", more.size(), " numbers, not ", n));
  }
  Ints shape = {dims[0], channels};
  for (size_t i = 0; i < n; ++i) {
    if (more[i] < 0 || more[i] >= strides[i]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output_padding ", more[i], " is not below the stride ", strides[i]));
    }
    LOADLINE_ASSIGN_OR_RETURN(int64_t apart,
                              ElementCount({strides[i], dims[i + 2] - 1}));
    LOADLINE_ASSIGN_OR_RETURN(int64_t reach,
                              ElementCount({dilations[i], kernel[i] - 1}));
    const int64_t size = apart + more[i] + reach + 1 - pads[i] - pads[n + i];
    if (size < 1) {
      return absl::InvalidArgumentError("pads leave nothing of the output");
    }
    shape.push_back(size);
  }
  return shape;
}

// Sets the pads that give the output the spatial sizes which `output_shape`
// names, or for auto_pad the input's times the strides, and returns these. A
// size may also be larger than unpadded, by less than the stride: no window
// reaches what is added at the end. `window` has no pads yet.
absl::StatusOr<Ints> PadToShape(const onnx::NodeProto& node, const Ints& dims,
                                const std::string& auto_pad,
                                Attributes* window) {
  const size_t n = dims.size() - 2;
  Ints wanted = IntsAttribute(node, "output_shape");
  if (wanted.empty()) {
    for (size_t i = 0; i < n; ++i) {
      LOADLINE_ASSIGN_OR_RETURN(
          int64_t size,
          ElementCount({dims[i + 2], window->IntList("strides")[i]}));
      wanted.push_back(size);
    }
  }
  // With the batch and the channels, as older exporters write it.
  if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.size() != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("output_shape has ", wanted.size(), " numbers, not ", n));
  }
  LOADLINE_ASSIGN_OR_RETURN(const Ints unpadded,
                            TransposedShape(node, dims, 1, *window));
  Ints pads(2 * n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t total = std::max<int64_t>(0, unpadded[i + 2] - wanted[i]);
    if (wanted[i] < 1 ||
        wanted[i] - unpadded[i + 2] >= window->IntList("strides")[i]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no pads make ", wanted[i], " elements of ", unpadded[i + 2],
          ", nor does an output_padding below the stride ",
          window->IntList("strides")[i]));
    }
    const int64_t half = total / 2;
    pads[i] = auto_pad == "SAME_UPPER" ? half : total - half;
    pads[n + i] = total - pads[i];
  }
  window->Set("pads", std::move(pads));
  return wanted;
}

// ConvTranspose is the input gradient of the Conv with the same weight [C,
// M/group, k...].
absl::Status ConvTranspose(Importer& importer, const onnx::NodeProto& node) {
  const std::string auto_pad = StringAttribute(node, "auto_pad", "NOTSET");
  const bool to_shape = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER" ||
                        FindAttribute(node, "output_shape") != nullptr;
  const Ints weight = importer.Type(node, 1).dims;
  const Ints dims = importer.Type(node, 0).dims;
  if (weight.size() < 3 || weight.size() != dims.size()) {
    return absl::InvalidArgumentError("its weight needs its input's rank");
  }
  LOADLINE_ASSIGN_OR_RETURN(
      Attributes attributes,
      WindowAttributes(node, dims, {weight.begin() + 2, weight.end()}));
  const int64_t group = IntAttribute(node, "group", 1);
  LOADLINE_ASSIGN_OR_RETURN(int64_t channels, ElementCount({weight[1], group}));
  Ints shape = {dims[0], channels};
  if (to_shape) {
    attributes.Set("pads", Ints(2 * (dims.size() - 2), 0));
    LOADLINE_ASSIGN_OR_RETURN(const Ints unpadded,
                              TransposedShape(node, dims, 1, attributes));
    LOADLINE_ASSIGN_OR_RETURN(const Ints spatial,
                              PadToShape(node, dims, auto_pad, &attributes));
    if (FindAttribute(node, "output_shape") == nullptr &&
        !std::equal(spatial.begin(), spatial.end(), unpadded.begin() + 2,
                    std::less_equal<>())) {
      // ONNX's text says input times stride. Its library and ONNX Runtime
      // leave out what no kernel reaches, and shapes are checked with theirs.
      importer.Unsupported(
          node,
          "with auto_pad and a stride above its kernel, whose size ONNX and "
          "ONNX Runtime give differently: write output_shape");
      return absl::OkStatus();
    }
    shape.insert(shape.end(), spatial.begin(), spatial.end());
  } else {
    LOADLINE_ASSIGN_OR_RETURN(
        shape, TransposedShape(node, dims, channels, attributes));
  }
  attributes.Set("group", group);
  attributes.Set("shape", std::move(shape));
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(ValueId w, importer.Use(node, 1));
  if (!importer.Has(node, 2)) {
    return importer.EmitOne(node, "ConvInputGrad", {x, w},
                            std::move(attributes));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      ValueId y,
      importer.EmitValue(node, "ConvInputGrad", {x, w}, std::move(attributes)));
  Ints column(dims.size() - 1, 1);
  column[0] = channels;
  LOADLINE_ASSIGN_OR_RETURN(ValueId b, importer.Use(node, 2));
  LOADLINE_ASSIGN_OR_RETURN(
      b, importer.EmitValue(node, "Reshape", {b}, {{"shape", column}}));
  return importer.EmitOne(node, "Add", {y, b});
}

// The number of windows along each axis of an image; 0 where none fits.
Ints WindowsIn(const Ints& image, const Attributes& window) {
  const size_t n = image.size();
  Ints count(n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t reach = window.IntList("dilations")[i] *
                          (window.IntList("kernel_shape")[i] - 1);
    const int64_t room = image[i] + window.IntList("pads")[i] +
                         window.IntList("pads")[n + i] - reach - 1;
    count[i] = room < 0 ? 0 : room / window.IntList("strides")[i] + 1;
  }
  return count;
}

// Windows put back into an image, sums where they overlap (torch's fold): the
// input gradient of the Conv that takes windows apart, whose weight has one 1
// for each element of a window.
absl::Status Col2Im(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const Ints image, importer.ConstantInts(node, 1));
  LOADLINE_ASSIGN_OR_RETURN(const Ints block, importer.ConstantInts(node, 2));
  const Ints dims = importer.Type(node, 0).dims;
  LOADLINE_ASSIGN_OR_RETURN(const int64_t size, ElementCount(block));
  if (dims.size() != 3 || image.size() != block.size() || size < 1 ||
      dims[1] % size != 0) {
    return absl::InvalidArgumentError("its blocks do not fit its image");
  }
  if (image.size() > 3 || size * size > kMaxConstant) {
    importer.Unsupported(node, "of such blocks");
    return absl::OkStatus();
  }
  Ints shape = image;  // WindowAttributes reads the rank alone
  shape.insert(shape.begin(), {dims[0], dims[1]});
  LOADLINE_ASSIGN_OR_RETURN(Attributes window,
                            WindowAttributes(node, shape, block));
  const Ints count = WindowsIn(image, window);
  LOADLINE_ASSIGN_OR_RETURN(const int64_t windows, ElementCount(count));
  if (windows != dims[2]) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", dims[2], " windows, and its image ", windows));
  }
  const int64_t planes = dims[0] * (dims[1] / size);
  std::vector<float> ones(static_cast<size_t>(size * size));
  for (int64_t i = 0; i < size; ++i) {
    ones[static_cast<size_t>(i * size + i)] = 1;
  }
  Ints weight = {size, 1}, columns = {planes, size}, plane = {planes, 1};
  weight.insert(weight.end(), block.begin(), block.end());
  columns.insert(columns.end(), count.begin(), count.end());
  plane.insert(plane.end(), image.begin(), image.end());
  shape[1] = dims[1] / size;
  window.Set("shape", plane);
  window.Set("group", int64_t{1});
  Emitter e(importer, node);
  const ValueId y =
      e.Emit("ConvInputGrad",
             {e.Reshape(e.Input(0), columns),
              e.Constant(MakeTensor({DType::kF32, weight}, ones.data()))},
             std::move(window));
  return e.Define(0, e.Reshape(y, shape));
}

}  // namespace

const std::map<std::string, Rule>& LinearRules() {
  static const auto* const kRules =
      new std::map<std::string, Rule>{{"MatMul", MatMul},
                                      {"Gemm", Gemm},
                                      {"Conv", Conv},
                                      {"Col2Im", Col2Im},
                                      {"ConvTranspose", ConvTranspose}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
