// Networks in the shape of well-known ones, small, as an import would give
// them.
#ifndef LOADLINE_TESTS_PASSES_COMPRESS_NETWORKS_H_
#define LOADLINE_TESTS_PASSES_COMPRESS_NETWORKS_H_

#include "models/graph.h"

namespace loadline::passes {

// Inverted residuals: expansion, depthwise convolution, projection.
models::Graph MobileNetV2();
// Two dense blocks with a transition between them.
models::Graph DenseNet();
// Patches, class token, positions, two blocks of packed attention and an MLP.
models::Graph VisionTransformer();
// Grouped queries, a gated MLP, root-mean-square normalization.
models::Graph LlamaBlock();
// `blocks` bottleneck residuals of `width` channels.
models::Graph Bottlenecks(int64_t blocks, int64_t width);

}  // namespace loadline::passes

#endif  // LOADLINE_TESTS_PASSES_COMPRESS_NETWORKS_H_
