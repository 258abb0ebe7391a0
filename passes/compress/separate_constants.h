// Gives every reader of a constant its own copy.
#ifndef LOADLINE_PASSES_COMPRESS_SEPARATE_CONSTANTS_H_
#define LOADLINE_PASSES_COMPRESS_SEPARATE_CONSTANTS_H_

#include "models/graph.h"

namespace loadline::passes {

// The import shares constants of equal contents, so that two layers that have
// nothing else in common would have to lose the same channels. Here each input
// of a node that reads a constant of more than one element has a value of its
// own: the first reader the constant itself, the others copies, which are
// appended to the values. Constants that an output or an update names are left.
models::Graph SeparateConstants(const models::Graph& model);

// The opposite, after the contents were sliced: a value beyond the first
// `count` that equals an earlier one gives way to it.
void JoinConstants(size_t count, models::Graph* graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_COMPRESS_SEPARATE_CONSTANTS_H_
