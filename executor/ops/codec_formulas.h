// Formulas of the groupwise codec, with the same bits on every device: products
// that are added use fmaf, so that no compiler decides where to round.
#ifndef LOADLINE_EXECUTOR_OPS_CODEC_FORMULAS_H_
#define LOADLINE_EXECUTOR_OPS_CODEC_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "models/host_device.h"

namespace loadline::executor {

// Of one group, as it is stored: an element is about least + level * step.
struct GroupHeader {
  float least;
  float step;
};

// `most_level`: the largest level, 2^bits - 1. `finite`: whether all elements
// are. Otherwise the group decodes to NaN, as a step with such numbers fails.
LOADLINE_HOST_DEVICE inline GroupHeader MakeGroupHeader(float least, float most,
                                                        bool finite,
                                                        float most_level) {
  const float step = (most - least) / most_level;
  if (!finite || !(step < 3.0e38f)) return {nanf(""), nanf("")};
  return {least, step};
}

// Levels per unit; 0 where a group is constant, or not finite.
LOADLINE_HOST_DEVICE inline float InverseStep(const GroupHeader& header) {
  return header.step >= 1.2e-38f ? 1.0f / header.step : 0.0f;
}

// x rounded up with a probability equal to its distance from the level below:
// `uniform` is in [0, 1). 0.5 instead rounds to the nearest level.
LOADLINE_HOST_DEVICE inline uint32_t LevelOf(float x, float least,
                                             float inverse, float uniform,
                                             float most_level) {
  if (!(inverse > 0.0f)) return 0;
  const float level = fmaf(x - least, inverse, uniform);
  // Conversions from float to signed integers vectorize everywhere.
  return static_cast<uint32_t>(
      static_cast<int32_t>(level < most_level ? level : most_level));
}

LOADLINE_HOST_DEVICE inline float OfLevel(uint32_t level,
                                          const GroupHeader& header) {
  return fmaf(static_cast<float>(level), header.step, header.least);
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_CODEC_FORMULAS_H_
