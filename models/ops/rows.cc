// A stretch of a tensor's bytes, for operators that run on parts of their rows:
// RowsView reads one in place, WriteRows writes one. Rows are leading
// dimensions, so a part of them is one stretch. Tested in
// tests/models/rows_test.cc.
#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/storage.h"
#include "planner/base/align.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

// A view is an operand of kernels, so it must be aligned as a buffer is.
absl::StatusOr<OutputTypes> InferRowsView(const Node& node, InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType type,
                            CheckedShape(node, inputs[0]->dtype));
  LOADLINE_RETURN_IF_ERROR(CheckStretch(node, type, *inputs[0]));
  if (ViewOffsetBytes(node, type) % planner::kBufferAlignmentBytes != 0) {
    return Refuse("attribute start is ", node.attributes.Int("start", 0),
                  ", which is no multiple of ", planner::kBufferAlignmentBytes,
                  " bytes");
  }
  return OutputTypes{std::move(type)};
}

absl::StatusOr<OutputTypes> InferWriteRows(const Node& node,
                                           InputTypes inputs) {
  LOADLINE_ASSIGN_OR_RETURN(TensorType type,
                            CheckedShape(node, inputs[0]->dtype));
  LOADLINE_RETURN_IF_ERROR(CheckStretch(node, *inputs[0], type));
  if (inputs.size() > 1 && inputs[1] != nullptr) {
    LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 1, type));
  }
  return OutputTypes{std::move(type)};
}

// In place, only the part is read and written.
OperatorCost WriteRowsCost(const Node&, InputTypes inputs,
                           absl::Span<const TensorType> outputs) {
  OperatorCost cost;
  cost.bytes = inputs.size() > 1 ? 2 * inputs[0]->bytes()
                                 : inputs[0]->bytes() + outputs[0].bytes();
  return cost;
}

}  // namespace

std::vector<Operator> RowOperators() {
  Operator view;
  view.name = "RowsView";
  view.infer = InferRowsView;
  view.view = true;
  view.attributes = {{"start", AttributeKind::kInt, true},
                     {"shape", AttributeKind::kInts, true}};
  Operator write;
  write.name = "WriteRows";
  write.max_inputs = 2;
  write.infer = InferWriteRows;
  write.cost = WriteRowsCost;
  write.inplace = {{1, 0}};
  write.attributes = view.attributes;
  return {view, write};
}

}  // namespace loadline::models
