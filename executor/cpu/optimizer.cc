// Optimizer updates, in place: as torch.optim.SGD and torch.optim.AdamW, with
// the same order of operations. Factors that depend on the step are computed
// in double. Tested in tests/conformance/.
#include <cmath>

#include "executor/cpu/families.h"
#include "executor/cpu/parallel.h"
#include "planner/status_macros.h"

namespace loadline::executor::cpu {
namespace {

struct SgdSettings {
  float momentum, weight_decay;
  bool nesterov;
};

void SgdBlock(const SgdSettings& s, float rate, const float* p, const float* g,
              const float* buffer, float* new_p, float* new_buffer,
              int64_t begin, int64_t end) {
  if (buffer == nullptr) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      new_p[i] = p[i] - rate * (g[i] + s.weight_decay * p[i]);
    }
    return;
  }
  const float ahead = s.nesterov ? s.momentum : 0.0f;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = g[i] + s.weight_decay * p[i];
    const float moved = s.momentum * buffer[i] + gradient;
    const float direction = s.nesterov ? gradient + ahead * moved : moved;
    new_buffer[i] = moved;
    new_p[i] = p[i] - rate * direction;
  }
}

PreparedKernel Sgd(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const SgdSettings settings = {
      static_cast<float>(p.attributes().Float("momentum", 0)),
      static_cast<float>(p.attributes().Float("weight_decay", 0)),
      p.attributes().Int("nesterov", 0) != 0};
  const bool has_buffer = p.has_input(2);
  if (has_buffer != (p.outputs() == 2)) {
    return p.Invalid("a momentum buffer goes in and out, or neither");
  }
  return MakeKernel([=](const KernelArgs& args) {
    ParallelFor(n, kElementBlock, [&](int64_t begin, int64_t end) {
      SgdBlock(settings, args.scalars->learning_rate, In(args, 0), In(args, 1),
               has_buffer ? In(args, 2) : nullptr, Out(args, 0),
               has_buffer ? Out(args, 1) : nullptr, begin, end);
    });
  });
}

struct AdamFactors {
  float decay;       // 1 - lr weight_decay
  float beta1_rest;  // 1 - beta1
  float beta2, beta2_rest;
  float step_size;   // lr / (1 - beta1^t)
  float root_scale;  // sqrt(1 - beta2^t)
  float epsilon;
};

PreparedKernel AdamW(const Prepare& p) {
  LOADLINE_RETURN_IF_ERROR(p.AllF32());
  const int64_t n = p.output(0).elements();
  const double beta1 = p.attributes().Float("beta1", 0.9);
  const double beta2 = p.attributes().Float("beta2", 0.999);
  const double epsilon = p.attributes().Float("epsilon", 1e-8);
  const double weight_decay = p.attributes().Float("weight_decay", 0.01);
  return MakeKernel([=](const KernelArgs& args) {
    const auto t = static_cast<double>(args.scalars->step);
    const double rate = args.scalars->learning_rate;
    const AdamFactors f = {
        static_cast<float>(1 - rate * weight_decay),
        static_cast<float>(1 - beta1),
        static_cast<float>(beta2),
        static_cast<float>(1 - beta2),
        static_cast<float>(rate / (1 - std::pow(beta1, t))),
        static_cast<float>(std::sqrt(1 - std::pow(beta2, t))),
        static_cast<float>(epsilon)};
    const float* p_in = In(args, 0);
    const float* g = In(args, 1);
    const float* m_in = In(args, 2);
    const float* v_in = In(args, 3);
    float* p_out = Out(args, 0);
    float* m_out = Out(args, 1);
    float* v_out = Out(args, 2);
    ParallelFor(n, kElementBlock, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float gradient = g[i];
        const float m = m_in[i] + (gradient - m_in[i]) * f.beta1_rest;
        const float v =
            v_in[i] * f.beta2 + f.beta2_rest * (gradient * gradient);
        const float root = std::sqrt(v) / f.root_scale + f.epsilon;
        m_out[i] = m;
        v_out[i] = v;
        p_out[i] = p_in[i] * f.decay - f.step_size * (m / root);
      }
    });
  });
}

constexpr KernelEntry kKernels[] = {{"Sgd", Sgd}, {"AdamW", AdamW}};

}  // namespace

absl::Span<const KernelEntry> OptimizerKernels() { return kKernels; }

}  // namespace loadline::executor::cpu
