// Sliding windows over one to three spatial dimensions, for convolutions and
// pools.
#ifndef LOADLINE_MODELS_OPS_WINDOW_H_
#define LOADLINE_MODELS_OPS_WINDOW_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/ops/operator.h"

namespace loadline::models {

// Each list has one entry per spatial dimension.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;     // default 1
  std::vector<int64_t> dilations;   // default 1
  std::vector<int64_t> pads_begin;  // default 0
  std::vector<int64_t> pads_end;
};

// Reads kernel_shape (or `kernel` if absent), strides, pads and dilations for
// `spatial` dimensions. InvalidArgument unless spatial is 1 to 3, every list
// has that length and every number is in its range (below 2^31).
absl::StatusOr<Window> CheckedWindow(const Node& node, int64_t spatial,
                                     const std::vector<int64_t>& kernel);

// Number of windows along each dimension of `input`, at least 1, else
// InvalidArgument. With `ceil_mode` a last window may extend beyond the padded
// input if it starts inside the input or its leading padding.
absl::StatusOr<std::vector<int64_t>> WindowCounts(
    const Window& window, const std::vector<int64_t>& input, bool ceil_mode);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_WINDOW_H_
