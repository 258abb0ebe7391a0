// Fake quantization of one element, and the grid of a range, as all devices and
// the export compute them.
//
// An element x has the code q = clip(rint(x / scale) + zero_point) and becomes
// (q - zero_point) scale. Rounding is to nearest, half to even, as ONNX's
// QuantizeLinear rounds. A scale that is not above zero gives 0.
#ifndef LOADLINE_MODELS_OPS_QUANTIZE_H_
#define LOADLINE_MODELS_OPS_QUANTIZE_H_

#include <cmath>

#include "models/attributes.h"
#include "models/host_device.h"

namespace loadline::models {

// The smallest and the largest code. A symmetric grid lacks the lowest code, so
// that every number has its negative.
struct QuantGrid {
  float least, most;
  bool symmetric;
};
inline QuantGrid MakeQuantGrid(int64_t bits, bool is_signed, bool symmetric) {
  const int64_t codes = int64_t{1} << bits;
  if (!is_signed) {
    return {0, static_cast<float>(codes - 1), symmetric};
  }
  return {static_cast<float>(-codes / 2 + (symmetric ? 1 : 0)),
          static_cast<float>(codes / 2 - 1), symmetric};
}

inline QuantGrid MakeQuantGrid(const Attributes& attributes) {
  return MakeQuantGrid(attributes.Int("bits", 8),
                       attributes.Int("signed", 0) != 0,
                       attributes.Int("symmetric", 0) != 0);
}

// The grid of one channel.
struct ChannelQuantizer {
  QuantGrid grid;
  float scale, zero_point;

  // The code before clipping.
  LOADLINE_HOST_DEVICE float Code(float x) const {
    return rintf(x / scale) + zero_point;
  }
  LOADLINE_HOST_DEVICE float ClippedCode(float x) const {
    const float code = Code(x);
    const float above = code > grid.least ? code : grid.least;
    return above < grid.most ? above : grid.most;
  }
  LOADLINE_HOST_DEVICE float Round(float x) const {
    return scale > 0 ? (ClippedCode(x) - zero_point) * scale : 0.0f;
  }
  // The slope toward x: 1 inside the clip range, as if nothing were rounded.
  LOADLINE_HOST_DEVICE float Slope(float x) const {
    const float code = Code(x);
    return scale > 0 && code >= grid.least && code <= grid.most ? 1.0f : 0.0f;
  }
  // The slope toward the scale (Esser et al. 2020, equation 3).
  LOADLINE_HOST_DEVICE float ScaleSlope(float x) const {
    const float code = Code(x);
    float slope = code - zero_point - x / scale;
    if (code < grid.least) slope = grid.least - zero_point;
    if (code > grid.most) slope = grid.most - zero_point;
    return scale > 0 ? slope : 0.0f;
  }
};

// [low, high] of what was seen. It always holds zero, which must have a code;
// so a range that has seen nothing is [0, 0].
struct RangeRule {
  float momentum;  // share of the old range; 0 for the union
  bool average;

  LOADLINE_HOST_DEVICE void Update(float low, float high, float batch_low,
                                   float batch_high, float* new_low,
                                   float* new_high) const {
    if (low == 0.0f && high == 0.0f) {
      *new_low = batch_low;
      *new_high = batch_high;
    } else if (average) {
      *new_low = low + (batch_low - low) * (1.0f - momentum);
      *new_high = high + (batch_high - high) * (1.0f - momentum);
    } else {
      *new_low = batch_low < low ? batch_low : low;
      *new_high = batch_high > high ? batch_high : high;
    }
  }
};

// The scale and the zero point with which the grid covers a range; scale 1 for
// an empty one.
LOADLINE_HOST_DEVICE inline void CoverRange(const QuantGrid& grid, float low,
                                            float high, float* scale,
                                            float* zero_point) {
  if (grid.symmetric) {
    const float most = -low > high ? -low : high;
    *scale = most > 0 ? most / grid.most : 1.0f;
    *zero_point = 0;
    return;
  }
  const float width = high - low;
  *scale = width > 0 ? width / (grid.most - grid.least) : 1.0f;
  const float zero = grid.least - rintf(low / *scale);
  const float above = zero > grid.least ? zero : grid.least;
  *zero_point = above < grid.most ? above : grid.most;
}

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_QUANTIZE_H_
