// The codecs of a step as operators, to measure them.
#ifndef LOADLINE_TOOLS_PIPELINE_CODEC_GRAPH_H_
#define LOADLINE_TOOLS_PIPELINE_CODEC_GRAPH_H_

#include "absl/status/statusor.h"
#include "models/graph.h"

namespace loadline::tools {

// An Encode and a Decode for each value and codec that a problem of the step
// may offer; with `lossy` the lossy ones too. Without "bf16", whose Encode
// refuses the numbers that measuring makes up.
absl::StatusOr<models::Graph> CodecGraph(const models::Graph& step, bool lossy);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_CODEC_GRAPH_H_
