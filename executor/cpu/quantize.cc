// Fake quantization, its gradients, and ranges of tensors. Threads divide the
// elements of the elementwise kernels, and the parts of a channel, whose number
// depends on the shape alone, of the others. Tested in tests/conformance/.
#include "models/ops/quantize.h"

#include <algorithm>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/ops/quantize_channels.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

using models::ChannelQuantizer;
using models::CoverRange;
using models::MakeQuantGrid;
using models::QuantGrid;
using models::RangeRule;

// Calls body(channel, begin, end) for the stretches of one channel in
// [begin, end).
template <typename Body>
void ForStretches(const AxisSplit& s, int64_t begin, int64_t end,
                  const Body& body) {
  while (begin < end) {
    const int64_t line = begin / s.inner;
    const int64_t stop = std::min(end, (line + 1) * s.inner);
    body(line % s.size, begin, stop);
    begin = stop;
  }
}

PreparedKernel FakeQuantize(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const AxisSplit s = QuantChannels(p.attributes(), p.input(0));
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  return MakeKernel([=](const KernelArgs& args) {
    const float* x = In(args, 0);
    float* y = Out(args, 0);
    ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
      ForStretches(s, begin, end, [&](int64_t c, int64_t from, int64_t to) {
        const ChannelQuantizer q = {grid, In(args, 1)[c], In(args, 2)[c]};
#pragma omp simd
        for (int64_t i = from; i < to; ++i) y[i] = q.Round(x[i]);
      });
    });
  });
}

PreparedKernel FakeQuantizeGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const AxisSplit s = QuantChannels(p.attributes(), p.input(1));
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  return MakeKernel([=](const KernelArgs& args) {
    const float* dy = In(args, 0);
    const float* x = In(args, 1);
    float* dx = Out(args, 0);
    ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
      ForStretches(s, begin, end, [&](int64_t c, int64_t from, int64_t to) {
        const ChannelQuantizer q = {grid, In(args, 2)[c], In(args, 3)[c]};
#pragma omp simd
        for (int64_t i = from; i < to; ++i) dx[i] = dy[i] * q.Slope(x[i]);
      });
    });
  });
}

// A channel's elements are divided into parts, along the outer axis or, where
// there is none, along the inner one.
struct Parts {
  AxisSplit s;
  int64_t count;  // of one channel

  // Calls body(begin, end) for the part's stretches of the channel.
  template <typename Body>
  void For(int64_t channel, int64_t part, const Body& body) const {
    const bool along_inner = s.outer == 1;
    const int64_t size = along_inner ? s.inner : s.outer;
    const int64_t begin = size * part / count;
    const int64_t end = size * (part + 1) / count;
    if (along_inner) {
      body(channel * s.inner + begin, channel * s.inner + end);
      return;
    }
    for (int64_t outer = begin; outer < end; ++outer) {
      const int64_t at = (outer * s.size + channel) * s.inner;
      body(at, at + s.inner);
    }
  }
};
Parts MakeParts(const AxisSplit& s) {
  constexpr int64_t kMostParts = 16;
  const int64_t wanted = s.outer * s.inner / (4 * kElementBlock);
  return {s, std::clamp<int64_t>(wanted, 1, kMostParts)};
}

// Calls one(channel, part) for all, then join(channel).
template <typename One, typename Join>
void ForParts(const Parts& parts, const One& one, const Join& join) {
  const int64_t units = parts.s.size * parts.count;
  const int64_t cost = parts.s.outer * parts.s.inner / parts.count;
  ParallelEach(units, cost, [&](int64_t unit) {
    one(unit / parts.count, unit % parts.count);
  });
  for (int64_t channel = 0; channel < parts.s.size; ++channel) join(channel);
}

PreparedKernel FakeQuantizeScaleGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const Parts parts = MakeParts(QuantChannels(p.attributes(), p.input(1)));
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  const double factor = p.attributes().Float("factor", 1.0);
  const int64_t bytes =
      parts.s.size * parts.count * static_cast<int64_t>(sizeof(double));
  return MakeKernel(
      [=](const KernelArgs& args) {
        const float* dy = In(args, 0);
        const float* x = In(args, 1);
        auto* sums = Workspace<double>(args);
        const auto one = [&](int64_t c, int64_t part) {
          const ChannelQuantizer q = {grid, In(args, 2)[c], In(args, 3)[c]};
          double sum = 0;
          parts.For(c, part, [&](int64_t begin, int64_t end) {
            sum += SumOf(begin, end,
                         [&](int64_t i) { return dy[i] * q.ScaleSlope(x[i]); });
          });
          sums[c * parts.count + part] = sum;
        };
        ForParts(parts, one, [&](int64_t c) {
          double sum = 0;
          for (int64_t i = 0; i < parts.count; ++i) {
            sum += sums[c * parts.count + i];
          }
          Out(args, 0)[c] = static_cast<float>(sum * factor);
        });
      },
      bytes);
}

PreparedKernel ValueRange(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const Parts parts = MakeParts(QuantChannels(p.attributes(), p.input(0)));
  const int64_t units = parts.s.size * parts.count;
  const int64_t bytes = 2 * units * static_cast<int64_t>(sizeof(float));
  return MakeKernel(
      [=](const KernelArgs& args) {
        const float* x = In(args, 0);
        auto* lows = Workspace<float>(args);
        float* highs = lows + units;
        const auto one = [&](int64_t c, int64_t part) {
          float low = 0, high = 0;
          parts.For(c, part, [&](int64_t begin, int64_t end) {
#pragma omp simd reduction(min : low) reduction(max : high)
            for (int64_t i = begin; i < end; ++i) {
              low = x[i] < low ? x[i] : low;
              high = x[i] > high ? x[i] : high;
            }
          });
          lows[c * parts.count + part] = low;
          highs[c * parts.count + part] = high;
        };
        ForParts(parts, one, [&](int64_t c) {
          const int64_t begin = c * parts.count;
          const int64_t end = begin + parts.count;
          Out(args, 0)[c] = *std::min_element(lows + begin, lows + end);
          Out(args, 1)[c] = *std::max_element(highs + begin, highs + end);
        });
      },
      bytes);
}

PreparedKernel RangeUpdate(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const RangeRule rule = {
      static_cast<float>(p.attributes().Float("momentum", 0)),
      p.attributes().Int("average", 0) != 0};
  return MakeKernel([=](const KernelArgs& args) {
    for (int64_t c = 0; c < n; ++c) {
      rule.Update(In(args, 0)[c], In(args, 1)[c], In(args, 2)[c],
                  In(args, 3)[c], Out(args, 0) + c, Out(args, 1) + c);
    }
  });
}

PreparedKernel QuantizationGrid(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const QuantGrid grid = MakeQuantGrid(p.attributes());
  return MakeKernel([=](const KernelArgs& args) {
    for (int64_t c = 0; c < n; ++c) {
      CoverRange(grid, In(args, 0)[c], In(args, 1)[c], Out(args, 0) + c,
                 Out(args, 1) + c);
    }
  });
}

constexpr KernelEntry kQuantizeKernels[] = {
    {"FakeQuantize", FakeQuantize},
    {"FakeQuantizeGrad", FakeQuantizeGrad},
    {"FakeQuantizeScaleGrad", FakeQuantizeScaleGrad},
    {"ValueRange", ValueRange},
    {"RangeUpdate", RangeUpdate},
    {"QuantizationGrid", QuantizationGrid}};

}  // namespace

absl::Span<const KernelEntry> QuantizeKernels() { return kQuantizeKernels; }

}  // namespace loadline::executor::cpu
