// Clamps at numbers, as PyTorch has them.
#ifndef LOADLINE_MODELS_ONNX_CLIP_AT_NUMBERS_H_
#define LOADLINE_MODELS_ONNX_CLIP_AT_NUMBERS_H_

#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// PyTorch's newer exporter writes a clamp as Max and Min. Where an element is
// at a bound, PyTorch's gradient is half for a tensor, as theirs, and 0 for a
// number, as Clip's.
void ClipAtNumbers(onnx::GraphProto* graph);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_CLIP_AT_NUMBERS_H_
