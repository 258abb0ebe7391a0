// The rule for GridSample on images: positions are computed by pointwise
// operators, elements are picked by Gather from the flat image, and mixed by
// weights. Tested in tests/conformance/imported_operators_test.cc and
// onnx_node_test.cc.
#include <string>
#include <vector>

#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/wide.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

struct Sampling {
  std::string mode;     // "nearest", "linear"
  std::string padding;  // "zeros", "border"
  bool align_corners = false;
};

class GridSampler {
 public:
  GridSampler(Emitter& e, const Sampling& sampling, const Ints& image,
              const Ints& grid)
      : e_(e), sampling_(sampling), image_(image), grid_(grid) {}

  ValueId Sample(ValueId image, ValueId grid) {
    // The grid holds x, along columns, before y.
    const Axis column = MakeAxis(grid, 0, image_[3]);
    const Axis row = MakeAxis(grid, 1, image_[2]);
    const int64_t n = image_[0], c = image_[1];
    // [N, H, W, C], so that a position picks all channels.
    pixels_ = e_.Reshape(e_.Transpose(image, {0, 2, 3, 1}),
                         {n * image_[2] * image_[3], c});
    ValueId sum = kNoValue;
    for (const Tap& y : row.taps) {
      for (const Tap& x : column.taps) {
        const ValueId part = Weighted(y, x);
        sum = sum == kNoValue ? part : e_.Emit("Add", {sum, part});
      }
    }
    return e_.Transpose(e_.Reshape(sum, {n, grid_[1], grid_[2], c}),
                        {0, 3, 1, 2});
  }

 private:
  struct Tap {
    ValueId position = kNoValue;  // i64, inside the axis; [N, H, W]
    ValueId weight = kNoValue;    // f32, or none: 1
  };
  struct Axis {
    std::vector<Tap> taps;
  };

  ValueId Pointwise(const char* op, ValueId a, double b) {
    return e_.Emit(op, {a, e_.Number(b)});
  }

  // Element `part` of each pair of the grid, in elements of an axis.
  Axis MakeAxis(ValueId grid, int64_t part, int64_t size) {
    const double n = static_cast<double>(size);
    ValueId at = e_.Emit("Slice", {grid},
                         {{"starts", Ints{part}},
                          {"ends", Ints{part + 1}},
                          {"axes", Ints{3}},
                          {"steps", Ints{1}}});
    at = e_.Reshape(at, {grid_[0], grid_[1], grid_[2]});
    at = Pointwise("Add", at, 1);
    at = sampling_.align_corners
             ? Pointwise("Mul", at, (n - 1) / 2)
             : Pointwise("Sub", Pointwise("Mul", at, n / 2), 0.5);
    if (sampling_.padding == "border") {
      at = e_.Emit("Clip", {at}, {{"min", 0.0}, {"max", n - 1}});
    }
    if (sampling_.mode == "nearest") {
      return {{TapAt(e_.Emit("Round", {at}), kNoValue, n)}};
    }
    const ValueId first = e_.Emit("Floor", {at});
    const ValueId rest = e_.Emit("Sub", {at, first});
    const ValueId before = e_.Emit("Sub", {e_.Number(1), rest});
    return {
        {TapAt(first, before, n), TapAt(Pointwise("Add", first, 1), rest, n)}};
  }

  // Beyond the axis the weight is 0, and the position its nearest element.
  Tap TapAt(ValueId place, ValueId weight, double n) {
    const ValueId inside =
        e_.Emit("Clip", {place}, {{"min", 0.0}, {"max", n - 1}});
    const ValueId same =
        e_.Cast(e_.Emit("Equal", {inside, place}), DType::kF32);
    return {e_.Cast(inside, DType::kI64),
            weight == kNoValue ? same : e_.Emit("Mul", {weight, same})};
  }

  ValueId Weighted(const Tap& row, const Tap& column) {
    const auto scaled = [this](ValueId x, int64_t by) {
      return e_.Emit("Mul",
                     {x, e_.Number(static_cast<double>(by), DType::kI64)});
    };
    std::vector<int64_t> images;
    for (int64_t i = 0; i < image_[0]; ++i) {
      images.push_back(i * image_[2] * image_[3]);
    }
    ValueId at =
        e_.Emit("Add", {scaled(row.position, image_[3]), column.position});
    at = e_.Emit("Add",
                 {at, e_.Constant(MakeTensor({DType::kI64, {image_[0], 1, 1}},
                                             images.data()))});
    const int64_t count = grid_[0] * grid_[1] * grid_[2];
    const ValueId picked = e_.Emit("Gather", {pixels_, e_.Reshape(at, {count})},
                                   {{"axis", int64_t{0}}});
    const ValueId weight = e_.Emit("Mul", {row.weight, column.weight});
    return e_.Emit("Mul", {picked, e_.Reshape(weight, {count, 1})});
  }

  Emitter& e_;
  const Sampling& sampling_;
  const Ints image_;  // [N, C, H, W]
  const Ints grid_;   // [N, H', W', 2]
  ValueId pixels_ = kNoValue;
};

absl::Status GridSample(Importer& importer, const onnx::NodeProto& node) {
  Sampling sampling;
  sampling.mode = StringAttribute(node, "mode", "linear");
  if (sampling.mode == "bilinear") sampling.mode = "linear";  // opset 16
  sampling.padding = StringAttribute(node, "padding_mode", "zeros");
  sampling.align_corners = IntAttribute(node, "align_corners", 0) != 0;
  const Ints image = importer.Type(node, 0).dims;
  const Ints grid = importer.Type(node, 1).dims;
  if (sampling.mode != "linear" && sampling.mode != "nearest") {
    importer.Unsupported(node, "with mode " + sampling.mode);
    return absl::OkStatus();
  }
  if (sampling.padding != "zeros" && sampling.padding != "border") {
    importer.Unsupported(node, "with padding_mode " + sampling.padding);
    return absl::OkStatus();
  }
  if (image.size() != 4) {
    importer.Unsupported(node, "of other than images");
    return absl::OkStatus();
  }
  if (grid.size() != 4 || grid[0] != image[0] || grid[3] != 2 || image[2] < 1 ||
      image[3] < 1) {
    return absl::InvalidArgumentError("its grid does not fit its images");
  }
  Emitter e(importer, node);
  const ValueId x = e.Input(0), positions = e.Input(1);
  return e.Define(0,
                  GridSampler(e, sampling, image, grid).Sample(x, positions));
}

}  // namespace

const std::map<std::string, Rule>& GridSampleRules() {
  static const auto* const kRules =
      new std::map<std::string, Rule>{{"GridSample", GridSample}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
