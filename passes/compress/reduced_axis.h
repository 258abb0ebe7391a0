// The axis of a weight that products sum over.
#ifndef LOADLINE_PASSES_COMPRESS_REDUCED_AXIS_H_
#define LOADLINE_PASSES_COMPRESS_REDUCED_AXIS_H_

#include <cstdint>
#include <optional>

#include "models/graph.h"

namespace loadline::passes {

struct ReducedAxis {
  int64_t axis = 0;
  int64_t size = 0;  // how many indices one sum takes, in one group of a Conv
};

// Of a weight that `node` reads, itself or through a Transpose: the channels
// that a convolution reads, the inner axis of a matrix product. None: the node
// is no product, or does not read the weight.
std::optional<ReducedAxis> ReducedAxisOf(const models::Graph& model,
                                         const models::Node& node,
                                         models::ValueId weight);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_REDUCED_AXIS_H_
