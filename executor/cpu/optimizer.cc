// Optimizer updates, in place. The gradient may come with a factor, the last
// input, as clipping gives it. Tested in tests/conformance/.
#include <algorithm>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "executor/cpu/state_blocks.h"
#include "executor/ops/optimizer_formulas.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cpu {
namespace {

// The factor of the gradient, input i of the node.
float FactorOf(const KernelArgs& args, size_t i) {
  return args.inputs.size() > i && args.inputs[i] != nullptr
             ? *In(args, static_cast<int>(i))
             : 1.0f;
}

// Inputs i and i + 1 of the node: its own learning rate and count, if any.
Progress ProgressAt(const KernelArgs& args, size_t i) {
  const bool own = args.inputs.size() > i + 1 && args.inputs[i] != nullptr;
  const int at = static_cast<int>(i);
  return ProgressOf(*args.scalars, own ? In(args, at) : nullptr,
                    own ? In(args, at + 1) : nullptr);
}

// The elements that the node does not update; none to copy in place.
void KeepOthers(const KernelArgs& args, const UpdatedElements& at) {
  const std::byte* from = args.inputs[0];
  std::byte* to = args.outputs[0];
  if (from == to) return;
  const auto size = static_cast<int64_t>(sizeof(float));
  const int64_t end = (at.start + at.count) * size;
  CopyBytes(from, to, at.start * size);
  CopyBytes(from + end, to + end, at.after() * size);
}

PreparedKernel SgdWithoutMomentum(const SgdSettings& s, int64_t n) {
  return MakeKernel([s, n](const KernelArgs& args) {
    const SgdFactors f = MakeFactors(s, ProgressAt(args, 4));
    const float factor = FactorOf(args, 3);
    const float* p = In(args, 0);
    const float* g = In(args, 1);
    float* new_p = Out(args, 0);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        new_p[i] = SgdPlain(f, p[i], g[i] * factor);
      }
    });
  });
}

template <typename Factors>
void UpdateElements(const Factors& f, float factor, int64_t n,
                    const float* p_in, const float* g, const float* state_in,
                    float* p_out, float* state_out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const Updated updated = UpdateOne(f, p_in[i], g[i] * factor, state_in[i]);
    state_out[i] = updated.state;
    p_out[i] = updated.p;
  }
}

// Of an optimizer with one number of state for each element, an f32, or one of
// a block in 8 bits.
template <typename Settings>
PreparedKernel UpdateWithState(const Prepare& p, const Settings& settings) {
  const UpdatedElements at = UpdatedElementsOf(p);
  const bool blocks = HasStateBlocks(p);
  return MakeKernel([=](const KernelArgs& args) {
    const auto f = MakeFactors(settings, ProgressAt(args, 4));
    const float factor = FactorOf(args, 3);
    KeepOthers(args, at);
    const float* p_in = In(args, 0) + at.start;
    const float* g = In(args, 1) + at.start;
    float* p_out = Out(args, 0) + at.start;
    ParallelFor(at.count, kElementBlock, [&](int64_t begin, int64_t end) {
      if (!blocks) {
        UpdateElements(f, factor, end - begin, p_in + begin, g + begin,
                       In(args, 2) + begin, p_out + begin,
                       Out(args, 1) + begin);
        return;
      }
      for (int64_t i = begin; i < end; i += kStateBlockElements) {
        const int64_t n = std::min(kStateBlockElements, end - i);
        float state[kStateBlockElements];
        ReadStateBlock<SignedCode>(args.inputs[2], i, state);
        UpdateElements(f, factor, n, p_in + i, g + i, state, p_out + i, state);
        WriteStateBlock<SignedCode>(state, n, i, args.outputs[1]);
      }
    });
  });
}

// Parameter, gradient and states are f32, or the states are blocks.
absl::Status CheckTypes(const Prepare& p) {
  if (!HasStateBlocks(p)) return p.AllF32();
  for (int i : {0, 1}) {
    if (p.input(i).dtype != DType::kF32) return p.Unsupported(p.input(i).dtype);
  }
  return absl::OkStatus();
}

PreparedKernel Sgd(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(CheckTypes(p));
  const SgdSettings s = MakeSgdSettings(p);
  if (p.has_input(2) != (p.outputs() == 2)) {
    return p.Invalid("a momentum buffer goes in and out, or neither");
  }
  return p.has_input(2) ? UpdateWithState(p, s)
                        : SgdWithoutMomentum(s, p.output(0).elements());
}

void AdamElements(const AdamFactors& f, float factor, int64_t n,
                  const float* p_in, const float* g, const float* m_in,
                  const float* v_in, float* p_out, float* m_out, float* v_out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const AdamMoved moved =
        AdamStep(f, p_in[i], g[i] * factor, m_in[i], v_in[i]);
    m_out[i] = moved.m;
    v_out[i] = moved.v;
    p_out[i] = moved.p;
  }
}

PreparedKernel Adam(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(CheckTypes(p));
  const UpdatedElements at = UpdatedElementsOf(p);
  const AdamSettings settings = MakeAdamSettings(p);
  const bool blocks = HasStateBlocks(p);
  return MakeKernel([=](const KernelArgs& args) {
    const AdamFactors f = MakeFactors(settings, ProgressAt(args, 5));
    const float factor = FactorOf(args, 4);
    KeepOthers(args, at);
    const float* p_in = In(args, 0) + at.start;
    const float* g = In(args, 1) + at.start;
    float* p_out = Out(args, 0) + at.start;
    ParallelFor(at.count, kElementBlock, [&](int64_t begin, int64_t end) {
      if (!blocks) {
        AdamElements(f, factor, end - begin, p_in + begin, g + begin,
                     In(args, 2) + begin, In(args, 3) + begin, p_out + begin,
                     Out(args, 1) + begin, Out(args, 2) + begin);
        return;
      }
      for (int64_t i = begin; i < end; i += kStateBlockElements) {
        const int64_t n = std::min(kStateBlockElements, end - i);
        float m[kStateBlockElements], v[kStateBlockElements];
        ReadStateBlock<SignedCode>(args.inputs[2], i, m);
        ReadStateBlock<UnsignedCode>(args.inputs[3], i, v);
        AdamElements(f, factor, n, p_in + i, g + i, m, v, p_out + i, m, v);
        WriteStateBlock<SignedCode>(m, n, i, args.outputs[1]);
        WriteStateBlock<UnsignedCode>(v, n, i, args.outputs[2]);
      }
    });
  });
}

PreparedKernel Adagrad(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  return UpdateWithState(p, MakeAdagradSettings(p));
}

PreparedKernel Lion(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(CheckTypes(p));
  return UpdateWithState(p, MakeLionSettings(p));
}

PreparedKernel AverageUpdate(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const auto rest =
      static_cast<float>(1 - p.attributes().Float("decay", 0.999));
  return MakeKernel([=](const KernelArgs& args) {
    const int64_t step = args.scalars->step;
    const float* average = In(args, 0);
    const float* p = In(args, 1);
    float* out = Out(args, 0);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        out[i] = Average(rest, step, average[i], p[i]);
      }
    });
  });
}

constexpr KernelEntry kOptimizerKernels[] = {
    {"Sgd", Sgd},         {"AdamW", Adam}, {"Adam", Adam},
    {"Adagrad", Adagrad}, {"Lion", Lion},  {"AverageUpdate", AverageUpdate}};

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() { return kOptimizerKernels; }

}  // namespace loadline::executor::cpu
