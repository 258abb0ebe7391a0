// Windows of 1-d and 2-d pooling, shared by all devices. A 1-d image is a plane
// of one row.
#ifndef LOADLINE_EXECUTOR_OPS_POOL_WINDOW_H_
#define LOADLINE_EXECUTOR_OPS_POOL_WINDOW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "executor/ops/prepare.h"
#include "models/host_device.h"

namespace loadline::executor {

// One spatial dimension. 32-bit numbers, because a GPU divides them much
// faster.
struct PoolAxis {
  int32_t in = 1, out = 1;
  int32_t kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;

  LOADLINE_HOST_DEVICE int32_t First(int32_t o) const {
    return o * stride - pad_begin;
  }
  // Kernel positions [begin, end) of output o that lie inside the image.
  LOADLINE_HOST_DEVICE int32_t Begin(int32_t o) const {
    const int32_t first = First(o);
    return first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  }
  LOADLINE_HOST_DEVICE int32_t End(int32_t o) const {
    const int32_t last = in - First(o);
    if (last <= 0) return 0;
    const int32_t fitting = (last + dilation - 1) / dilation;
    return fitting < kernel ? fitting : kernel;
  }
  // Number of kernel positions inside image and padding. Positions beyond the
  // padding, which ceil_mode allows, do not count.
  LOADLINE_HOST_DEVICE int32_t Padded(int32_t o) const {
    const int32_t last = in + pad_end - First(o);
    const int32_t fitting = (last + dilation - 1) / dilation;
    return fitting < kernel ? fitting : kernel;
  }
  // Range [first, end) of the outputs whose windows can cover image position i.
  LOADLINE_HOST_DEVICE int32_t FirstCovering(int32_t i) const {
    const int32_t past = i + pad_begin - (kernel - 1) * dilation;
    return past <= 0 ? 0 : (past + stride - 1) / stride;
  }
  LOADLINE_HOST_DEVICE int32_t EndCovering(int32_t i) const {
    const int32_t end = (i + pad_begin) / stride + 1;
    return end < out ? end : out;
  }
  // Whether output o's window covers position i, for o in that range.
  LOADLINE_HOST_DEVICE bool Covers(int32_t o, int32_t i) const {
    return (i - First(o)) % dilation == 0;
  }
};

struct Pool {
  int64_t planes;
  PoolAxis h, w;
  bool count_padding;

  LOADLINE_HOST_DEVICE int64_t in_plane() const { return int64_t{h.in} * w.in; }
  LOADLINE_HOST_DEVICE int64_t out_plane() const {
    return int64_t{h.out} * w.out;
  }
};

// Windows of a pooling node. Unimplemented: images that are neither 1-d nor
// 2-d. InvalidArgument: a padded plane with 2^31 elements or more.
absl::StatusOr<Pool> MakePool(const Prepare& p, const TensorType& x,
                              const TensorType& y);

// Calls body(position in the plane) for the image positions of one window.
template <typename Body>
LOADLINE_HOST_DEVICE void ForPositions(const Pool& pool, int32_t oh, int32_t ow,
                                       const Body& body) {
  const int32_t h_end = pool.h.End(oh);
  const int32_t w_begin = pool.w.Begin(ow);
  const int32_t w_end = pool.w.End(ow);
  for (int32_t kh = pool.h.Begin(oh); kh < h_end; ++kh) {
    const int32_t row = (pool.h.First(oh) + kh * pool.h.dilation) * pool.w.in;
    for (int32_t kw = w_begin; kw < w_end; ++kw) {
      body(row + pool.w.First(ow) + kw * pool.w.dilation);
    }
  }
}

// The divisor of an average.
LOADLINE_HOST_DEVICE inline int32_t Divisor(const Pool& pool, int32_t oh,
                                            int32_t ow) {
  if (pool.count_padding) return pool.h.Padded(oh) * pool.w.Padded(ow);
  return (pool.h.End(oh) - pool.h.Begin(oh)) *
         (pool.w.End(ow) - pool.w.Begin(ow));
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_POOL_WINDOW_H_
