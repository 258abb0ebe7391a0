// Reads the attributes of pooling nodes. Tested in tests/conformance/.
#include "executor/ops/pool_window.h"

#include <array>
#include <limits>

#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// One dimension of a plane, in the order of PoolAxis' fields.
absl::StatusOr<PoolAxis> MakeAxis(const Prepare& p,
                                  const std::array<int64_t, 7>& fields) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  std::array<int32_t, 7> narrow;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] < 0 || fields[i] > kMost) {
      return p.Invalid("a window beyond 2^31 - 1");
    }
    narrow[i] = static_cast<int32_t>(fields[i]);
  }
  const auto& [in, out, kernel, stride, dilation, begin, end] = narrow;
  // The window's whole reach; with this limit no sum below overflows.
  if (int64_t{in} + begin + end + stride + int64_t{kernel} * dilation > kMost) {
    return p.Invalid("a window beyond 2^31 - 1");
  }
  return PoolAxis{in, out, kernel, stride, dilation, begin, end};
}

}  // namespace

absl::StatusOr<Pool> MakePool(const Prepare& p, const TensorType& x,
                              const TensorType& y) {
  const size_t spatial = x.dims.size() - 2;
  if (x.rank() < 3 || x.rank() > 4) {
    return absl::UnimplementedError(p.node().op +
                                    " takes 1-d and 2-d images only (node " +
                                    p.node().name + ")");
  }
  const Ints kernel = p.attributes().IntList("kernel_shape");
  const Ints strides = p.attributes().IntList("strides", Ints(spatial, 1));
  const Ints dilations = p.attributes().IntList("dilations", Ints(spatial, 1));
  const Ints pads = p.attributes().IntList("pads", Ints(2 * spatial, 0));
  if (kernel.size() != spatial || strides.size() != spatial ||
      dilations.size() != spatial || pads.size() != 2 * spatial) {
    return p.Invalid("kernel_shape, strides, dilations or pads do not fit");
  }
  Pool pool{x.dims[0] * x.dims[1],
            {},
            {},
            p.attributes().Int("count_include_pad", 0) != 0};
  for (size_t d = 0; d < spatial; ++d) {
    PoolAxis& axis = d + 1 == spatial ? pool.w : pool.h;
    LOADLINE_ASSIGN_OR_RETURN(
        axis, MakeAxis(p, {x.dims[2 + d], y.dims[2 + d], kernel[d], strides[d],
                           dilations[d], pads[d], pads[spatial + d]}));
  }
  if (pool.in_plane() > std::numeric_limits<int32_t>::max()) {
    return p.Invalid("a plane of more than 2^31 - 1 elements");
  }
  return pool;
}

}  // namespace loadline::executor
