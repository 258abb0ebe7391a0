// Reshape as a product of factors, and which factor carries the channels.
//
//   [N, C, H, W] -> [N, C*H*W]: blocks {N} -> {N} and {C, H, W} -> {C*H*W}
//   [B, S, H*D] -> [B, S, H, D]: the last block has factors H and D
#ifndef LOADLINE_PASSES_COMPRESS_RESHAPE_BLOCKS_H_
#define LOADLINE_PASSES_COMPRESS_RESHAPE_BLOCKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph.h"
#include "passes/compress/axis_atoms.h"

namespace loadline::passes {

// Index i of the axis has index (i / stride) % size of the factor.
struct ReshapeFactor {
  AxisRef in;
  AxisRef out;
  int64_t size = 0;
  int64_t in_stride = 1;
  int64_t out_stride = 1;
};

// Axes next to each other with equal products, as few as possible. Axes of one
// index are in none.
struct ReshapeBlock {
  std::string node;
  std::vector<AxisRef> in;
  std::vector<AxisRef> out;
  std::vector<ReshapeFactor> factors;  // from the outermost; empty: none exist,
                                       // as in [4, 6] -> [6, 4]
};

std::vector<ReshapeBlock> BlocksOfReshape(const models::Graph& graph,
                                          const models::Node& node);

// Chooses the factor of each block that may be pruned, unites the indices that
// it ties together, and freezes the other axes of the block: two factors of
// one axis cannot shrink independently of each other. A factor can be chosen if
// neither of its axes is all frozen. Blocks with a single such factor come
// first, because each choice freezes axes of others. Where several are left,
// the order of preference is: no statistics over it, the heads of an attention,
// the larger, the outer one.
void ResolveReshapes(std::vector<ReshapeBlock> blocks, AxisAtoms& atoms);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_RESHAPE_BLOCKS_H_
