// Optimizer updates of one element, shared by all devices. Same order of
// operations as torch.optim.SGD, Adam, AdamW and Adagrad. Lion is that of
// "Symbolic Discovery of Optimization Algorithms" (Chen et al., 2023),
// algorithm 2.
#ifndef LOADLINE_EXECUTOR_OPS_OPTIMIZER_FORMULAS_H_
#define LOADLINE_EXECUTOR_OPS_OPTIMIZER_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "executor/device/kernel.h"
#include "executor/ops/prepare.h"
#include "models/host_device.h"
#include "models/ops/state_blocks.h"

namespace loadline::executor {

// What an update knows of the training: from the step's scalars, or from the
// node's inputs `lr` and `count`.
struct Progress {
  float learning_rate;
  double earlier;    // updates before this one
  double corrected;  // Adam corrects its biases as after so many steps
};
LOADLINE_HOST_DEVICE inline Progress ProgressOf(const StepScalars& scalars,
                                                const float* learning_rate,
                                                const float* count) {
  const auto step = static_cast<double>(scalars.step);
  if (learning_rate == nullptr) return {scalars.learning_rate, step - 1, step};
  return {*learning_rate, *count, *count};
}

// The elements of the parameter that a node updates: all, or those from the
// attribute `start` on, as many as its states have.
struct UpdatedElements {
  int64_t start, count, whole;

  int64_t after() const { return whole - start - count; }
};
inline UpdatedElements UpdatedElementsOf(const Prepare& p) {
  const int64_t whole = p.output(0).elements();
  const int64_t start = p.attributes().Int("start", 0);
  const int64_t count = p.outputs() > 1
                            ? models::StateElements(p.output(1), whole - start)
                            : whole;
  return {start, count, whole};
}

// Whether the states of an update are in 8 bits.
inline bool HasStateBlocks(const Prepare& p) {
  return p.outputs() > 1 && models::IsStateBlocks(p.output(1));
}

struct SgdSettings {
  float momentum, weight_decay;
  bool nesterov;
  float rate;   // factor of the learning rate
  float share;  // of the gradient in the buffer after the first update

  bool operator==(const SgdSettings&) const = default;
};
inline SgdSettings MakeSgdSettings(const Prepare& p) {
  return {static_cast<float>(p.attributes().Float("momentum", 0)),
          static_cast<float>(p.attributes().Float("weight_decay", 0)),
          p.attributes().Int("nesterov", 0) != 0,
          static_cast<float>(p.attributes().Float("rate", 1)),
          static_cast<float>(1 - p.attributes().Float("dampening", 0))};
}

struct SgdFactors {
  float rate, momentum, weight_decay, share;
  bool nesterov;
};
LOADLINE_HOST_DEVICE inline SgdFactors MakeFactors(const SgdSettings& s,
                                                   const Progress& at) {
  return {at.learning_rate * s.rate, s.momentum, s.weight_decay,
          at.earlier <= 0 ? 1.0f : s.share, s.nesterov};
}

// Without momentum.
LOADLINE_HOST_DEVICE inline float SgdPlain(const SgdFactors& f, float p,
                                           float g) {
  return p - f.rate * (g + f.weight_decay * p);
}

// Of an optimizer with one number of state for each element.
struct Updated {
  float p, state;
};

LOADLINE_HOST_DEVICE inline Updated UpdateOne(const SgdFactors& f, float p,
                                              float g, float buffer) {
  const float gradient = g + f.weight_decay * p;
  const float moved = f.momentum * buffer + f.share * gradient;
  const float direction = f.nesterov ? gradient + f.momentum * moved : moved;
  return {p - f.rate * direction, moved};
}

struct AdamSettings {
  double beta1, beta2, epsilon, weight_decay;
  double rate;         // factor of the learning rate
  double decay_after;  // of the new parameter
  bool coupled;        // Adam: the decay is added to the gradient
  bool epsilon_hat;    // epsilon is added before the bias is corrected

  bool operator==(const AdamSettings&) const = default;
};
inline AdamSettings MakeAdamSettings(const Prepare& p) {
  return {p.attributes().Float("beta1", 0.9),
          p.attributes().Float("beta2", 0.999),
          p.attributes().Float("epsilon", 1e-8),
          p.attributes().Float("weight_decay", 0.01),
          p.attributes().Float("rate", 1),
          p.attributes().Float("decay_after", 0),
          p.node().op == "Adam",
          p.attributes().Int("epsilon_hat", 0) != 0};
}

// Factors common to all elements of a step, computed in double.
struct AdamFactors {
  float decay;       // AdamW: 1 - lr weight_decay
  float coupled;     // Adam: weight_decay
  float beta1_rest;  // 1 - beta1
  float beta2, beta2_rest;
  float step_size;   // lr / (1 - beta1^t), with epsilon_hat times root_scale
  float root_scale;  // sqrt(1 - beta2^t), with epsilon_hat 1
  float epsilon;
  float after;  // 1 - decay_after
};
LOADLINE_HOST_DEVICE inline AdamFactors MakeFactors(const AdamSettings& s,
                                                    const Progress& at) {
  const double t = at.corrected;
  const double rate = at.learning_rate * s.rate;
  const double step = t == 0 ? rate : rate / (1 - pow(s.beta1, t));
  const double root = t == 0 ? 1 : sqrt(1 - pow(s.beta2, t));
  return {static_cast<float>(s.coupled ? 1 : 1 - rate * s.weight_decay),
          static_cast<float>(s.coupled ? s.weight_decay : 0),
          static_cast<float>(1 - s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1 - s.beta2),
          static_cast<float>(s.epsilon_hat ? step * root : step),
          static_cast<float>(s.epsilon_hat ? 1 : root),
          static_cast<float>(s.epsilon),
          static_cast<float>(1 - s.decay_after)};
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
  return {(p * f.decay - f.step_size * (m / root)) * f.after, m, v};
}

struct AdagradSettings {
  double epsilon, weight_decay, rate_decay;
  double rate;  // factor of the learning rate

  bool operator==(const AdagradSettings&) const = default;
};
inline AdagradSettings MakeAdagradSettings(const Prepare& p) {
  return {p.attributes().Float("epsilon", 1e-10),
          p.attributes().Float("weight_decay", 0),
          p.attributes().Float("rate_decay", 0),
          p.attributes().Float("rate", 1)};
}

struct AdagradFactors {
  float rate, weight_decay, epsilon;
};
LOADLINE_HOST_DEVICE inline AdagradFactors MakeFactors(const AdagradSettings& s,
                                                       const Progress& at) {
  const double rate = at.learning_rate * s.rate;
  return {static_cast<float>(rate / (1 + at.earlier * s.rate_decay)),
          static_cast<float>(s.weight_decay), static_cast<float>(s.epsilon)};
}

LOADLINE_HOST_DEVICE inline Updated UpdateOne(const AdagradFactors& f, float p,
                                              float gradient, float sum_in) {
  if (f.weight_decay != 0) gradient += f.weight_decay * p;
  const float sum = sum_in + gradient * gradient;
  return {p - f.rate * (gradient / (sqrtf(sum) + f.epsilon)), sum};
}

struct LionSettings {
  double beta1, beta2, weight_decay;
  double rate;  // factor of the learning rate

  bool operator==(const LionSettings&) const = default;
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
LOADLINE_HOST_DEVICE inline LionFactors MakeFactors(const LionSettings& s,
                                                    const Progress& at) {
  const double rate = at.learning_rate * s.rate;
  return {static_cast<float>(rate),
          static_cast<float>(1 - rate * s.weight_decay),
          static_cast<float>(s.beta1),
          static_cast<float>(1 - s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1 - s.beta2)};
}

LOADLINE_HOST_DEVICE inline Updated UpdateOne(const LionFactors& f, float p,
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
