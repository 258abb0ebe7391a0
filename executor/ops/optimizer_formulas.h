// Optimizer updates of one element, shared by all devices. Same order of
// operations as torch.optim.SGD, Adam and AdamW. Lion is that of "Symbolic
// Discovery of Optimization Algorithms" (Chen et al., 2023), algorithm 2.
#ifndef LOADLINE_EXECUTOR_OPS_OPTIMIZER_FORMULAS_H_
#define LOADLINE_EXECUTOR_OPS_OPTIMIZER_FORMULAS_H_

#include <cmath>

#include "executor/device/kernel.h"
#include "executor/ops/prepare.h"
#include "models/host_device.h"

namespace loadline::executor {

struct SgdSettings {
  float momentum, weight_decay;
  bool nesterov;
  float rate;  // factor of the learning rate
};
inline SgdSettings MakeSgdSettings(const Prepare& p) {
  return {static_cast<float>(p.attributes().Float("momentum", 0)),
          static_cast<float>(p.attributes().Float("weight_decay", 0)),
          p.attributes().Int("nesterov", 0) != 0,
          static_cast<float>(p.attributes().Float("rate", 1))};
}

LOADLINE_HOST_DEVICE inline float SgdPlain(const SgdSettings& s, float rate,
                                           float p, float g) {
  return p - rate * (g + s.weight_decay * p);
}

struct SgdMoved {
  float p, buffer;
};
LOADLINE_HOST_DEVICE inline SgdMoved SgdMomentum(const SgdSettings& s,
                                                 float rate, float p, float g,
                                                 float buffer) {
  const float gradient = g + s.weight_decay * p;
  const float moved = s.momentum * buffer + gradient;
  const float direction = s.nesterov ? gradient + s.momentum * moved : moved;
  return {p - rate * direction, moved};
}

struct AdamSettings {
  double beta1, beta2, epsilon, weight_decay;
  double rate;   // factor of the learning rate
  bool coupled;  // Adam: the decay is added to the gradient
};
inline AdamSettings MakeAdamSettings(const Prepare& p) {
  return {p.attributes().Float("beta1", 0.9),
          p.attributes().Float("beta2", 0.999),
          p.attributes().Float("epsilon", 1e-8),
          p.attributes().Float("weight_decay", 0.01),
          p.attributes().Float("rate", 1),
          p.node().op == "Adam"};
}

// Factors common to all elements of a step, computed in double.
struct AdamFactors {
  float decay;       // AdamW: 1 - lr weight_decay
  float coupled;     // Adam: weight_decay
  float beta1_rest;  // 1 - beta1
  float beta2, beta2_rest;
  float step_size;   // lr / (1 - beta1^t)
  float root_scale;  // sqrt(1 - beta2^t)
  float epsilon;
};
LOADLINE_HOST_DEVICE inline AdamFactors MakeAdamFactors(
    const AdamSettings& s, const StepScalars& scalars) {
  const auto t = static_cast<double>(scalars.step);
  const double rate = scalars.learning_rate * s.rate;
  return {static_cast<float>(s.coupled ? 1 : 1 - rate * s.weight_decay),
          static_cast<float>(s.coupled ? s.weight_decay : 0),
          static_cast<float>(1 - s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1 - s.beta2),
          static_cast<float>(rate / (1 - pow(s.beta1, t))),
          static_cast<float>(sqrt(1 - pow(s.beta2, t))),
          static_cast<float>(s.epsilon)};
}

struct AdamMoved {
  float p, m, v;
};
LOADLINE_HOST_DEVICE inline AdamMoved AdamStep(const AdamFactors& f, float p,
                                               float gradient, float m_in,
                                               float v_in) {
  if (f.coupled != 0) gradient += f.coupled * p;
  const float m = m_in + (gradient - m_in) * f.beta1_rest;
  const float v = v_in * f.beta2 + f.beta2_rest * (gradient * gradient);
  const float root = sqrtf(v) / f.root_scale + f.epsilon;
  return {p * f.decay - f.step_size * (m / root), m, v};
}

struct LionSettings {
  double beta1, beta2, weight_decay;
  double rate;  // factor of the learning rate
};
inline LionSettings MakeLionSettings(const Prepare& p) {
  return {
      p.attributes().Float("beta1", 0.9), p.attributes().Float("beta2", 0.99),
      p.attributes().Float("weight_decay", 0), p.attributes().Float("rate", 1)};
}

struct LionFactors {
  float rate, decay;  // decay: 1 - lr weight_decay
  float beta1, beta1_rest, beta2, beta2_rest;
};
LOADLINE_HOST_DEVICE inline LionFactors MakeLionFactors(
    const LionSettings& s, const StepScalars& scalars) {
  const double rate = scalars.learning_rate * s.rate;
  return {static_cast<float>(rate),
          static_cast<float>(1 - rate * s.weight_decay),
          static_cast<float>(s.beta1),
          static_cast<float>(1 - s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1 - s.beta2)};
}

struct LionMoved {
  float p, m;
};
LOADLINE_HOST_DEVICE inline LionMoved LionStep(const LionFactors& f, float p,
                                               float gradient, float m) {
  const float direction = m * f.beta1 + gradient * f.beta1_rest;
  // A NaN stays one.
  const float sign = direction > 0   ? 1.0f
                     : direction < 0 ? -1.0f
                                     : direction * 0.0f;
  return {p * f.decay - f.rate * sign, m * f.beta2 + gradient * f.beta2_rest};
}

// The factor that torch.nn.utils.clip_grad_norm_ multiplies gradients with; NaN
// where the norm is.
LOADLINE_HOST_DEVICE inline float ClipFactorOf(double sum_of_squares,
                                               double max_norm) {
  const double factor = max_norm / (sqrt(sum_of_squares) + 1e-6);
  return factor > 1 ? 1.0f : static_cast<float>(factor);
}

// torch.optim.swa_utils.AveragedModel: the first step's weights as they are,
// then an exponential moving average.
LOADLINE_HOST_DEVICE inline float Average(float rest, int64_t step,
                                          float average, float p) {
  return step <= 1 ? p : average + rest * (p - average);
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_OPTIMIZER_FORMULAS_H_
