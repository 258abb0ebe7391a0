// The rules for DFT and STFT: a product with a constant matrix of cosines and
// sines, so its cost grows with the square of the length. Tested in
// tests/conformance/imported_operators_test.cc and onnx_node_test.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/emitter.h"
#include "models/onnx/importer.h"
#include "models/onnx/movement.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

// A transform of lines of `in` numbers with `parts` each: 1 for real numbers, 2
// for real and imaginary parts. Further numbers up to `length` are 0, and those
// from `length` on are not read.
struct Transform {
  int64_t in = 0;
  int64_t parts = 1;
  int64_t length = 0;
  int64_t out = 0;  // frequencies
  int64_t out_parts = 2;
  bool inverse = false;
  // Inverse: `in` are the frequencies up to half of the length, and those
  // beyond are their conjugates, so that the result is real.
  bool half = false;
  std::vector<float> window;  // by which the numbers are multiplied; or empty
};

double Window(const Transform& transform, int64_t i) {
  return transform.window.empty() ? 1
                                  : transform.window[static_cast<size_t>(i)];
}

// How often the number i is read.
double Count(const Transform& t, int64_t i) {
  return t.half && i > 0 && 2 * i != t.length ? 2 : 1;
}

// Of [in * parts, out * out_parts], for lines as rows.
Tensor Matrix(const Transform& t) {
  const int64_t columns = t.out * t.out_parts;
  std::vector<float> matrix(static_cast<size_t>(t.in * t.parts * columns));
  const double sign = t.inverse ? 1 : -1;
  const double factor = t.inverse ? 1.0 / static_cast<double>(t.length) : 1.0;
  const int64_t read = t.half ? t.length / 2 + 1 : t.length;
  for (int64_t i = 0; i < std::min(t.in, read); ++i) {
    for (int64_t k = 0; k < t.out; ++k) {
      // Exact for long lines: the angle's turns are whole.
      const double turn =
          static_cast<double>(i * k % t.length) / static_cast<double>(t.length);
      const double angle = sign * 2 * std::numbers::pi * turn;
      const double weight = factor * Count(t, i) * Window(t, i);
      const double cosine = weight * std::cos(angle);
      const double sine = weight * std::sin(angle);
      // (a + b i) (cosine + sine i), one row for a and one for b.
      const double rows[2][2] = {{cosine, sine}, {-sine, cosine}};
      for (int64_t from = 0; from < t.parts; ++from) {
        for (int64_t to = 0; to < t.out_parts; ++to) {
          matrix[static_cast<size_t>((i * t.parts + from) * columns +
                                     k * t.out_parts + to)] =
              static_cast<float>(rows[from][to]);
        }
      }
    }
  }
  return MakeTensor({DType::kF32, {t.in * t.parts, columns}}, matrix.data());
}

// What ONNX's scalars hold: a number, or a tensor of one.
absl::StatusOr<int64_t> ConstantInt(const Importer& importer,
                                    const onnx::NodeProto& node, int i) {
  LOADLINE_ASSIGN_OR_RETURN(Ints numbers, importer.ConstantInts(node, i));
  if (numbers.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " is not one number"));
  }
  return numbers[0];
}

absl::Status CheckSizes(const Transform& t) {
  if (t.in < 1 || t.length < 1 || t.length > kMaxAxis) {
    return absl::InvalidArgumentError(absl::StrCat(
        "transforms ", t.in, " numbers into a transform of ", t.length));
  }
  return absl::OkStatus();
}

bool IsTooLong(const Transform& t) {
  return t.in * t.parts > kMaxConstant / (t.out * t.out_parts);
}

// Lines along the axis before the last, which has the parts.
absl::Status Dft(Importer& importer, const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  Transform t;
  t.parts = dims.empty() ? 0 : dims.back();
  t.inverse = IntAttribute(node, "inverse", 0) != 0;
  const bool onesided = IntAttribute(node, "onesided", 0) != 0;
  int64_t axis = -2;  // opset 17's attribute has become an input
  if (importer.Has(node, 2)) {
    LOADLINE_ASSIGN_OR_RETURN(axis, ConstantInt(importer, node, 2));
  }
  if (axis < 0) axis += rank;
  if (rank < 2 || axis < 0 || axis >= rank - 1 || t.parts < 1 || t.parts > 2) {
    return absl::InvalidArgumentError(
        "needs an axis before the last, which has one or two parts");
  }
  t.in = dims[static_cast<size_t>(axis)];
  t.half = onesided && t.inverse;
  t.length = t.half ? 2 * (t.in - 1) : t.in;
  if (importer.Has(node, 1)) {
    LOADLINE_ASSIGN_OR_RETURN(t.length, ConstantInt(importer, node, 1));
  }
  LOADLINE_RETURN_IF_ERROR(CheckSizes(t));
  t.out = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  t.out_parts = t.half ? 1 : 2;
  if (IsTooLong(t)) {
    importer.Unsupported(node, "of so many elements");
    return absl::OkStatus();
  }
  Emitter e(importer, node);
  ValueId x = e.Input(0);
  // The axis changes places with that before the parts, and back.
  Ints perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(axis)], perm[dims.size() - 2]);
  const bool moves = axis != rank - 2;
  if (moves) x = e.Transpose(x, perm);
  Ints lines;  // all axes but those two
  for (size_t i = 0; i + 2 < perm.size(); ++i) {
    lines.push_back(dims[static_cast<size_t>(perm[i])]);
  }
  Ints flat = lines;
  flat.push_back(t.in * t.parts);
  x = e.Emit("MatMul", {e.Reshape(x, flat), e.Constant(Matrix(t))},
             {{"exact", int64_t{1}}});
  Ints result = lines;
  result.push_back(t.out);
  result.push_back(t.out_parts);
  x = e.Reshape(x, result);
  if (moves) x = e.Transpose(x, perm);
  return e.Define(0, x);
}

// Positions of all frames, one frame after the other.
Ints FramePositions(int64_t frames, int64_t step, int64_t length) {
  Ints positions;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t i = 0; i < length; ++i) positions.push_back(frame * step + i);
  }
  return positions;
}

// A signal is [batch, length, parts], also without the parts.
absl::Status Stft(Importer& importer, const onnx::NodeProto& node) {
  const Ints dims = importer.Type(node, 0).dims;
  if (dims.size() < 2 || dims.size() > 3) {
    return absl::InvalidArgumentError("needs a signal of two or three axes");
  }
  Transform t;
  t.parts = dims.size() == 3 ? dims[2] : 1;
  LOADLINE_ASSIGN_OR_RETURN(const int64_t step, ConstantInt(importer, node, 1));
  t.length = dims[1];
  if (importer.Has(node, 2)) {
    if (!importer.IsConstant(node, 2) ||
        importer.Type(node, 2).dtype != DType::kF32) {
      importer.Unsupported(node, "with a window that is computed or trained");
      return absl::OkStatus();
    }
    const auto window = importer.Input(node, 2).constant->as<float>();
    t.window.assign(window.begin(), window.end());
    t.length = static_cast<int64_t>(t.window.size());
  }
  if (importer.Has(node, 3)) {
    LOADLINE_ASSIGN_OR_RETURN(t.length, ConstantInt(importer, node, 3));
  }
  t.in = t.length;
  LOADLINE_RETURN_IF_ERROR(CheckSizes(t));
  t.out = IntAttribute(node, "onesided", 1) != 0 ? t.length / 2 + 1 : t.length;
  if (step < 1 || t.length > dims[1] || t.parts < 1 || t.parts > 2 ||
      (!t.window.empty() && std::ssize(t.window) != t.length)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cuts frames of ", t.length, " every ", step,
                     " from a signal of ", dims[1]));
  }
  const int64_t frames = (dims[1] - t.length) / step + 1;
  if (IsTooLong(t) || frames > kMaxConstant / t.length) {
    importer.Unsupported(node, "of so many elements");
    return absl::OkStatus();
  }
  LOADLINE_ASSIGN_OR_RETURN(ValueId x, importer.Use(node, 0));
  LOADLINE_ASSIGN_OR_RETURN(
      x, EmitTake(importer, node, x, 1, FramePositions(frames, step, t.in)));
  Emitter e(importer, node);
  x = e.Reshape(x, {dims[0], frames, t.in * t.parts});
  x = e.Emit("MatMul", {x, e.Constant(Matrix(t))}, {{"exact", int64_t{1}}});
  return e.Define(0, e.Reshape(x, {dims[0], frames, t.out, t.out_parts}));
}

}  // namespace

const std::map<std::string, Rule>& FourierRules() {
  static const auto* const kRules =
      new std::map<std::string, Rule>{{"DFT", Dft}, {"STFT", Stft}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
