// The device's elementary functions, for formulas shared with the CPU. They are
// CUDA's own: accurate to 2 ulp; Tanh and Sigmoid to 4.
#ifndef LOADLINE_EXECUTOR_CUDA_MATH_H_
#define LOADLINE_EXECUTOR_CUDA_MATH_H_

#include <cuda_runtime.h>

#include <cmath>

#include "models/host_device.h"

namespace loadline::executor::cuda {

struct Math {
  LOADLINE_HOST_DEVICE static float Exp(float x) { return expf(x); }
  LOADLINE_HOST_DEVICE static float Log(float x) { return logf(x); }
  LOADLINE_HOST_DEVICE static float Tanh(float x) { return tanhf(x); }
  LOADLINE_HOST_DEVICE static float Erf(float x) { return erff(x); }
  LOADLINE_HOST_DEVICE static float Expm1OfNegative(float x) {
    return expm1f(x);
  }
  LOADLINE_HOST_DEVICE static float Log1pOfUnit(float x) { return log1pf(x); }
  LOADLINE_HOST_DEVICE static float Sin(float x) { return sinf(x); }
  LOADLINE_HOST_DEVICE static float Cos(float x) { return cosf(x); }
  LOADLINE_HOST_DEVICE static float Atan(float x) { return atanf(x); }
  LOADLINE_HOST_DEVICE static float Sqrt(float x) { return sqrtf(x); }
  LOADLINE_HOST_DEVICE static float Asin(float x) { return asinf(x); }
  LOADLINE_HOST_DEVICE static float Acos(float x) { return acosf(x); }
  LOADLINE_HOST_DEVICE static float Sinh(float x) { return sinhf(x); }
  LOADLINE_HOST_DEVICE static float Cosh(float x) { return coshf(x); }
  LOADLINE_HOST_DEVICE static float Asinh(float x) { return asinhf(x); }
  LOADLINE_HOST_DEVICE static float Acosh(float x) { return acoshf(x); }
  LOADLINE_HOST_DEVICE static float Atanh(float x) { return atanhf(x); }
  LOADLINE_HOST_DEVICE static float Floor(float x) { return floorf(x); }
  LOADLINE_HOST_DEVICE static float Rint(float x) { return rintf(x); }
  LOADLINE_HOST_DEVICE static float Sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
  }
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_MATH_H_
