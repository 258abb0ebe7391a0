// Which elements of an axis ONNX's Resize mixes into each element of the
// result, and with what weights.
#ifndef LOADLINE_MODELS_ONNX_RESAMPLE_H_
#define LOADLINE_MODELS_ONNX_RESAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/attributes.h"

namespace loadline::models::onnx_internal {

// Attributes of a Resize node, by ONNX's names and defaults.
struct Resampling {
  std::string mode = "nearest";  // or "linear", "cubic"
  std::string coordinates = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false;  // cubic: weights of what is outside are 0
};

// Unimplemented, saying what: a mode that is not listed above,
// "tf_crop_and_resize".
absl::Status CheckResampling(const Resampling& resampling);

struct Tap {
  int64_t from = 0;  // 0 <= from < in
  double weight = 0;
};

// For each of `out` elements, the elements of an axis of `in` that it is made
// of; positions beyond the axis are its first or last element. ONNX, operator
// Resize. `scale`: out / in, or what the node gives instead. CheckResampling
// has passed; in, out >= 1, scale > 0.
std::vector<std::vector<Tap>> ResampleTaps(const Resampling& resampling,
                                           int64_t in, int64_t out,
                                           double scale);

// r where every element is simply repeated r times.
std::optional<int64_t> RepeatsOf(const std::vector<std::vector<Tap>>& taps,
                                 int64_t in);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_RESAMPLE_H_
