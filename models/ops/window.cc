// Sliding windows. All numbers are limited to less than 2^31, so that products
// fit int64. Tested in tests/models/infer_test.cc.
#include "models/ops/window.h"

#include <limits>

#include "models/ops/check_types.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

absl::StatusOr<Ints> CheckedList(const Node& node, absl::string_view name,
                                 size_t length, int64_t smallest,
                                 const Ints& fallback) {
  Ints list = node.attributes.IntList(name, fallback);
  if (list.size() != length) {
    return Refuse("attribute ", name, " has ", list.size(), " numbers, not ",
                  length);
  }
  for (int64_t number : list) {
    if (number < smallest || number > kLargest) {
      return Refuse("attribute ", name, " has ", number, ", not in ", smallest,
                    " to ", kLargest);
    }
  }
  return list;
}

}  // namespace

absl::StatusOr<Window> CheckedWindow(const Node& node, int64_t spatial,
                                     const std::vector<int64_t>& kernel) {
  if (spatial < 1 || spatial > 3) {
    return Refuse("input 0 has ", spatial,
                  " spatial dimensions; 1 to 3 are supported");
  }
  const size_t n = static_cast<size_t>(spatial);
  Window window;
  LOADLINE_ASSIGN_OR_RETURN(window.kernel,
                            CheckedList(node, "kernel_shape", n, 1, kernel));
  LOADLINE_ASSIGN_OR_RETURN(window.strides,
                            CheckedList(node, "strides", n, 1, Ints(n, 1)));
  LOADLINE_ASSIGN_OR_RETURN(window.dilations,
                            CheckedList(node, "dilations", n, 1, Ints(n, 1)));
  LOADLINE_ASSIGN_OR_RETURN(
      Ints pads, CheckedList(node, "pads", 2 * n, 0, Ints(2 * n, 0)));
  window.pads_begin.assign(pads.begin(), pads.begin() + spatial);
  window.pads_end.assign(pads.begin() + spatial, pads.end());
  return window;
}

absl::StatusOr<std::vector<int64_t>> WindowCounts(
    const Window& window, const std::vector<int64_t>& input, bool ceil_mode) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < input.size(); ++i) {
    if (input[i] > kLargest) {
      return Refuse("spatial dimension ", i, " of ", input[i], " is too large");
    }
    const int64_t padded = window.pads_begin[i] + input[i] + window.pads_end[i];
    const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    if (extent > padded || input[i] == 0) {
      return Refuse("a window of ", extent, " does not fit spatial dimension ",
                    i, " of ", input[i], " padded to ", padded);
    }
    const int64_t stride = window.strides[i];
    const int64_t room = padded - extent;
    int64_t count = room / stride + 1;
    if (ceil_mode && room % stride != 0 &&
        count * stride < input[i] + window.pads_begin[i]) {
      ++count;
    }
    counts.push_back(count);
  }
  return counts;
}

}  // namespace loadline::models
