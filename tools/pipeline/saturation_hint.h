// What ONNX Runtime needs for exact sums of 8-bit weights on old processors.
#ifndef LOADLINE_TOOLS_PIPELINE_SATURATION_HINT_H_
#define LOADLINE_TOOLS_PIPELINE_SATURATION_HINT_H_

#include <string>

#include "absl/types/span.h"
#include "models/graph.h"
#include "passes/compress/add_fake_quantize.h"

namespace loadline::tools {

// `graph`: the model with the quantizers of the export. Empty if no sum can
// saturate: weights of 7 bits or fewer, and codebooks, which are no integers.
std::string SaturationHint(const models::Graph& graph,
                           absl::Span<const passes::QuantizedTensor> tensors);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_SATURATION_HINT_H_
