// Shapes of Conv and its gradients, shared by all devices.
#ifndef LOADLINE_EXECUTOR_OPS_CONV_SHAPES_H_
#define LOADLINE_EXECUTOR_OPS_CONV_SHAPES_H_

#include "absl/status/statusor.h"
#include "executor/ops/prepare.h"

namespace loadline::executor {

struct ConvShapes {
  Ints x, w, y;  // NCHW, NCW or NCDHW; w is OIHW with the channels of one group
  Ints strides, dilations, pads_begin, pads_end;
  int64_t group = 1;
};

// InvalidArgument: attributes that do not match. Unimplemented: neither 1-d,
// 2-d nor 3-d.
absl::StatusOr<ConvShapes> MakeConvShapes(const Prepare& p, const TensorType& x,
                                          const TensorType& w,
                                          const TensorType& y);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_OPS_CONV_SHAPES_H_
