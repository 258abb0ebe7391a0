// Masks channels: their parameters become zero, and every shape stays.
#ifndef LOADLINE_PASSES_COMPRESS_MASK_CHANNELS_H_
#define LOADLINE_PASSES_COMPRESS_MASK_CHANNELS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/graph.h"
#include "passes/compress/prune_groups.h"

namespace loadline::passes {

// `model` with zeros in every f32 parameter of masked[g], channels of
// groups[g]. If no group with a masked channel is approximate, it computes what
// PruneGraph makes of the model without them. Parameters without contents stay
// without.
models::Graph MaskChannels(models::Graph model,
                           absl::Span<const PruneGroup> groups,
                           absl::Span<const std::vector<int64_t>> masked);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_MASK_CHANNELS_H_
