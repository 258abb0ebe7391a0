// Adafactor's update, shared by all devices: the order of operations is that of
// torch.optim.Adafactor. A parameter with two axes or more is a stack of
// matrices of its last two.
#ifndef LOADLINE_EXECUTOR_OPS_ADAFACTOR_FORMULAS_H_
#define LOADLINE_EXECUTOR_OPS_ADAFACTOR_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "executor/device/kernel.h"
#include "executor/ops/prepare.h"
#include "models/host_device.h"

namespace loadline::executor {

// `rows` is 0 where the parameter has fewer than two axes; then its one state
// has a number for each element.
struct AdafactorShape {
  int64_t elements, matrices, rows, columns;

  LOADLINE_HOST_DEVICE bool factored() const { return rows > 0; }
};
inline AdafactorShape AdafactorShapeOf(const Prepare& p) {
  const Ints& dims = p.input(0).dims;
  const int64_t n = p.input(0).elements();
  if (dims.size() < 2 || n == 0) return {n, 0, 0, 0};
  const int64_t columns = dims[dims.size() - 1], rows = dims[dims.size() - 2];
  return {n, n / (rows * columns), rows, columns};
}

struct AdafactorSettings {
  double beta2_decay, epsilon1, epsilon2, threshold, weight_decay, rate;
};
inline AdafactorSettings MakeAdafactorSettings(const Prepare& p) {
  return {p.attributes().Float("beta2_decay", -0.8),
          p.attributes().Float("epsilon1", 0),
          p.attributes().Float("epsilon2", 1e-3),
          p.attributes().Float("threshold", 1),
          p.attributes().Float("weight_decay", 0),
          p.attributes().Float("rate", 1)};
}

// What all elements of a step share before any of them is known.
struct AdafactorStep {
  float share;            // of the new square in an average
  float smallest_mean;    // of a matrix's row averages
  float smallest_square;  // estimate
  float decay;            // 1 - lr weight_decay
};
LOADLINE_HOST_DEVICE inline AdafactorStep MakeStep(const AdafactorSettings& s,
                                                   const StepScalars& at) {
  const double rate = at.learning_rate * s.rate;
  return {static_cast<float>(pow(static_cast<double>(at.step), s.beta2_decay)),
          static_cast<float>(s.epsilon1),
          static_cast<float>(s.epsilon1 * s.epsilon1),
          static_cast<float>(1 - rate * s.weight_decay)};
}

// The state after a step whose squared gradients have this mean.
LOADLINE_HOST_DEVICE inline float Averaged(const AdafactorStep& s, float state,
                                           float mean) {
  return state + s.share * (mean - state);
}

// The mean of a matrix's row averages as a divisor. NaN stays NaN.
LOADLINE_HOST_DEVICE inline float Divisor(const AdafactorStep& s, double mean) {
  const auto found = static_cast<float>(mean);
  return found < s.smallest_mean ? s.smallest_mean : found;
}

// The gradient divided by the root of the estimate of its square.
LOADLINE_HOST_DEVICE inline float Scaled(const AdafactorStep& s, float gradient,
                                         float square) {
  if (square < s.smallest_square) square = s.smallest_square;
  return gradient / sqrtf(square);
}

// By what the scaled gradient is multiplied: the learning rate relative to the
// parameter's root mean square, and clipped where the update's exceeds
// `threshold`.
LOADLINE_HOST_DEVICE inline float UpdateScale(const AdafactorSettings& s,
                                              const StepScalars& at,
                                              int64_t elements,
                                              double parameter_squares,
                                              double update_squares) {
  const double rate = at.learning_rate * s.rate;
  const double falling = 1 / sqrt(static_cast<double>(at.step));
  const auto n = static_cast<double>(elements);
  const double size = sqrt(parameter_squares / n);
  const double alpha = (size > s.epsilon2 ? size : s.epsilon2) *
                       (rate < falling ? rate : falling);
  const double excess = sqrt(update_squares / n) / s.threshold;
  return static_cast<float>(excess > 1 ? alpha / excess : alpha);
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_ADAFACTOR_FORMULAS_H_
