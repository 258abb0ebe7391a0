// One rule per operator that names sizes or positions. Each gives the node of
// the file the numbers of the pruned graph, whose nodes and values have the ids
// of the imported one.
#ifndef LOADLINE_MODELS_ONNX_PRUNED_RULES_H_
#define LOADLINE_MODELS_ONNX_PRUNED_RULES_H_

#include "models/onnx/pruned_file.h"
#include "onnx/onnx_pb.h"

namespace loadline::models::onnx_internal {

// pruned_shapes.cc: Reshape and Expand, whose shape the file has or computes.
void RewriteShape(PrunedFile& file, onnx::NodeProto* node);

// pruned_movement.cc
void RewriteSlice(PrunedFile& file, onnx::NodeProto* node);
void RewriteSplit(PrunedFile& file, onnx::NodeProto* node);
void RewriteSplitToSequence(PrunedFile& file, onnx::NodeProto* node);
void RewritePad(PrunedFile& file, onnx::NodeProto* node);
void RewriteResize(PrunedFile& file, onnx::NodeProto* node);

// pruned_layers.cc: groups, heads and hidden units.
void RewriteConvolution(PrunedFile& file, onnx::NodeProto* node);
void RewriteGroupNormalization(PrunedFile& file, onnx::NodeProto* node);
void RewriteRecurrent(PrunedFile& file, onnx::NodeProto* node);
void RewriteAttention(PrunedFile& file, onnx::NodeProto* node);

// pruned_operands.cc: operands of any operator that are constants.
void RewriteConstantOperands(PrunedFile& file, onnx::NodeProto* node);
void RewriteRandomLike(PrunedFile& file, onnx::NodeProto* node);
// What the file computes out of a size that has changed, such as the root of a
// head's width or the middle of a Slice, becomes what it was. Runs after the
// other rules, which have replaced what has to change.
void FreezeStale(PrunedFile& file, onnx::NodeProto* node);

}  // namespace loadline::models::onnx_internal

#endif  // LOADLINE_MODELS_ONNX_PRUNED_RULES_H_
