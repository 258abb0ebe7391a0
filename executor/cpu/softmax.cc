// Softmax, LogSoftmax and their gradients along any axis. A line is read
// completely before it is written, so all of them work in place. Tested in
// tests/conformance/.
#include "executor/cpu/families.h"
#include "executor/cpu/lines.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

void SoftmaxLine(const float* x, float* y, int64_t n) {
  const float largest = MaxOf(x, n);
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) y[j] = Exp(x[j] - largest);
  const auto scale =
      static_cast<float>(1.0 / SumOf(0, n, [y](int64_t j) { return y[j]; }));
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) y[j] *= scale;
}

void LogSoftmaxLine(const float* x, float* y, int64_t n) {
  const float largest = MaxOf(x, n);
  const auto sum = static_cast<float>(
      SumOf(0, n, [x, largest](int64_t j) { return Exp(x[j] - largest); }));
  const float log_sum = Log(sum);
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) y[j] = (x[j] - largest) - log_sum;
}

void SoftmaxGradLine(const float* dy, const float* y, float* dx, int64_t n) {
  const auto dot = static_cast<float>(
      SumOf(0, n, [dy, y](int64_t j) { return dy[j] * y[j]; }));
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) dx[j] = y[j] * (dy[j] - dot);
}

void LogSoftmaxGradLine(const float* dy, const float* y, float* dx, int64_t n) {
  const auto sum =
      static_cast<float>(SumOf(0, n, [dy](int64_t j) { return dy[j]; }));
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) dx[j] = dy[j] - Exp(y[j]) * sum;
}

void SoftmaxGroup(const AxisSplit& s, const float* x, float* y, int64_t count,
                  bool log) {
  float largest[kLineGroup], sum[kLineGroup];
  LineStatistics(s, x, count, largest, sum);
  for (int64_t j = 0; j < count; ++j) {
    sum[j] = log ? Log(sum[j]) : 1.0f / sum[j];
  }
  for (int64_t k = 0; k < s.size; ++k) {
    const float* from = x + k * s.inner;
    float* to = y + k * s.inner;
    if (log) {
      for (int64_t j = 0; j < count; ++j) {
        to[j] = (from[j] - largest[j]) - sum[j];
      }
    } else {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        to[j] = Exp(from[j] - largest[j]) * sum[j];
      }
    }
  }
}

void SoftmaxGradGroup(const AxisSplit& s, const float* dy, const float* y,
                      float* dx, int64_t count, bool log) {
  float sum[kLineGroup] = {};
  for (int64_t k = 0; k < s.size; ++k) {
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = k * s.inner + j;
      sum[j] += log ? dy[at] : dy[at] * y[at];
    }
  }
  for (int64_t k = 0; k < s.size; ++k) {
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = k * s.inner + j;
      dx[at] = log ? dy[at] - Exp(y[at]) * sum[j] : y[at] * (dy[at] - sum[j]);
    }
  }
}

PreparedKernel PrepareSoftmax(const Prepare& p, bool log) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const AxisSplit s = SplitAt(p.input(0).dims, p.attributes().Int("axis", -1));
  if (s.inner == 1) {
    return MakeKernel([s, log](const KernelArgs& args) {
      ParallelEach(s.outer, s.size, [&](int64_t row) {
        (log ? LogSoftmaxLine : SoftmaxLine)(
            In(args, 0) + row * s.size, Out(args, 0) + row * s.size, s.size);
      });
    });
  }
  return MakeKernel([s, log](const KernelArgs& args) {
    ForLineGroups(s, [&](int64_t at, int64_t count) {
      SoftmaxGroup(s, In(args, 0) + at, Out(args, 0) + at, count, log);
    });
  });
}

PreparedKernel PrepareSoftmaxGrad(const Prepare& p, bool log) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const AxisSplit s = SplitAt(p.input(0).dims, p.attributes().Int("axis", -1));
  if (s.inner == 1) {
    return MakeKernel([s, log](const KernelArgs& args) {
      ParallelEach(s.outer, s.size, [&](int64_t row) {
        const int64_t at = row * s.size;
        (log ? LogSoftmaxGradLine : SoftmaxGradLine)(
            In(args, 0) + at, In(args, 1) + at, Out(args, 0) + at, s.size);
      });
    });
  }
  return MakeKernel([s, log](const KernelArgs& args) {
    ForLineGroups(s, [&](int64_t at, int64_t count) {
      SoftmaxGradGroup(s, In(args, 0) + at, In(args, 1) + at, Out(args, 0) + at,
                       count, log);
    });
  });
}

constexpr KernelEntry kSoftmaxKernels[] = {
    {"Softmax", [](const Prepare& p) { return PrepareSoftmax(p, false); }},
    {"LogSoftmax", [](const Prepare& p) { return PrepareSoftmax(p, true); }},
    {"SoftmaxGrad",
     [](const Prepare& p) { return PrepareSoftmaxGrad(p, false); }},
    {"LogSoftmaxGrad",
     [](const Prepare& p) { return PrepareSoftmaxGrad(p, true); }},
};

}  // namespace

absl::Span<const KernelEntry> SoftmaxKernels() { return kSoftmaxKernels; }

}  // namespace loadline::executor::cpu
