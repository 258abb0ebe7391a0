// The nodes that store a value by a codec and restore it. They are in no
// training step: the executor and the cost model make them for a plan's encode
// and decode steps.
#ifndef LOADLINE_MODELS_CODEC_NODES_H_
#define LOADLINE_MODELS_CODEC_NODES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph.h"

namespace loadline::models {

struct CodecNodes {
  NodeId encode{-1};
  NodeId decode{-1};
  int64_t encoded_bytes = 0;
};

// Adds to `graph` an input like value `id` of `of`, its Encode and its Decode,
// all named after it. Stochastic rounding draws other numbers for each value,
// step and element, and never those of a Dropout. InvalidArgument: the codec
// is not for the value's type, or has no Decode.
absl::StatusOr<CodecNodes> AddCodecNodes(const Graph& of, ValueId id,
                                         absl::string_view codec, Graph* graph);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_CODEC_NODES_H_
