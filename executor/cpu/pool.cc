// Max and average pooling, 1-d and 2-d, plane by plane; a 1-d image is a plane
// of one row. Tested in tests/conformance/.
#include <cmath>
#include <cstring>
#include <limits>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/pool_window.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// Calls body(oh, ow) for the outputs of one plane.
template <typename Body>
void ForWindows(const Pool& pool, const Body& body) {
  for (int32_t oh = 0; oh < pool.h.out; ++oh) {
    for (int32_t ow = 0; ow < pool.w.out; ++ow) body(oh, ow);
  }
}

// The first of equal maxima wins; NaN wins over everything.
void MaxPlane(const Pool& pool, const float* x, float* y, int32_t* argmax) {
  ForWindows(pool, [&](int32_t oh, int32_t ow) {
    float best = -std::numeric_limits<float>::infinity();
    int32_t where = -1;
    ForPositions(pool, oh, ow, [&](int32_t at) {
      if (where < 0 || x[at] > best || std::isnan(x[at])) {
        best = x[at];
        where = at;
      }
    });
    y[oh * pool.w.out + ow] = best;
    argmax[oh * pool.w.out + ow] = where;
  });
}

PreparedKernel MaxPool(const Prepare& p) {
  if (p.input(0).dtype != DType::kF32) return p.Unsupported(p.input(0).dtype);
  LOADLINE_ASSIGN_OR_RETURN(const Pool pool,
                            MakePool(p, p.input(0), p.output(0)));
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
        // A window with nothing but padding has no maximum.
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
      ForWindows(pool, [&](int32_t oh, int32_t ow) {
        float sum = 0;
        ForPositions(pool, oh, ow, [&](int32_t at) { sum += x[at]; });
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
      ForWindows(pool, [&](int32_t oh, int32_t ow) {
        const float share = dy[oh * pool.w.out + ow] /
                            static_cast<float>(Divisor(pool, oh, ow));
        ForPositions(pool, oh, ow, [&](int32_t at) { dx[at] += share; });
      });
    });
  });
}

constexpr KernelEntry kPoolKernels[] = {
    {"MaxPool", MaxPool},
    {"MaxPoolGrad", MaxPoolGrad},
    {"AveragePool", AveragePool},
    {"AveragePoolGrad", AveragePoolGrad},
};

}  // namespace

absl::Span<const KernelEntry> PoolKernels() { return kPoolKernels; }

}  // namespace loadline::executor::cpu
