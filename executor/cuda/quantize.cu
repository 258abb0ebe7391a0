// Fake quantization, its gradients, and ranges of tensors, in f32. What is
// reduced over a channel is divided into parts by the shape alone; a block
// takes a part, and one thread joins a channel's parts in order. Tested in
// tests/conformance/.
#include <algorithm>

#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/nest.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/ops/quantize_channels.h"
#include "models/ops/quantize.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

using models::ChannelQuantizer;
using models::CoverRange;
using models::MakeQuantGrid;
using models::QuantGrid;
using models::RangeRule;

constexpr int64_t kPartElements = 8192;
constexpr int64_t kMostParts = 128;

// x as [outer, channels, inner].
struct Channels {
  AxisSplit s;
  Divider inner, size;
  int64_t parts;  // of a channel

  __device__ int64_t ChannelOf(int64_t element) const {
    const int64_t line = inner.Divide(element);
    return line - size.Divide(line) * s.size;
  }
  __device__ int64_t Begin(int64_t part) const {
    return s.outer * s.inner * part / parts;
  }
  // Element i of a channel.
  __device__ int64_t At(int64_t channel, int64_t i) const {
    const int64_t outer = inner.Divide(i);
    return (outer * s.size + channel) * s.inner + (i - outer * s.inner);
  }
};
Channels MakeChannels(const Prepare& p, const TensorType& x) {
  const AxisSplit s = QuantChannels(p.attributes(), x);
  return {
      s, Divider(std::max<int64_t>(s.inner, 1)),
      Divider(std::max<int64_t>(s.size, 1)),
      std::clamp<int64_t>(s.outer * s.inner / kPartElements, 1, kMostParts)};
}

__global__ void QuantizeKernel(Channels c, QuantGrid grid, int64_t n,
                               const float* x, const float* scale,
                               const float* zero_point, float* y) {
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const int64_t channel = c.ChannelOf(i);
    y[i] =
        ChannelQuantizer{grid, scale[channel], zero_point[channel]}.Round(x[i]);
  }
}

PreparedKernel FakeQuantize(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const Channels c = MakeChannels(p, p.input(0));
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    if (n == 0) return absl::OkStatus();
    return LaunchKernel(QuantizeKernel, GridFor(n), kBlock, 0, launch.stream, c,
                        grid, n, In(args, 0), In(args, 1), In(args, 2),
                        Out(args, 0));
  });
}

__global__ void GradKernel(Channels c, QuantGrid grid, int64_t n,
                           const float* dy, const float* x, const float* scale,
                           const float* zero_point, float* dx) {
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const int64_t channel = c.ChannelOf(i);
    const ChannelQuantizer q = {grid, scale[channel], zero_point[channel]};
    dx[i] = dy[i] * q.Slope(x[i]);
  }
}

PreparedKernel FakeQuantizeGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const Channels c = MakeChannels(p, p.input(1));
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    if (n == 0) return absl::OkStatus();
    return LaunchKernel(GradKernel, GridFor(n), kBlock, 0, launch.stream, c,
                        grid, n, In(args, 0), In(args, 1), In(args, 2),
                        In(args, 3), Out(args, 0));
  });
}

// sums[channel, part] of dy times the slope toward the scale.
__global__ void ScaleSumsKernel(Channels c, QuantGrid grid, const float* dy,
                                const float* x, const float* scale,
                                const float* zero_point, float* sums) {
  for (int64_t unit = blockIdx.x; unit < c.s.size * c.parts;
       unit += gridDim.x) {
    const int64_t channel = unit / c.parts;
    const ChannelQuantizer q = {grid, scale[channel], zero_point[channel]};
    const int64_t end = c.Begin(unit % c.parts + 1);
    float sum = 0;
    for (int64_t i = c.Begin(unit % c.parts) + threadIdx.x; i < end;
         i += kBlock) {
      const int64_t at = c.At(channel, i);
      sum += dy[at] * q.ScaleSlope(x[at]);
    }
    sum = TeamSum<kBlock>(sum);
    if (threadIdx.x == 0) sums[unit] = sum;
  }
}

__global__ void JoinScaleSumsKernel(Channels c, double factor,
                                    const float* sums, float* dscale) {
  for (int64_t channel = GridThread(); channel < c.s.size;
       channel += GridThreads()) {
    double sum = 0;
    for (int64_t part = 0; part < c.parts; ++part) {
      sum += sums[channel * c.parts + part];
    }
    dscale[channel] = static_cast<float>(sum * factor);
  }
}

PreparedKernel FakeQuantizeScaleGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const Channels c = MakeChannels(p, p.input(1));
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  const double factor = p.attributes().Float("factor", 1.0);
  return MakeKernel(
      [=](const KernelArgs& args, const LaunchContext& launch) -> absl::Status {
        if (c.s.size == 0) return absl::OkStatus();
        auto* sums = Workspace<float>(args);
        LOADLINE_RETURN_IF_ERROR(
            LaunchKernel(ScaleSumsKernel, GridFor(c.s.size * c.parts, 1),
                         kBlock, 0, launch.stream, c, grid, In(args, 0),
                         In(args, 1), In(args, 2), In(args, 3), sums));
        return LaunchKernel(JoinScaleSumsKernel, GridFor(c.s.size), kBlock, 0,
                            launch.stream, c, factor, sums, Out(args, 0));
      },
      c.s.size* c.parts* int64_t{sizeof(float)});
}

struct LowHigh {
  float low, high;
};
struct JoinRanges {
  __device__ LowHigh operator()(const LowHigh& a, const LowHigh& b) const {
    return {b.low < a.low ? b.low : a.low, b.high > a.high ? b.high : a.high};
  }
};

__global__ void RangesKernel(Channels c, const float* x, LowHigh* ranges) {
  for (int64_t unit = blockIdx.x; unit < c.s.size * c.parts;
       unit += gridDim.x) {
    const int64_t channel = unit / c.parts;
    const int64_t end = c.Begin(unit % c.parts + 1);
    LowHigh range = {0, 0};
    for (int64_t i = c.Begin(unit % c.parts) + threadIdx.x; i < end;
         i += kBlock) {
      const float value = x[c.At(channel, i)];
      range = JoinRanges()(range, {value, value});
    }
    range = TeamReduce<kBlock>(range, JoinRanges());
    if (threadIdx.x == 0) ranges[unit] = range;
  }
}

__global__ void JoinRangesKernel(Channels c, const LowHigh* ranges, float* low,
                                 float* high) {
  for (int64_t channel = GridThread(); channel < c.s.size;
       channel += GridThreads()) {
    LowHigh range = {0, 0};
    for (int64_t part = 0; part < c.parts; ++part) {
      range = JoinRanges()(range, ranges[channel * c.parts + part]);
    }
    low[channel] = range.low;
    high[channel] = range.high;
  }
}

PreparedKernel ValueRange(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const Channels c = MakeChannels(p, p.input(0));
  return MakeKernel(
      [=](const KernelArgs& args, const LaunchContext& launch) -> absl::Status {
        if (c.s.size == 0) return absl::OkStatus();
        auto* ranges = Workspace<LowHigh>(args);
        LOADLINE_RETURN_IF_ERROR(
            LaunchKernel(RangesKernel, GridFor(c.s.size * c.parts, 1), kBlock,
                         0, launch.stream, c, In(args, 0), ranges));
        return LaunchKernel(JoinRangesKernel, GridFor(c.s.size), kBlock, 0,
                            launch.stream, c, ranges, Out(args, 0),
                            Out(args, 1));
      },
      c.s.size* c.parts* int64_t{sizeof(LowHigh)});
}

__global__ void RangeUpdateKernel(RangeRule rule, int64_t n, const float* low,
                                  const float* high, const float* batch_low,
                                  const float* batch_high, float* new_low,
                                  float* new_high) {
  for (int64_t c = GridThread(); c < n; c += GridThreads()) {
    rule.Update(low[c], high[c], batch_low[c], batch_high[c], new_low + c,
                new_high + c);
  }
}

PreparedKernel RangeUpdate(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const RangeRule rule = {
      static_cast<float>(p.attributes().Float("momentum", 0)),
      p.attributes().Int("average", 0) != 0};
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    return LaunchKernel(RangeUpdateKernel, GridFor(n), kBlock, 0, launch.stream,
                        rule, n, In(args, 0), In(args, 1), In(args, 2),
                        In(args, 3), Out(args, 0), Out(args, 1));
  });
}

__global__ void GridKernel(QuantGrid grid, int64_t n, const float* low,
                           const float* high, float* scale, float* zero_point) {
  for (int64_t c = GridThread(); c < n; c += GridThreads()) {
    CoverRange(grid, low[c], high[c], scale + c, zero_point + c);
  }
}

PreparedKernel QuantizationGrid(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  return MakeKernel([=](const KernelArgs& args, const LaunchContext& launch) {
    return LaunchKernel(GridKernel, GridFor(n), kBlock, 0, launch.stream, grid,
                        n, In(args, 0), In(args, 1), Out(args, 0),
                        Out(args, 1));
  });
}

constexpr KernelEntry kKernels[] = {
    {"FakeQuantize", FakeQuantize},
    {"FakeQuantizeGrad", FakeQuantizeGrad},
    {"FakeQuantizeScaleGrad", FakeQuantizeScaleGrad},
    {"ValueRange", ValueRange},
    {"RangeUpdate", RangeUpdate},
    {"QuantizationGrid", QuantizationGrid}};

}  // namespace

absl::Span<const KernelEntry> QuantizeKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
