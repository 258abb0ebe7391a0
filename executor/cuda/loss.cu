// Losses, their gradients, and counts of targets. Logits are f32 or bf16;
// losses and lse are f32; sums over targets are computed in double. A target
// outside the classes is reported and otherwise ignored. Tested in
// tests/conformance/.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "executor/cuda/elementwise.h"
#include "executor/cuda/families.h"
#include "executor/cuda/launch.h"
#include "executor/cuda/line_statistics.h"
#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/cuda/types.h"
#include "executor/device/ignored_target.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr int kSumThreads = 512;  // of the one block that adds all targets
constexpr int64_t kMseParts = 256;

DescribeFunction DescribeTarget(const Prepare& p, const ClassLines& c) {
  return [name = p.node().name, classes = c.lines.size](int64_t position) {
    return absl::OutOfRangeError(
        absl::StrCat("node ", name, ": the target at ", "position ", position,
                     " is not one of ", classes, " classes"));
  };
}

// Launches `rows` for contiguous lines, otherwise `lines`; both take
// (ClassLines, arguments...).
template <typename Kernel, typename... Arguments>
absl::Status LaunchLines(Kernel warp_rows, Kernel block_rows, Kernel lines,
                         const ClassLines& c, cudaStream_t stream,
                         const Arguments&... arguments) {
  const int64_t targets = c.targets();
  if (c.lines.inner != 1) {
    return LaunchKernel(lines, GridFor(targets), kBlock, 0, stream, c,
                        arguments...);
  }
  if (c.lines.size > kLongRow) {
    return LaunchKernel(block_rows, GridFor(targets * kBlock), kBlock, 0,
                        stream, c, arguments...);
  }
  return LaunchKernel(warp_rows, GridFor(targets * kWarp), kBlock, 0, stream, c,
                      arguments...);
}

// lse = log(sum(exp(line))) of every line; teams of one thread handle lines
// that are not contiguous.
template <int kTeam, typename T>
__global__ void LogSumExpKernel(ClassLines c, const T* logits, float* lse) {
  for (int64_t i = TeamIndex<kTeam>(); i < c.targets();
       i += TeamsOfGrid<kTeam>()) {
    ExpSum line;
    if constexpr (kTeam == 1) {
      line = LineExpSum(c.lines, logits + FirstOfLine(c.lines, i));
    } else {
      line = RowExpSum<kTeam, 1>(logits + i * c.lines.size, c.lines.size);
    }
    if (TeamThread<kTeam>() == 0) lse[i] = line.largest + Math::Log(line.sum);
  }
}

// Optional inputs of the cross entropy; null if absent.
struct Optional {
  const float* count;    // the divisor of the mean
  const float* weights;  // of each class

  // `target` is a class.
  __device__ float WeightOf(int64_t target) const {
    return weights == nullptr ? 1.0f : weights[target];
  }
};
// They are inputs `at` and `at` + 1.
Optional OptionalAt(const KernelArgs& args, size_t at) {
  const auto input = [&args](size_t i) {
    return i < args.inputs.size() ? In(args, static_cast<int>(i)) : nullptr;
  };
  return {input(at), input(at + 1)};
}

// loss = mean of lse - logit[target], computed by one block; their sum divided
// by *count where that is given, else by the sum of their weights.
template <typename T, typename Index>
__global__ void MeanLossKernel(ClassLines c, const T* logits,
                               const Index* target, const float* lse,
                               Optional given, float* loss,
                               DataErrorSink errors) {
  double sum = 0;
  double counted = 0;
  for (int64_t i = threadIdx.x; i < c.targets(); i += kSumThreads) {
    const int64_t t = target[i];
    if (t == kIgnoredTarget) continue;
    if (t < 0 || t >= c.lines.size) {
      ReportDataError(errors, i);
    } else {
      const double weight = given.WeightOf(t);
      counted += weight;
      sum += weight * (double{lse[i]} - double{Widen(logits[c.At(i, t)])});
    }
  }
  sum = TeamSum<kSumThreads>(sum);
  counted = TeamSum<kSumThreads>(counted);
  if (given.count != nullptr) counted = double{*given.count};
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / counted);
}

template <typename T, typename Index>
absl::Status LaunchCrossEntropy(const ClassLines& c, const KernelArgs& args,
                                const LaunchContext& launch) {
  const T* logits = In<T>(args, 0);
  float* lse = Out(args, 1);
  LOADLINE_RETURN_IF_ERROR(
      LaunchLines(LogSumExpKernel<kWarp, T>, LogSumExpKernel<kBlock, T>,
                  LogSumExpKernel<1, T>, c, launch.stream, logits, lse));
  return LaunchKernel(MeanLossKernel<T, Index>, 1, kSumThreads, 0,
                      launch.stream, c, logits, In<Index>(args, 1),
                      static_cast<const float*>(lse), OptionalAt(args, 2),
                      Out(args, 0), launch.sink());
}

PreparedKernel SoftmaxCrossEntropy(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {2, 3}, {0, 1}));
  const ClassLines c = MakeClassLines(p, p.input(0));
  if (c.targets() == 0) return p.Invalid("a mean over no targets");
  return WithFloat(p, p.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return WithIndex(p, p.input(1).dtype, [&](auto index) -> PreparedKernel {
      using Index = decltype(index);
      return MakeKernel(
          [c](const KernelArgs& args, const LaunchContext& launch) {
            return LaunchCrossEntropy<T, Index>(c, args, launch);
          },
          0, DescribeTarget(p, c));
    });
  });
}

// hit = the logit of each target; 0 for an ignored one.
template <typename T, typename Index>
__global__ void HitKernel(ClassLines c, const T* logits, const Index* target,
                          float* hit, DataErrorSink errors) {
  for (int64_t i = GridThread(); i < c.targets(); i += GridThreads()) {
    const int64_t t = target[i];
    const bool is_class = t >= 0 && t < c.lines.size;
    if (!is_class && t != kIgnoredTarget) ReportDataError(errors, i);
    hit[i] = is_class ? Widen(logits[c.At(i, t)]) : 0.0f;
  }
}

// SoftmaxCrossEntropy up to its sum over targets.
PreparedKernel CrossEntropyRows(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {}, {0, 1}));
  const ClassLines c = MakeClassLines(p, p.input(0));
  return WithFloat(p, p.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return WithIndex(p, p.input(1).dtype, [&](auto index) -> PreparedKernel {
      using Index = decltype(index);
      return MakeKernel(
          [c](const KernelArgs& args, const LaunchContext& launch) {
            if (c.targets() == 0) return absl::OkStatus();
            const T* logits = In<T>(args, 0);
            LOADLINE_RETURN_IF_ERROR(LaunchLines(
                LogSumExpKernel<kWarp, T>, LogSumExpKernel<kBlock, T>,
                LogSumExpKernel<1, T>, c, launch.stream, logits, Out(args, 0)));
            return LaunchKernel(HitKernel<T, Index>, GridFor(c.targets()),
                                kBlock, 0, launch.stream, c, logits,
                                In<Index>(args, 1), Out(args, 1),
                                launch.sink());
          },
          0, DescribeTarget(p, c));
    });
  });
}

// The rest of SoftmaxCrossEntropy: MeanLossKernel's sum, in its order.
template <typename Index>
__global__ void MeanOfRowsKernel(int64_t targets, const float* lse,
                                 const float* hit, const Index* target,
                                 const float* count, float* loss) {
  double sum = 0;
  double counted = 0;
  for (int64_t i = threadIdx.x; i < targets; i += kSumThreads) {
    if (target[i] == kIgnoredTarget) continue;
    counted += 1;
    sum += double{lse[i]} - double{hit[i]};
  }
  sum = TeamSum<kSumThreads>(sum);
  counted = TeamSum<kSumThreads>(counted);
  if (count != nullptr) counted = double{*count};
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / counted);
}

PreparedKernel CrossEntropyMean(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0, 1, 3}, {0}));
  const int64_t targets = p.input(2).elements();
  if (targets == 0) return p.Invalid("a mean over no targets");
  const bool has_count = p.has_input(3);
  return WithIndex(p, p.input(2).dtype, [&](auto index) -> PreparedKernel {
    using Index = decltype(index);
    return MakeKernel([targets, has_count](const KernelArgs& args,
                                           const LaunchContext& launch) {
      return LaunchKernel(MeanOfRowsKernel<Index>, 1, kSumThreads, 0,
                          launch.stream, targets, In(args, 0), In(args, 1),
                          In<Index>(args, 2), has_count ? In(args, 3) : nullptr,
                          Out(args, 0));
    });
  });
}

// scale = dloss / count, by default the sum of the weights of targets that are
// not ignored, computed by one block.
template <typename Index>
__global__ void LossScaleKernel(ClassLines c, const float* dloss,
                                const Index* target, Optional given,
                                float* scale) {
  double counted = 0;
  for (int64_t i = threadIdx.x; i < c.targets(); i += kSumThreads) {
    const int64_t t = target[i];
    if (t >= 0 && t < c.lines.size) counted += given.WeightOf(t);
  }
  counted = TeamSum<kSumThreads>(counted);
  if (threadIdx.x != 0) return;
  *scale = *dloss / (given.count == nullptr ? static_cast<float>(counted)
                                            : *given.count);
}

// dlogits = (softmax - one_hot(target)) scale, in place on logits; 0 for an
// ignored target.
template <int kTeam, typename T, typename Index>
__global__ void CrossEntropyGradKernel(ClassLines c, const float* loss_scale,
                                       Optional given, const T* logits,
                                       const Index* target, const float* lse,
                                       T* dx, DataErrorSink errors) {
  for (int64_t i = TeamIndex<kTeam>(); i < c.targets();
       i += TeamsOfGrid<kTeam>()) {
    const int64_t first = FirstOfLine(c.lines, i);
    const int64_t hit = target[i];
    const bool ignored = hit == kIgnoredTarget;
    const float shift = lse[i];
    const bool is_class = hit >= 0 && hit < c.lines.size;
    if (TeamThread<kTeam>() == 0 && !ignored && !is_class) {
      ReportDataError(errors, i);
    }
    const float scale = is_class ? *loss_scale * given.WeightOf(hit) : 0.0f;
    for (int64_t k = TeamThread<kTeam>(); k < c.lines.size; k += kTeam) {
      const int64_t at = first + k * c.lines.inner;
      const float softmax = Math::Exp(Widen(logits[at]) - shift);
      const float slope = softmax * scale - (hit == k ? scale : 0.0f);
      dx[at] = Narrow<T>(ignored ? 0.0f : slope);
    }
  }
}

PreparedKernel SoftmaxCrossEntropyGrad(const Prepare& p) {
  const ClassLines c = MakeClassLines(p, p.input(1));
  if (c.targets() == 0) return p.Invalid("a mean over no targets");
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0, 3, 4, 5}, {}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(1).dtype, {}, {0}));
  return WithFloat(p, p.input(1).dtype, [&](auto type) {
    using T = decltype(type);
    return WithIndex(p, p.input(2).dtype, [&](auto index) -> PreparedKernel {
      using Index = decltype(index);
      return MakeKernel(
          [c](const KernelArgs& args, const LaunchContext& launch) {
            auto* scale = Workspace<float>(args);
            const Optional given = OptionalAt(args, 4);
            LOADLINE_RETURN_IF_ERROR(LaunchKernel(
                LossScaleKernel<Index>, 1, kSumThreads, 0, launch.stream, c,
                In(args, 0), In<Index>(args, 2), given, scale));
            return LaunchLines(CrossEntropyGradKernel<kWarp, T, Index>,
                               CrossEntropyGradKernel<kBlock, T, Index>,
                               CrossEntropyGradKernel<1, T, Index>, c,
                               launch.stream, scale, given, In<T>(args, 1),
                               In<Index>(args, 2), In(args, 3), Out<T>(args, 0),
                               launch.sink());
          },
          int64_t{sizeof(float)}, DescribeTarget(p, c));
    });
  });
}

// Partial sums of (a - b)^2, then their mean.
template <typename T>
__global__ void SquaresKernel(const T* a, const T* b, int64_t n, double* sums) {
  double sum = 0;
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    const float d = Widen(a[i]) - Widen(b[i]);
    sum += d * d;
  }
  sum = TeamSum<kBlock>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
__global__ void MeanKernel(const double* sums, int64_t parts, double count,
                           float* mean) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < parts; i += kBlock) sum += sums[i];
  sum = TeamSum<kBlock>(sum);
  if (threadIdx.x == 0) *mean = static_cast<float>(sum / count);
}

PreparedKernel MseLoss(const Prepare& p) {
  const int64_t n = p.input(0).elements();
  if (n == 0) return p.Invalid("a mean over nothing");
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {}, {0}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {1}, {}));
  const int64_t parts =
      std::clamp<int64_t>((n + kBlock - 1) / kBlock, 1, kMseParts);
  return WithFloat(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel(
        [=](const KernelArgs& args, const LaunchContext& launch) {
          auto* sums = Workspace<double>(args);
          LOADLINE_RETURN_IF_ERROR(LaunchKernel(
              SquaresKernel<T>, static_cast<unsigned>(parts), kBlock, 0,
              launch.stream, In<T>(args, 0), In<T>(args, 1), n, sums));
          return LaunchKernel(MeanKernel, 1, kBlock, 0, launch.stream, sums,
                              parts, static_cast<double>(n), Out(args, 0));
        },
        parts * int64_t{sizeof(double)});
  });
}

template <typename T>
__global__ void MseGradKernel(const float* dloss, const T* a, const T* b,
                              int64_t n, T* dx) {
  const float scale = *dloss * 2.0f / static_cast<float>(n);
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    dx[i] = Narrow<T>((Widen(a[i]) - Widen(b[i])) * scale);
  }
}

PreparedKernel MseLossGrad(const Prepare& p) {
  const int64_t n = p.input(1).elements();
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {0}, {}));
  LOADLINE_RETURN_IF_ERROR(RequireType(p, p.output(0).dtype, {1, 2}, {}));
  return WithFloat(p, p.output(0).dtype, [&](auto type) -> PreparedKernel {
    using T = decltype(type);
    return MakeKernel([n](const KernelArgs& args, const LaunchContext& launch) {
      if (n == 0) return absl::OkStatus();
      return LaunchKernel(MseGradKernel<T>, GridFor(n), kBlock, 0,
                          launch.stream, In(args, 0), In<T>(args, 1),
                          In<T>(args, 2), n, Out<T>(args, 0));
    });
  });
}

struct Candidate {
  float value;
  int index;
};
// The first of equal logits counts as the argmax. As on the CPU, a NaN wins
// only in the first place.
struct Better {
  __device__ Candidate operator()(const Candidate& a,
                                  const Candidate& b) const {
    if (a.value == b.value) return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
  }
};
__device__ inline Candidate MakeCandidate(float x, int64_t k) {
  const float nan_as = k == 0 ? INFINITY : -INFINITY;
  return {x != x ? nan_as : x, static_cast<int>(k)};
}

template <int kTeam, typename T, typename Index>
__global__ void CountCorrectKernel(ClassLines c, const T* logits,
                                   const Index* target,
                                   unsigned long long* correct) {
  for (int64_t i = TeamIndex<kTeam>(); i < c.targets();
       i += TeamsOfGrid<kTeam>()) {
    const T* first = logits + FirstOfLine(c.lines, i);
    Candidate best = MakeCandidate(-INFINITY, c.lines.size);
    for (int64_t k = TeamThread<kTeam>(); k < c.lines.size; k += kTeam) {
      best = Better()(best, MakeCandidate(Widen(first[k * c.lines.inner]), k));
    }
    if constexpr (kTeam > 1) best = TeamReduce<kTeam>(best, Better());
    if (TeamThread<kTeam>() == 0 &&
        best.index == static_cast<int64_t>(target[i])) {
      atomicAdd(correct, 1ull);
    }
  }
}

PreparedKernel CountCorrect(const Prepare& p) {
  const ClassLines c = MakeClassLines(p, p.input(0));
  return WithFloat(p, p.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return WithIndex(p, p.input(1).dtype, [&](auto index) -> PreparedKernel {
      using Index = decltype(index);
      return MakeKernel([c](const KernelArgs& args,
                            const LaunchContext& launch) {
        auto* correct = Out<unsigned long long>(args, 0);
        LOADLINE_RETURN_IF_ERROR(CudaStatus(
            cudaMemsetAsync(correct, 0, sizeof(*correct), launch.stream),
            "clearing a count"));
        if (c.targets() == 0) return absl::OkStatus();
        return LaunchLines(CountCorrectKernel<kWarp, T, Index>,
                           CountCorrectKernel<kBlock, T, Index>,
                           CountCorrectKernel<1, T, Index>, c, launch.stream,
                           In<T>(args, 0), In<Index>(args, 1), correct);
      });
    });
  });
}

// Adds the targets that are not ignored to *count, or begins with them; with
// weights, those of their classes.
template <typename Index>
__global__ void CountTargetsKernel(const Index* target, int64_t n,
                                   const float* weights, int64_t classes,
                                   bool first, float* count) {
  double counted = 0;
  for (int64_t i = threadIdx.x; i < n; i += kSumThreads) {
    if (weights == nullptr) {
      if (target[i] != kIgnoredTarget) counted += 1;
    } else if (target[i] >= 0 && target[i] < classes) {
      counted += double{weights[target[i]]};
    }
  }
  counted = TeamSum<kSumThreads>(counted);
  if (threadIdx.x != 0) return;
  *count = static_cast<float>((first ? 0.0 : double{*count}) + counted);
}

PreparedKernel CountTargets(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(RequireType(p, DType::kF32, {}, {0}));
  const bool weighted = p.input(p.inputs() - 1).dtype == DType::kF32;
  const int parts = p.inputs() - (weighted ? 1 : 0);
  for (int part = 1; part < parts; ++part) {
    LOADLINE_RETURN_IF_ERROR(RequireType(p, p.input(0).dtype, {part}, {}));
  }
  const int64_t n = p.input(0).elements();
  const int64_t classes = weighted ? p.input(parts).elements() : 0;
  return WithIndex(p, p.input(0).dtype, [&](auto index) -> PreparedKernel {
    using Index = decltype(index);
    return MakeKernel([n, parts, weighted, classes](
                          const KernelArgs& args, const LaunchContext& launch) {
      const float* weights = weighted ? In<float>(args, parts) : nullptr;
      for (int part = 0; part < parts; ++part) {
        LOADLINE_RETURN_IF_ERROR(
            LaunchKernel(CountTargetsKernel<Index>, 1, kSumThreads, 0,
                         launch.stream, In<Index>(args, part), n, weights,
                         classes, part == 0, Out(args, 0)));
      }
      return absl::OkStatus();
    });
  });
}

constexpr KernelEntry kKernels[] = {
    {"SoftmaxCrossEntropy", SoftmaxCrossEntropy},
    {"SoftmaxCrossEntropyGrad", SoftmaxCrossEntropyGrad},
    {"CrossEntropyRows", CrossEntropyRows},
    {"CrossEntropyMean", CrossEntropyMean},
    {"MseLoss", MseLoss},
    {"MseLossGrad", MseLossGrad},
    {"CountCorrect", CountCorrect},
    {"CountTargets", CountTargets},
};

}  // namespace

absl::Span<const KernelEntry> LossKernels() { return kKernels; }

}  // namespace loadline::executor::cuda
