// The rule for GridSample on images and volumes: positions are computed by
// pointwise operators, elements are picked by Gather from the flat image, and
// mixed by weights. Tested in tests/conformance/imported_operators_test.cc and
// onnx_node_test.cc.
#include <algorithm>
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
  std::string mode;     // "nearest", "linear", "cubic"
  std::string padding;  // "zeros", "border", "reflection"
  bool align_corners = false;
};

// PyTorch's kernel of cubic convolution.
constexpr double kCubic = -0.75;

class GridSampler {
 public:
  GridSampler(Emitter& e, const Sampling& sampling, const Ints& image,
              const Ints& grid)
      : e_(e),
        sampling_(sampling),
        sizes_(image.begin() + 2, image.end()),
        points_(grid.begin(), grid.end() - 1),
        images_(image[0]),
        channels_(image[1]) {}

  ValueId Sample(ValueId image, ValueId grid) {
    const size_t axes = sizes_.size();
    for (size_t axis = 0; axis < axes; ++axis) {
      // The grid holds x, along the last axis, first.
      taps_.push_back(
          TapsOf(grid, static_cast<int64_t>(axes - 1 - axis), sizes_[axis]));
    }
    // [N, sizes..., C], so that a position picks all channels.
    Ints last = {0};
    for (size_t i = 0; i < axes; ++i) {
      last.push_back(static_cast<int64_t>(i) + 2);
    }
    last.push_back(1);
    int64_t pixels = images_;
    for (int64_t size : sizes_) pixels *= size;
    pixels_ = e_.Reshape(e_.Transpose(image, last), {pixels, channels_});
    AddParts(0, ImageNumbers(), kNoValue);
    Ints shape = points_;
    shape.push_back(channels_);
    Ints first = {0, static_cast<int64_t>(axes) + 1};
    for (size_t i = 0; i < axes; ++i) {
      first.push_back(static_cast<int64_t>(i) + 1);
    }
    return e_.Transpose(e_.Reshape(sum_, shape), first);
  }

 private:
  // An element of an axis for each point, and its share.
  struct Tap {
    ValueId position = kNoValue;  // i64, inside the axis; [N, points...]
    ValueId weight = kNoValue;    // f32
  };

  ValueId Pointwise(const char* op, ValueId a, double b) {
    return e_.Emit(op, {a, e_.Number(b)});
  }

  // Component `part` of the grid in elements of an axis of `size`.
  ValueId Place(ValueId grid, int64_t part, double size) {
    ValueId at = e_.Emit("Slice", {grid},
                         {{"starts", Ints{part}},
                          {"ends", Ints{part + 1}},
                          {"axes", Ints{static_cast<int64_t>(points_.size())}},
                          {"steps", Ints{1}}});
    at = Pointwise("Add", e_.Reshape(at, points_), 1);
    return sampling_.align_corners
               ? Pointwise("Mul", at, (size - 1) / 2)
               : Pointwise("Sub", Pointwise("Mul", at, size / 2), 0.5);
  }

  // Places beyond the axis as the padding says; "zeros" changes nothing.
  ValueId Padded(ValueId at, double size) {
    if (sampling_.padding == "zeros") return at;
    if (sampling_.padding == "reflection") at = Reflected(at, size);
    return e_.Emit("Clip", {at}, {{"min", 0.0}, {"max", size - 1}});
  }

  // Back and forth between the ends: the centers of the elements at the ends
  // with align_corners, else their outer edges.
  ValueId Reflected(ValueId at, double size) {
    const double low = sampling_.align_corners ? 0 : -0.5;
    const double span = sampling_.align_corners ? size - 1 : size;
    if (span == 0) return at;  // one element, to which Clip takes all
    const ValueId away = e_.Emit("Abs", {Pointwise("Sub", at, low)});
    const ValueId there = Pointwise("Fmod", away, 2 * span);
    const ValueId back = e_.Emit("Sub", {e_.Number(2 * span), there});
    const ValueId nearer = e_.Emit("Less", {back, there});
    return Pointwise("Add", e_.Emit("Where", {nearer, back, there}), low);
  }

  std::vector<Tap> TapsOf(ValueId grid, int64_t part, int64_t elements) {
    const double size = static_cast<double>(elements);
    ValueId at = Place(grid, part, size);
    if (sampling_.mode == "cubic") return CubicTaps(at, size);
    at = Padded(at, size);
    if (sampling_.mode == "nearest") {
      return {TapAt(e_.Emit("Round", {at}), kNoValue, size)};
    }
    const ValueId first = e_.Emit("Floor", {at});
    const ValueId rest = e_.Emit("Sub", {at, first});
    const ValueId before = e_.Emit("Sub", {e_.Number(1), rest});
    return {TapAt(first, before, size),
            TapAt(Pointwise("Add", first, 1), rest, size)};
  }

  // The two elements on each side; each is padded by itself.
  std::vector<Tap> CubicTaps(ValueId at, double size) {
    const ValueId first = e_.Emit("Floor", {at});
    const ValueId rest = e_.Emit("Sub", {at, first});
    std::vector<Tap> taps;
    for (int i = -1; i <= 2; ++i) {
      // Its distance: rest + 1, rest, 1 - rest, 2 - rest.
      const ValueId distance = i <= 0 ? Pointwise("Sub", rest, i)
                                      : e_.Emit("Sub", {e_.Number(i), rest});
      const bool near = i == 0 || i == 1;
      taps.push_back(TapAt(Padded(Pointwise("Add", first, i), size),
                           near ? NearShare(distance) : FarShare(distance),
                           size));
    }
    return taps;
  }

  // ((a + 2) d - (a + 3)) d d + 1
  ValueId NearShare(ValueId d) {
    const ValueId inner =
        Pointwise("Sub", Pointwise("Mul", d, kCubic + 2), kCubic + 3);
    return Pointwise("Add", e_.Emit("Mul", {e_.Emit("Mul", {inner, d}), d}), 1);
  }

  // ((a d - 5 a) d + 8 a) d - 4 a
  ValueId FarShare(ValueId d) {
    ValueId share = Pointwise("Sub", Pointwise("Mul", d, kCubic), 5 * kCubic);
    share = Pointwise("Add", e_.Emit("Mul", {share, d}), 8 * kCubic);
    return Pointwise("Sub", e_.Emit("Mul", {share, d}), 4 * kCubic);
  }

  // Beyond the axis the weight is 0, and the position its nearest element.
  Tap TapAt(ValueId place, ValueId weight, double size) {
    const ValueId inside =
        e_.Emit("Clip", {place}, {{"min", 0.0}, {"max", size - 1}});
    const ValueId same =
        e_.Cast(e_.Emit("Equal", {inside, place}), DType::kF32);
    return {e_.Cast(inside, DType::kI64),
            weight == kNoValue ? same : e_.Emit("Mul", {weight, same})};
  }

  ValueId ImageNumbers() {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < images_; ++i) numbers.push_back(i);
    Ints column(points_.size(), 1);
    column[0] = images_;
    return e_.Constant(MakeTensor({DType::kI64, column}, numbers.data()));
  }

  // Adds what every choice of taps of the axes from `axis` on contributes.
  // `row` is the flat position along the axes before, `weight` their share.
  void AddParts(size_t axis, ValueId row, ValueId weight) {
    if (axis == taps_.size()) {
      int64_t count = 1;
      for (int64_t points : points_) count *= points;
      const ValueId picked =
          e_.Emit("Gather", {pixels_, e_.Reshape(row, {count})},
                  {{"axis", int64_t{0}}});
      const ValueId part =
          e_.Emit("Mul", {picked, e_.Reshape(weight, {count, 1})});
      sum_ = sum_ == kNoValue ? part : e_.Emit("Add", {sum_, part});
      return;
    }
    const ValueId size =
        e_.Number(static_cast<double>(sizes_[axis]), DType::kI64);
    const ValueId start = e_.Emit("Mul", {row, size});
    for (const Tap& tap : taps_[axis]) {
      AddParts(axis + 1, e_.Emit("Add", {start, tap.position}),
               weight == kNoValue ? tap.weight
                                  : e_.Emit("Mul", {weight, tap.weight}));
    }
  }

  Emitter& e_;
  const Sampling& sampling_;
  const Ints sizes_;   // of an image, without batch and channels
  const Ints points_;  // [N, points...] of the grid
  const int64_t images_;
  const int64_t channels_;
  std::vector<std::vector<Tap>> taps_;  // by axis
  ValueId pixels_ = kNoValue;
  ValueId sum_ = kNoValue;
};

absl::Status GridSample(Importer& importer, const onnx::NodeProto& node) {
  Sampling sampling;
  sampling.mode = StringAttribute(node, "mode", "linear");
  if (sampling.mode == "bilinear") sampling.mode = "linear";  // opset 16
  if (sampling.mode == "bicubic") sampling.mode = "cubic";
  sampling.padding = StringAttribute(node, "padding_mode", "zeros");
  sampling.align_corners = IntAttribute(node, "align_corners", 0) != 0;
  const Ints image = importer.Type(node, 0).dims;
  const Ints grid = importer.Type(node, 1).dims;
  if (sampling.mode != "linear" && sampling.mode != "nearest" &&
      sampling.mode != "cubic") {
    importer.Unsupported(node, "with mode " + sampling.mode);
    return absl::OkStatus();
  }
  if (sampling.padding != "zeros" && sampling.padding != "border" &&
      sampling.padding != "reflection") {
    importer.Unsupported(node, "with padding_mode " + sampling.padding);
    return absl::OkStatus();
  }
  if (image.size() < 3 || grid.size() != image.size() || grid[0] != image[0] ||
      grid.back() != static_cast<int64_t>(image.size()) - 2 ||
      std::any_of(image.begin() + 2, image.end(),
                  [](int64_t size) { return size < 1; })) {
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
