#include "passes/batch_parts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/example_positions.h"
#include "passes/position_shift.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::kNoValue;
using models::kWhole;
using models::Node;
using models::TensorType;
using models::ValueId;

// Whether an Expand makes its result along `axis` by repeating.
bool IsRepeated(const TensorType& from, const TensorType& to, int64_t axis) {
  const int64_t own = models::AxisOf(axis) - (to.rank() - from.rank());
  return own < 0 || from.dims[static_cast<size_t>(own)] == 1;
}

}  // namespace

absl::StatusOr<ValueId> BatchParts::PartOf(ValueId id, int64_t axis) {
  const auto known = parts_.find({id, axis});
  if (known != parts_.end()) return known->second;
  LOADLINE_ASSIGN_OR_RETURN(const ValueId part, Make(id, axis));
  cut_.Follow(part, cut_[id].whole, axis);
  Remember(id, axis, part);
  return part;
}

absl::StatusOr<ValueId> BatchParts::Make(ValueId id, int64_t axis) {
  const models::Value& value = cut_.graph().value(id);
  if (value.kind == models::ValueKind::kConstant) {
    return PartOfConstantValue(id, axis);
  }
  const auto maker = cut_.makers().find(id);
  if (maker != cut_.makers().end()) {
    const Node& node = maker->second;
    if (node.op == "Expand" &&
        IsRepeated(cut_[node.inputs[0]].whole, value.type, axis)) {
      return WithPartOfShape(node, value.type, axis);
    }
    if (node.op == "Reshape") {
      const auto input_axis = models::SameRange(
          value.type, axis, cut_[node.inputs[0]].whole, cut_.parts());
      if (input_axis.has_value()) {
        return PartOfReshaped(node, id, axis, *input_axis);
      }
    }
    if (node.op == "RandomUniform" &&
        models::ElementsBefore(value.type, axis) == 1) {
      return WithPartOfShape(node, value.type, axis);
    }
    const auto part = PartOfComputed(node, id, axis);
    if (part.ok()) return part;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "'", cut_.graph().value(id).name, "' ", cut_[id].whole.ToString(),
      " does not depend on the batch and has an axis for it"));
}

absl::StatusOr<ValueId> BatchParts::PartOfConstantValue(ValueId id,
                                                        int64_t axis) {
  const models::Value& value = cut_.graph().value(id);
  LOADLINE_ASSIGN_OR_RETURN(PartOfConstant part,
                            CommonPart(value, axis, cut_.parts()));
  const TensorType whole = value.type;
  const std::string name = absl::StrCat(value.name, ".part");
  const ValueId made = cut_.graph().AddConstant(name, std::move(part.part));
  cut_.Follow(made, whole, axis);
  cut_[made].shift = part.shift;
  return made;
}

absl::StatusOr<ValueId> BatchParts::PartOfReshaped(const Node& node, ValueId id,
                                                   int64_t axis,
                                                   int64_t input_axis) {
  Node part = node;
  const TensorType type = cut_.graph().value(id).type;
  LOADLINE_ASSIGN_OR_RETURN(part.inputs[0], PartOf(part.inputs[0], input_axis));
  LOADLINE_ASSIGN_OR_RETURN(const ValueId made,
                            WithPartOfShape(part, type, axis));
  cut_.Follow(made, type, axis);
  cut_[made].shift = cut_.Shift(part.inputs[0]);
  return made;
}

// The node once more, on parts of what it reads, such as the first product of a
// recurrent layer's initial state.
absl::StatusOr<ValueId> BatchParts::PartOfComputed(const Node& node, ValueId id,
                                                   int64_t axis) {
  const std::vector<const TensorType*> types = cut_.WholeInputs(node);
  const std::vector<TensorType> outputs = cut_.WholeOutputs(node);
  const auto at = static_cast<size_t>(
      std::find(node.outputs.begin(), node.outputs.end(), id) -
      node.outputs.begin());
  for (size_t i = 0; i < types.size(); ++i) {
    for (int64_t a = 0; types[i] != nullptr && a < types[i]->rank(); ++a) {
      std::vector<int64_t> axes(types.size(), kWhole);
      axes[i] = a;
      const auto node_cut = models::CutNode(node, types, outputs, axes,
                                            cut_.parts(), cut_.statistics());
      if (!node_cut.ok() || node_cut->outputs[at] != axis) continue;
      // A table is read whole, at the same positions by each part.
      if (node_cut->position_shift != 0) continue;
      return OnParts(node, *node_cut, at);
    }
  }
  return absl::FailedPreconditionError("no part");
}

absl::StatusOr<ValueId> BatchParts::OnParts(const Node& node,
                                            const models::NodeCut& node_cut,
                                            size_t output) {
  std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node_cut.inputs[i] == kWhole) continue;
    LOADLINE_ASSIGN_OR_RETURN(inputs[i], PartOf(inputs[i], node_cut.inputs[i]));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t shift,
      ShiftOfResults(cut_, node, inputs, node_cut.position_shift));
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      cut_.graph().AddNode(node.op, cut_.NewName(node.name, ".part"),
                           std::move(inputs), node_cut.attributes, node.phase));
  cut_.Follow(made[output], cut_[node.outputs[output]].whole,
              node_cut.outputs[output]);
  cut_[made[output]].shift = shift;
  return made[output];
}

// The node, with a shape that is shorter along `axis`.
absl::StatusOr<ValueId> BatchParts::WithPartOfShape(const Node& node,
                                                    TensorType type,
                                                    int64_t axis) {
  models::Attributes attributes = node.attributes;
  attributes.Set("shape", models::PartOf(type, axis, cut_.parts()).dims);
  if (node.op == "RandomUniform") {
    attributes.Set("offset", attributes.Int("offset", 0));
  }
  LOADLINE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> made,
      cut_.graph().AddNode(node.op, cut_.NewName(node.name, ".part"),
                           node.inputs, std::move(attributes), node.phase));
  return made[0];
}

}  // namespace loadline::passes
