// Which elements of an axis ONNX's Resize combines into each output element,
// and with what weights.
#ifndef LOADLINE_MODELS_ONNX_RESAMPLE_H_
#define LOADLINE_MODELS_ONNX_RESAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/attributes.h"

namespace loadline::models::onnx_internal {

// Attributes of a Resize node, with ONNX's names and defaults.
struct Resampling {
  std::string mode = "nearest";  // or "linear", "cubic"
  std::string coordinates = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  double cubic_coeff_a = -0.75;
  // Positions outside have weight 0; cubic, or with antialias.
  bool exclude_outside = false;
  bool antialias = false;  // linear, cubic: wider filters where it shrinks
};

// Unimplemented, naming it: a mode that is not listed above, or
// "tf_crop_and_resize".
absl::Status CheckResampling(const Resampling& resampling);

struct Tap {
  int64_t from = 0;  // 0 <= from < in
  double weight = 0;
};

// For each of `out` elements, the elements of an axis of `in` that it combines;
// positions beyond the axis use its first or last element. See ONNX, operator
// Resize. `scale`: out / in, or the node's own. Requires CheckResampling, in,
// out >= 1 and scale > 0.
std::vector<std::vector<Tap>> ResampleTaps(const Resampling& resampling,
                                           int64_t in, int64_t out,
                                           double scale);

// r if every element is simply repeated r times; otherwise none.
std::optional<int64_t> RepeatsOf(const std::vector<std::vector<Tap>>& taps,
                                 int64_t in);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_RESAMPLE_H_
