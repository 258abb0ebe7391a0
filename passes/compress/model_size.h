// What a model, or one channel of it, costs: parameters, multiply-adds, bytes.
#ifndef LOADLINE_PASSES_COMPRESS_MODEL_SIZE_H_
#define LOADLINE_PASSES_COMPRESS_MODEL_SIZE_H_

#include <cstdint>

#include "models/graph.h"
#include "passes/compress/prune_groups.h"

namespace loadline::passes {

// Of one forward pass with the graph's batch.
struct ModelSize {
  int64_t channels = 0;          // that may be pruned; of a channel: 1
  int64_t parameters = 0;        // trained numbers
  int64_t macs = 0;              // multiply-adds of convolutions and products
  int64_t parameter_bytes = 0;   // of the parameters
  int64_t activation_bytes = 0;  // of what nodes make, without views
};

// `channels` is left 0: it is a matter of the groups.
ModelSize SizeOfModel(const models::Graph& model);

// What the model loses with one channel of the group, the others being kept.
// Channels of a group cost alike. `model` is the graph whose group it is.
ModelSize SizeOfChannel(const models::Graph& model, const PruneGroup& group);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_MODEL_SIZE_H_
