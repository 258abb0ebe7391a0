// How each operator relates the indices of its inputs and outputs: the rules of
// the dependency groups.
#ifndef LOADLINE_PASSES_COMPRESS_RELATE_H_
#define LOADLINE_PASSES_COMPRESS_RELATE_H_

#include <vector>

#include "models/graph.h"
#include "passes/compress/axis_atoms.h"
#include "passes/compress/reshape_blocks.h"

namespace loadline::passes {

// Applies the rules of all operators but Reshape, in the nodes' order, after
// freezing the axes of the graph's inputs and outputs. Returns what Reshapes
// leave open, for ResolveReshapes. An operator without a rule freezes every
// axis of its inputs and outputs.
//
// What is decided here:
// - Convolution with groups: whole convolution groups are the unit where there
//   are at least as many of them as channels in one (depthwise, ResNeXt); else
//   the channels of one position in every group.
// - Softmax, TopK, CumSum, windows and positions that indices name: frozen.
// - A quotient, logarithm or root of channels: marked approximate, because a
//   masked channel is zero there.
// - Statistics over channels (LayerNormalization, ReduceMean, ...): allowed and
//   marked approximate, because the removed channels no longer count in them.
std::vector<ReshapeBlock> RelateAxes(const models::Graph& graph,
                                     AxisAtoms& atoms);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_RELATE_H_
