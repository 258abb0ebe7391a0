// Sliding windows over one or two spatial dimensions, as convolutions and pools
// use them.
#ifndef LOADLINE_MODELS_OPS_WINDOW_H_
#define LOADLINE_MODELS_OPS_WINDOW_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/ops/operator.h"

namespace loadline::models {

// All lists have one entry per spatial dimension.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;     // 1 where the attribute is absent
  std::vector<int64_t> dilations;   // the same
  std::vector<int64_t> pads_begin;  // 0 where absent
  std::vector<int64_t> pads_end;
};

// Reads kernel_shape (or `kernel` where absent), strides, pads and dilations
// for `spatial` dimensions. InvalidArgument unless spatial is 1 or 2, every
// list has its length and every number lies in its range (below 2^31).
absl::StatusOr<Window> CheckedWindow(const Node& node, int64_t spatial,
                                     const std::vector<int64_t>& kernel);

// How many windows fit along each dimension of `input`; at least 1, else
// InvalidArgument. With `ceil_mode`, a last window may leave the padded input
// as long as it starts inside the input or its padding before.
absl::StatusOr<std::vector<int64_t>> WindowCounts(
    const Window& window, const std::vector<int64_t>& input, bool ceil_mode);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_WINDOW_H_
