// Losses, their gradients, and counts of targets. A target outside the classes
// is an error of the step, detected before anything is written. Logits of the
// cross entropy may be bf16; computation is in f32. Tested in
// tests/conformance/.
#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "executor/cpu/families.h"
#include "executor/cpu/lines.h"
#include "executor/device/ignored_target.h"
#include "executor/ops/bf16.h"
#include "executor/ops/dispatch.h"
#include "executor/ops/operator_shapes.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// How many targets are not ignored, or the sum of their weights; OutOfRange if
// one is no class. `weights`: by class, or null.
template <typename Index>
absl::StatusOr<double> CheckTargets(const ClassLines& c, const Index* target,
                                    const std::string& name,
                                    const float* weights = nullptr) {
  double counted = 0;
  for (int64_t i = 0; i < c.targets(); ++i) {
    if (target[i] == kIgnoredTarget) continue;
    if (target[i] < 0 || target[i] >= c.lines.size) {
      return absl::OutOfRangeError(absl::StrCat(
          "node ", name, ": target ", int64_t{target[i]}, " at position ", i,
          " is not one of ", c.lines.size, " classes"));
    }
    counted += weights == nullptr ? 1 : double{weights[target[i]]};
  }
  return counted;
}

// log(sum(exp(line))) of every line.
template <typename T>
void LogSumExp(const ClassLines& c, const T* logits, float* lse) {
  const AxisSplit& s = c.lines;
  if (s.inner == 1) {
    ParallelEach(s.outer, s.size, [&](int64_t row) {
      const T* x = logits + row * s.size;
      const float largest = MaxOf(x, s.size);
      const auto sum = static_cast<float>(SumOf(
          0, s.size, [x, largest](int64_t j) { return Exp(x[j] - largest); }));
      lse[row] = largest + Log(sum);
    });
    return;
  }
  ForLineGroups(s, [&](int64_t at, int64_t count) {
    float largest[kLineGroup], sum[kLineGroup];
    LineStatistics(s, logits + at, count, largest, sum);
    const int64_t first = at / (s.size * s.inner) * s.inner + at % s.inner;
    for (int64_t j = 0; j < count; ++j) {
      lse[first + j] = largest[j] + Log(sum[j]);
    }
  });
}

// Optional inputs of the cross entropy; null if absent.
struct Optional {
  const float* count;    // the divisor of the mean
  const float* weights;  // of each class
};
// They are inputs `at` and `at` + 1.
Optional OptionalAt(const KernelArgs& args, size_t at) {
  const auto input = [&args](size_t i) {
    return i < args.inputs.size() ? In(args, static_cast<int>(i)) : nullptr;
  };
  return {input(at), input(at + 1)};
}

// The divisor of the mean: the input `count` where there is one.
template <typename Index>
absl::StatusOr<float> DivisorOf(const ClassLines& c, const Index* target,
                                const std::string& name,
                                const Optional& given) {
  LOADLINE_ASSIGN_OR_RETURN(const double counted,
                            CheckTargets(c, target, name, given.weights));
  return given.count == nullptr ? static_cast<float>(counted) : *given.count;
}

PreparedKernel SoftmaxCrossEntropy(const Prepare& p) {
  const ClassLines c = MakeClassLines(p, p.input(0));
  if (c.targets() == 0) return p.Invalid("a mean over no targets");
  return WithFloat<Bf16>(p, p.input(0).dtype, [&](auto logit) {
    using T = decltype(logit);
    return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
      using Index = decltype(type);
      return MakeKernel([c, name = p.node().name](const KernelArgs& args) {
        const T* logits = In<T>(args, 0);
        const Index* target = In<Index>(args, 1);
        const Optional given = OptionalAt(args, 2);
        LOADLINE_ASSIGN_OR_RETURN(const float divisor,
                                  DivisorOf(c, target, name, given));
        float* lse = Out(args, 1);
        LogSumExp(c, logits, lse);
        double sum = 0;
        for (int64_t i = 0; i < c.targets(); ++i) {
          if (target[i] == kIgnoredTarget) continue;
          const float hit = logits[c.At(i, target[i])];
          const double term = double{lse[i]} - double{hit};
          sum += given.weights == nullptr
                     ? term
                     : double{given.weights[target[i]]} * term;
        }
        *Out(args, 0) = static_cast<float>(sum / double{divisor});
        return absl::OkStatus();
      });
    });
  });
}

// SoftmaxCrossEntropy up to its sum over targets: lse of each line, and the
// logit of its target; 0 for an ignored one.
PreparedKernel CrossEntropyRows(const Prepare& p) {
  const ClassLines c = MakeClassLines(p, p.input(0));
  return WithFloat<Bf16>(p, p.input(0).dtype, [&](auto logit) {
    using T = decltype(logit);
    return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
      using Index = decltype(type);
      return MakeKernel([c, name = p.node().name](const KernelArgs& args) {
        const T* logits = In<T>(args, 0);
        const Index* target = In<Index>(args, 1);
        LOADLINE_RETURN_IF_ERROR(CheckTargets(c, target, name).status());
        LogSumExp(c, logits, Out(args, 0));
        float* hit = Out(args, 1);
        for (int64_t i = 0; i < c.targets(); ++i) {
          hit[i] = 0;
          if (target[i] != kIgnoredTarget) hit[i] = logits[c.At(i, target[i])];
        }
        return absl::OkStatus();
      });
    });
  });
}

// The rest of SoftmaxCrossEntropy: the same sum in the same order.
PreparedKernel CrossEntropyMean(const Prepare& p) {
  const int64_t targets = p.input(2).elements();
  if (targets == 0) return p.Invalid("a mean over no targets");
  const bool has_count = p.has_input(3);
  return WithIndex(p, p.input(2).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    return MakeKernel([targets, has_count](const KernelArgs& args) {
      const float* lse = In(args, 0);
      const float* hit = In(args, 1);
      const Index* target = In<Index>(args, 2);
      double sum = 0;
      int64_t counted = 0;
      for (int64_t i = 0; i < targets; ++i) {
        if (target[i] == kIgnoredTarget) continue;
        ++counted;
        sum += double{lse[i]} - double{hit[i]};
      }
      const double divisor =
          has_count ? double{*In(args, 3)} : static_cast<double>(counted);
      *Out(args, 0) = static_cast<float>(sum / divisor);
    });
  });
}

// dlogits = (softmax - one_hot(target)) dloss / targets, in place on logits; 0
// for an ignored target.
template <typename T, typename Index>
void CrossEntropyGrad(const ClassLines& c, float mean_scale,
                      const float* weights, const T* logits,
                      const Index* target, const float* lse, T* dx) {
  const AxisSplit& s = c.lines;
  const auto scale_of = [=](Index t) {
    return weights == nullptr ? mean_scale : mean_scale * weights[t];
  };
  if (s.inner == 1) {
    ParallelEach(s.outer, s.size, [&](int64_t row) {
      const T* x = logits + row * s.size;
      T* to = dx + row * s.size;
      if (target[row] == kIgnoredTarget) {
        std::fill(to, to + s.size, T(0.0f));
        return;
      }
      const float shift = lse[row];
      const float scale = scale_of(target[row]);
      // Read before the output may overwrite it.
      const float hit = x[target[row]];
#pragma omp simd
      for (int64_t j = 0; j < s.size; ++j) to[j] = Exp(x[j] - shift) * scale;
      if constexpr (std::is_same_v<T, float>) {
        to[target[row]] -= scale;
      } else {  // round once
        to[target[row]] = Exp(hit - shift) * scale - scale;
      }
    });
    return;
  }
  ForLineGroups(s, [&](int64_t at, int64_t count) {
    const int64_t first = at / (s.size * s.inner) * s.inner + at % s.inner;
    float scale[kLineGroup];
    for (int64_t j = 0; j < count; ++j) {
      const Index t = target[first + j];
      scale[j] = t == kIgnoredTarget ? 0.0f : scale_of(t);
    }
    for (int64_t k = 0; k < s.size; ++k) {
      const T* x = logits + at + k * s.inner;
      T* to = dx + at + k * s.inner;
      for (int64_t j = 0; j < count; ++j) {
        const float hit = target[first + j] == k ? scale[j] : 0.0f;
        const float slope = Exp(x[j] - lse[first + j]) * scale[j] - hit;
        to[j] = target[first + j] == kIgnoredTarget ? 0.0f : slope;
      }
    }
  });
}

PreparedKernel SoftmaxCrossEntropyGrad(const Prepare& p) {
  const ClassLines c = MakeClassLines(p, p.input(1));
  if (c.targets() == 0) return p.Invalid("a mean over no targets");
  return WithFloat<Bf16>(p, p.input(1).dtype, [&](auto logit) {
    using T = decltype(logit);
    return WithIndex(p, p.input(2).dtype, [&](auto type) -> PreparedKernel {
      using Index = decltype(type);
      return MakeKernel([c, name = p.node().name](const KernelArgs& args) {
        const Index* target = In<Index>(args, 2);
        const Optional given = OptionalAt(args, 4);
        LOADLINE_ASSIGN_OR_RETURN(const float divisor,
                                  DivisorOf(c, target, name, given));
        const float scale = *In(args, 0) / divisor;
        CrossEntropyGrad(c, scale, given.weights, In<T>(args, 1), target,
                         In(args, 3), Out<T>(args, 0));
        return absl::OkStatus();
      });
    });
  });
}

PreparedKernel MseLoss(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.input(0).elements();
  if (n == 0) return p.Invalid("a mean over nothing");
  return MakeKernel([n](const KernelArgs& args) {
    const float* a = In(args, 0);
    const float* b = In(args, 1);
    const double sum = SumOf(
        0, n, [a, b](int64_t i) { return (a[i] - b[i]) * (a[i] - b[i]); });
    *Out(args, 0) = static_cast<float>(sum / static_cast<double>(n));
  });
}

PreparedKernel MseLossGrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.input(1).elements();
  return MakeKernel([n](const KernelArgs& args) {
    const float scale = *In(args, 0) * 2.0f / static_cast<float>(n);
    const float* a = In(args, 1);
    const float* b = In(args, 2);
    float* dx = Out(args, 0);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) dx[i] = (a[i] - b[i]) * scale;
    });
  });
}

// The first of equal logits counts as the argmax.
PreparedKernel CountCorrect(const Prepare& p) {
  if (p.input(0).dtype != DType::kF32) return p.Unsupported(p.input(0).dtype);
  const ClassLines c = MakeClassLines(p, p.input(0));
  return WithIndex(p, p.input(1).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    return MakeKernel([c](const KernelArgs& args) {
      const float* logits = In(args, 0);
      const Index* target = In<Index>(args, 1);
      int64_t correct = 0;
      for (int64_t i = 0; i < c.targets(); ++i) {
        int64_t best = 0;
        for (int64_t k = 1; k < c.lines.size; ++k) {
          if (logits[c.At(i, k)] > logits[c.At(i, best)]) best = k;
        }
        correct += best == static_cast<int64_t>(target[i]);
      }
      *Out<int64_t>(args, 0) = correct;
    });
  });
}

// Targets that are no class have no weight here; the loss refuses them.
PreparedKernel CountTargets(const Prepare& p) {
  const int64_t n = p.input(0).elements();
  const bool weighted = p.input(p.inputs() - 1).dtype == DType::kF32;
  const int parts = p.inputs() - (weighted ? 1 : 0);
  const int64_t classes = weighted ? p.input(parts).elements() : 0;
  return WithIndex(p, p.input(0).dtype, [&](auto type) -> PreparedKernel {
    using Index = decltype(type);
    return MakeKernel([n, parts, weighted, classes](const KernelArgs& args) {
      const float* weights = weighted ? In(args, parts) : nullptr;
      double counted = 0;
      for (int part = 0; part < parts; ++part) {
        const Index* target = In<Index>(args, part);
        for (int64_t i = 0; i < n; ++i) {
          if (weights == nullptr) {
            counted += target[i] != kIgnoredTarget;
          } else if (target[i] >= 0 && target[i] < classes) {
            counted += double{weights[target[i]]};
          }
        }
      }
      *Out(args, 0) = static_cast<float>(counted);
    });
  });
}

constexpr KernelEntry kLossKernels[] = {
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

absl::Span<const KernelEntry> LossKernels() { return kLossKernels; }

}  // namespace loadline::executor::cpu
