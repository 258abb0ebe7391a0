// Max and average pooling, 1-d and 2-d, plane by plane; a 1-d image is a plane
// of one row. Tested in tests/conformance/.
#include <cmath>
#include <cstring>
#include <limits>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// One spatial dimension.
struct Axis {
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;

  int64_t First(int64_t o) const { return o * stride - pad_begin; }
  // Kernel positions [begin, end) of output o that lie inside the image.
  int64_t Begin(int64_t o) const {
    const int64_t first = First(o);
    return first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  }
  int64_t End(int64_t o) const {
    const int64_t last = in - First(o);
    if (last <= 0) return 0;
    return std::min(kernel, (last + dilation - 1) / dilation);
  }
  // Kernel positions inside image and padding: a window that ceil_mode lets
  // hang over the end does not count what hangs over.
  int64_t Padded(int64_t o) const {
    const int64_t last = in + pad_end - First(o);
    return std::min(kernel, (last + dilation - 1) / dilation);
  }
};

struct Pool {
  int64_t planes;
  Axis h, w;
  bool count_padding;

  int64_t in_plane() const { return h.in * w.in; }
  int64_t out_plane() const { return h.out * w.out; }
};

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
    Axis& axis = d + 1 == spatial ? pool.w : pool.h;
    axis = {x.dims[2 + d], y.dims[2 + d], kernel[d],        strides[d],
            dilations[d],  pads[d],       pads[spatial + d]};
  }
  return pool;
}

// body(oh, ow) for one plane of outputs.
template <typename Body>
void ForWindows(const Pool& pool, const Body& body) {
  for (int64_t oh = 0; oh < pool.h.out; ++oh) {
    for (int64_t ow = 0; ow < pool.w.out; ++ow) body(oh, ow);
  }
}

// body(position in the plane) for the image positions of one window.
template <typename Body>
void ForPositions(const Pool& pool, int64_t oh, int64_t ow, const Body& body) {
  const int64_t h_end = pool.h.End(oh);
  const int64_t w_begin = pool.w.Begin(ow);
  const int64_t w_end = pool.w.End(ow);
  for (int64_t kh = pool.h.Begin(oh); kh < h_end; ++kh) {
    const int64_t row = (pool.h.First(oh) + kh * pool.h.dilation) * pool.w.in;
    for (int64_t kw = w_begin; kw < w_end; ++kw) {
      body(row + pool.w.First(ow) + kw * pool.w.dilation);
    }
  }
}

// Elements an average divides by.
int64_t Divisor(const Pool& pool, int64_t oh, int64_t ow) {
  if (pool.count_padding) return pool.h.Padded(oh) * pool.w.Padded(ow);
  return (pool.h.End(oh) - pool.h.Begin(oh)) *
         (pool.w.End(ow) - pool.w.Begin(ow));
}

// The first largest element wins, and a NaN wins over everything.
void MaxPlane(const Pool& pool, const float* x, float* y, int32_t* argmax) {
  ForWindows(pool, [&](int64_t oh, int64_t ow) {
    float best = -std::numeric_limits<float>::infinity();
    int64_t where = -1;
    ForPositions(pool, oh, ow, [&](int64_t at) {
      if (where < 0 || x[at] > best || std::isnan(x[at])) {
        best = x[at];
        where = at;
      }
    });
    y[oh * pool.w.out + ow] = best;
    argmax[oh * pool.w.out + ow] = static_cast<int32_t>(where);
  });
}

PreparedKernel MaxPool(const Prepare& p) {
  if (p.input(0).dtype != DType::kF32) return p.Unsupported(p.input(0).dtype);
  LOADLINE_ASSIGN_OR_RETURN(const Pool pool,
                            MakePool(p, p.input(0), p.output(0)));
  if (pool.in_plane() > std::numeric_limits<int32_t>::max()) {
    return p.Invalid("a plane of more than 2^31 - 1 elements");
  }
  return MakeKernel([pool](const KernelArgs& args) {
    ParallelEach(pool.planes, pool.out_plane() * 4, [&](int64_t plane) {
      MaxPlane(pool, In(args, 0) + plane * pool.in_plane(),
               Out(args, 0) + plane * pool.out_plane(),
               Out<int32_t>(args, 1) + plane * pool.out_plane());
    });
  });
}

PreparedKernel MaxPoolGrad(const Prepare& p) {
  const TensorType& dy = p.input(0);
  const TensorType& dx = p.output(0);
  if (dy.dtype != DType::kF32) return p.Unsupported(dy.dtype);
  const int64_t planes = dx.dims[0] * dx.dims[1];
  const int64_t in_plane = Elements(dx.dims, 2, dx.rank());
  const int64_t out_plane = Elements(dy.dims, 2, dy.rank());
  return MakeKernel([=](const KernelArgs& args) {
    ParallelEach(planes, in_plane, [&](int64_t plane) {
      const float* from = In(args, 0) + plane * out_plane;
      const int32_t* argmax = In<int32_t>(args, 1) + plane * out_plane;
      float* to = Out(args, 0) + plane * in_plane;
      std::fill(to, to + in_plane, 0.0f);
      for (int64_t i = 0; i < out_plane; ++i) {
        // A window of padding only has no maximum.
        if (argmax[i] >= 0 && argmax[i] < in_plane) to[argmax[i]] += from[i];
      }
    });
  });
}

PreparedKernel AveragePool(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  LOADLINE_ASSIGN_OR_RETURN(const Pool pool,
                            MakePool(p, p.input(0), p.output(0)));
  return MakeKernel([pool](const KernelArgs& args) {
    ParallelEach(pool.planes, pool.in_plane(), [&](int64_t plane) {
      const float* x = In(args, 0) + plane * pool.in_plane();
      float* y = Out(args, 0) + plane * pool.out_plane();
      ForWindows(pool, [&](int64_t oh, int64_t ow) {
        float sum = 0;
        ForPositions(pool, oh, ow, [&](int64_t at) { sum += x[at]; });
        y[oh * pool.w.out + ow] =
            sum / static_cast<float>(Divisor(pool, oh, ow));
      });
    });
  });
}

PreparedKernel AveragePoolGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  LOADLINE_ASSIGN_OR_RETURN(const Pool pool,
                            MakePool(p, p.output(0), p.input(0)));
  return MakeKernel([pool](const KernelArgs& args) {
    ParallelEach(pool.planes, pool.in_plane(), [&](int64_t plane) {
      const float* dy = In(args, 0) + plane * pool.out_plane();
      float* dx = Out(args, 0) + plane * pool.in_plane();
      std::fill(dx, dx + pool.in_plane(), 0.0f);
      ForWindows(pool, [&](int64_t oh, int64_t ow) {
        const float share = dy[oh * pool.w.out + ow] /
                            static_cast<float>(Divisor(pool, oh, ow));
        ForPositions(pool, oh, ow, [&](int64_t at) { dx[at] += share; });
      });
    });
  });
}

constexpr KernelEntry kKernels[] = {
    {"MaxPool", MaxPool},
    {"MaxPoolGrad", MaxPoolGrad},
    {"AveragePool", AveragePool},
    {"AveragePoolGrad", AveragePoolGrad},
};

}  // namespace

absl::Span<const KernelEntry> PoolKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
