// A resized axis is a linear map of the input axis, with one sparse row per
// output element. Tested in tests/models/onnx_resample_test.cc.
#include "models/onnx/resample.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"

namespace loadline::models::onnx_internal {
namespace {

// Position in the input axis of output element i.
double Position(const Resampling& r, int64_t i, int64_t in, int64_t out,
                double scale) {
  const double x = static_cast<double>(i);
  const double half_pixel = (x + 0.5) / scale - 0.5;
  if (r.coordinates == "asymmetric") return x / scale;
  if (r.coordinates == "align_corners") {
    return out == 1
               ? 0
               : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  }
  if (r.coordinates == "pytorch_half_pixel") return out > 1 ? half_pixel : 0;
  if (r.coordinates == "half_pixel_symmetric") {
    const double size = static_cast<double>(in);
    const double adjustment = static_cast<double>(out) / (scale * size);
    return size / 2 * (1 - adjustment) + half_pixel;
  }
  return half_pixel;
}

double Nearest(const Resampling& r, double position) {
  if (r.nearest_mode == "floor") return std::floor(position);
  if (r.nearest_mode == "ceil") return std::ceil(position);
  return r.nearest_mode == "round_prefer_ceil" ? std::floor(position + 0.5)
                                               : std::ceil(position - 0.5);
}

// Keys' cubic convolution, IEEE Transactions on Acoustics, Speech, and Signal
// Processing 29 (1981), at a distance >= 0.
double Cubic(double a, double d) {
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// Weights of the elements floor(position) - reach + 1 ... floor(position) +
// reach. Antialiasing stretches the filter over as many elements as one of the
// output stands for.
std::vector<Tap> Mixed(const Resampling& r, double position, int64_t in,
                       double scale) {
  const bool cubic = r.mode == "cubic";
  const double shrink = r.antialias ? std::min(scale, 1.0) : 1.0;
  const int64_t reach =
      static_cast<int64_t>(std::ceil((cubic ? 2.0 : 1.0) / shrink));
  const int64_t base = static_cast<int64_t>(std::floor(position));
  std::vector<Tap> taps;
  double sum = 0;
  for (int64_t i = base - reach + 1; i <= base + reach; ++i) {
    const double distance =
        shrink * std::abs(position - static_cast<double>(i));
    const bool outside = i < 0 || i >= in;
    const bool excluded =
        outside && r.exclude_outside && (cubic || r.antialias);
    const double weight = excluded ? 0
                          : cubic  ? Cubic(r.cubic_coeff_a, distance)
                                   : std::max(0.0, 1 - distance);
    sum += weight;
    taps.push_back({std::clamp<int64_t>(i, 0, in - 1), weight});
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

}  // namespace

absl::Status CheckResampling(const Resampling& r) {
  static const auto* const kKnown =
      new std::set<std::string>{"nearest",
                                "linear",
                                "cubic",
                                "half_pixel",
                                "asymmetric",
                                "align_corners",
                                "floor",
                                "pytorch_half_pixel",
                                "ceil",
                                "half_pixel_symmetric",
                                "round_prefer_floor",
                                "round_prefer_ceil"};
  for (const std::string& word : {r.mode, r.coordinates, r.nearest_mode}) {
    if (kKnown->count(word) == 0) {
      return absl::UnimplementedError(absl::StrCat("with ", word));
    }
  }
  return absl::OkStatus();
}

std::vector<std::vector<Tap>> ResampleTaps(const Resampling& r, int64_t in,
                                           int64_t out, double scale) {
  std::vector<std::vector<Tap>> rows;
  for (int64_t i = 0; i < out; ++i) {
    const double position = std::clamp(Position(r, i, in, out, scale), -4.0,
                                       static_cast<double>(in) + 4);
    if (r.mode != "nearest") {
      rows.push_back(Mixed(r, position, in, scale));
      continue;
    }
    const double last = static_cast<double>(in - 1);
    rows.push_back(
        {{static_cast<int64_t>(std::clamp(Nearest(r, position), 0.0, last)),
          1.0}});
  }
  return rows;
}

std::optional<int64_t> RepeatsOf(const std::vector<std::vector<Tap>>& taps,
                                 int64_t in) {
  const int64_t out = static_cast<int64_t>(taps.size());
  if (out % in != 0) return std::nullopt;
  const int64_t repeats = out / in;
  for (int64_t i = 0; i < out; ++i) {
    const std::vector<Tap>& row = taps[static_cast<size_t>(i)];
    if (row.size() != 1 || row[0].from != i / repeats) return std::nullopt;
  }
  return repeats;
}

}  // namespace loadline::models::onnx_internal
