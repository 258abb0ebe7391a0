// The channels of a tensor that is quantized.
#ifndef LOADLINE_EXECUTOR_OPS_QUANTIZE_CHANNELS_H_
#define LOADLINE_EXECUTOR_OPS_QUANTIZE_CHANNELS_H_

#include "executor/ops/prepare.h"

namespace loadline::executor {

// x as [outer, channels, inner]; without an axis one channel of everything.
inline AxisSplit QuantChannels(const models::Attributes& attributes,
                               const TensorType& x) {
  if (!attributes.Has("axis")) return {1, 1, x.elements()};
  return SplitAt(x.dims, attributes.Int("axis", 0));
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_QUANTIZE_CHANNELS_H_
