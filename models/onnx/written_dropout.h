// Dropout and stochastic depth as exporters write them out: a mask of random
// bits divided by the share of ones.
#ifndef LOADLINE_MODELS_ONNX_WRITTEN_DROPOUT_H_
#define LOADLINE_MODELS_ONNX_WRITTEN_DROPOUT_H_

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// Writes them as Dropout, so that it is off where Dropout is off:
//
//   Less(RandomUniformLike(e), p) -> Cast -> Div by p -> Mul by x
//
// becomes Dropout(x) of ratio 1 - p if e is shown to have the shape of x, and
// otherwise Dropout(ones) -> Mul by x. Bernoulli of p as well. The random
// numbers are left without a reader, or with Shape as the only one.
void RestoreWrittenDropout(onnx::GraphProto* graph);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_WRITTEN_DROPOUT_H_
