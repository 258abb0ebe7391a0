// One pass over the nodes in order. models::CutNode follows the axis of the
// examples from the inputs to the loss, which proves that each part has the
// numbers of the whole; shapes that the model's file has as constants change
// with it. Tested in tests/passes/cut_batch_test.cc.
#include "passes/cut_batch.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/ops/cut_axis.h"
#include "models/ops/operator.h"
#include "passes/example_positions.h"
#include "passes/remove_dead_nodes.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::kNoValue;
using models::kWhole;
using models::Node;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

absl::Status Unalike(const models::Value& value, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("'", value.name, "' ", value.type.ToString(), " ", why));
}

class BatchCutter {
 public:
  BatchCutter(Graph& graph, int64_t parts, models::BatchStatistics statistics)
      : graph_(graph),
        parts_(parts),
        statistics_(statistics),
        axis_(graph.values.size(), kWhole),
        shift_(graph.values.size(), 0),
        whole_(graph.values.size()),
        trained_(graph.values.size(), false) {
    for (size_t i = 0; i < graph.values.size(); ++i) {
      whole_[i] = graph.values[i].type;
      trained_[i] = graph.values[i].kind == ValueKind::kParameter;
    }
  }

  absl::Status Run() {
    const absl::Status status = CutAll();
    // What could not be cut without the numbers of all parts says more than
    // what could not be cut with them.
    return status.ok() || first_refusal_.ok() ? status : first_refusal_;
  }

  // Of the loss: kAdded or kMean after Run.
  int64_t loss_axis() const { return loss_axis_; }

  // Whether a part reads numbers of all parts.
  bool reads_all_parts() const { return !first_refusal_.ok(); }

 private:
  bool AnyCut(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [this](ValueId id) {
                         return id != kNoValue && axis_[Index(id)] != kWhole;
                       });
  }

  absl::Status CutAll() {
    LOADLINE_RETURN_IF_ERROR(CutInputs());
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const Node& node : nodes) names_.insert(node.name);
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (ValueId id : nodes[n].outputs) {
        maker_[id] = nodes[n];
        trained_[Index(id)] = ReadsTrained(nodes[n]);
      }
      LOADLINE_RETURN_IF_ERROR(CutOrReadAll(nodes[n]));
      graph_.nodes.push_back(std::move(nodes[n]));
    }
    LOADLINE_RETURN_IF_ERROR(CheckUpdates());
    loss_axis_ = axis_[Index(graph_.outputs[0])];
    return WeighLoss();
  }

  bool ReadsTrained(const Node& node) const {
    return std::any_of(
        node.inputs.begin(), node.inputs.end(),
        [this](ValueId id) { return id != kNoValue && trained_[Index(id)]; });
  }

  absl::Status CutInputs() {
    for (ValueId id : graph_.inputs) {
      models::Value& input = graph_.value(id);
      if (input.type.dims.empty() || input.type.dims[0] % parts_ != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "input '", input.name, "' ", input.type.ToString(),
            " does not divide into ", parts_,
            " equal micro-batches; the number must be a divisor of ",
            MostParts(graph_)));
      }
      axis_[Index(id)] = 0;
      input.type = models::PartOf(input.type, 0, parts_);
    }
    return absl::OkStatus();
  }

  // A node that cannot be cut may still read the whole of a value on which no
  // parameter has an influence, such as the number of unmasked elements: every
  // part computes its own part of that first, and no gradient flows there.
  absl::Status CutOrReadAll(Node& node) {
    if (!AnyCut(node)) return absl::OkStatus();
    const Node original = node;
    const absl::Status refused = Cut(node);
    if (!absl::IsFailedPrecondition(refused)) return refused;
    node = original;
    for (ValueId id : node.outputs) {
      axis_[Index(id)] = kWhole;
      shift_[Index(id)] = 0;
      graph_.value(id).type = whole_[Index(id)];
    }
    LOADLINE_ASSIGN_OR_RETURN(const bool reads_all, ReadAllParts(node));
    if (!reads_all) return refused;
    first_refusal_.Update(refused);
    if (AnyCut(node)) return Cut(node);
    for (ValueId id : node.outputs) maker_[id] = node;
    return absl::OkStatus();
  }

  // Replaces the inputs of which the whole can be had; false: there are none.
  absl::StatusOr<bool> ReadAllParts(Node& node) {
    bool found = false;
    for (ValueId& id : node.inputs) {
      if (id == kNoValue || !HasWhole(id)) continue;
      LOADLINE_ASSIGN_OR_RETURN(id, WholeOf(id));
      found = true;
    }
    return found;
  }

  bool HasWhole(ValueId id) const {
    const int64_t axis = axis_[Index(id)];
    if (trained_[Index(id)] || Shift(id) != 0 || axis == kWhole) return false;
    if (axis == models::kAdded || axis == models::kMean) {
      return graph_.value(id).type.dtype == models::DType::kF32;
    }
    return axis >= 0 && models::OuterOf(axis) == 1;
  }

  // All parts of the value joined; sums and means are added up.
  absl::StatusOr<ValueId> WholeOf(ValueId id) {
    const auto known = whole_of_.find(id);
    if (known != whole_of_.end()) return known->second;
    const int64_t axis = axis_[Index(id)];
    ValueId part = id;
    if (axis < 0) {
      std::vector<int64_t> shape = graph_.value(id).type.dims;
      shape.insert(shape.begin(), 1);
      LOADLINE_ASSIGN_OR_RETURN(
          part, AddWhole("Reshape", id, {id}, {{"shape", std::move(shape)}}));
    }
    const std::vector<ValueId> parts(static_cast<size_t>(parts_), part);
    LOADLINE_ASSIGN_OR_RETURN(ValueId whole,
                              AddWhole("Concat", id, parts,
                                       {{"axis", std::max<int64_t>(axis, 0)},
                                        {"of_parts", int64_t{1}}}));
    if (axis < 0) {
      const char* reduce = axis == models::kAdded ? "ReduceSum" : "ReduceMean";
      LOADLINE_ASSIGN_OR_RETURN(whole, AddWhole(reduce, id, {whole},
                                                {{"axes", models::Ints{0}},
                                                 {"keepdims", int64_t{0}}}));
    }
    if (axis >= 0) parts_of_[{whole, axis}] = id;
    whole_of_[id] = whole;
    return whole;
  }

  absl::StatusOr<ValueId> AddWhole(absl::string_view op, ValueId of,
                                   std::vector<ValueId> inputs,
                                   models::Attributes attributes) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        graph_.AddNode(
            std::string(op), NewName(graph_.value(of).name, ".whole"),
            std::move(inputs), std::move(attributes), models::Phase::kForward));
    Follow(made[0], graph_.value(made[0]).type, kWhole);
    return made[0];
  }

  absl::Status Cut(Node& node) {
    if (node.op == "SoftmaxCrossEntropy") {
      LOADLINE_RETURN_IF_ERROR(AddCount(node));
    }
    if (node.op == "Add" || node.op == "Sub") {
      LOADLINE_RETURN_IF_ERROR(ShareTerms(node));
    }
    if (node.op == "Gather") LOADLINE_RETURN_IF_ERROR(CutRowsRead(node));
    std::vector<const TensorType*> types;
    std::vector<int64_t> axes;
    for (ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : &whole_[Index(id)]);
      axes.push_back(id == kNoValue ? kWhole : axis_[Index(id)]);
    }
    std::vector<TensorType> outputs;
    for (ValueId id : node.outputs) outputs.push_back(whole_[Index(id)]);
    LOADLINE_ASSIGN_OR_RETURN(
        models::NodeCut cut,
        models::CutNode(node, types, outputs, axes, parts_, statistics_));
    if (cut.position_shift != 0 &&
        !AreNeverNegative(graph_, maker_, node.inputs[1], RowsOf(node))) {
      return Refuse(node, "may read other examples");
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (axes[i] == kWhole && cut.inputs[i] != kWhole) {
        LOADLINE_ASSIGN_OR_RETURN(node.inputs[i],
                                  PartOfWhole(node.inputs[i], cut.inputs[i]));
      }
    }
    LOADLINE_ASSIGN_OR_RETURN(const int64_t shift,
                              ShiftOf(node, node.inputs, cut.position_shift));
    if (cut.position_shift != 0 && IsWithin(graph_.value(node.inputs[1]), 0) &&
        !IsWithin(graph_.value(node.inputs[1]), 0, cut.position_shift - 1)) {
      return Refuse(node, "may read other examples");
    }
    node.attributes = std::move(cut.attributes);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      axis_[Index(node.outputs[i])] = cut.outputs[i];
      shift_[Index(node.outputs[i])] = shift;
    }
    return SetTypes(node);
  }

  int64_t Shift(ValueId id) const {
    return id == kNoValue ? 0 : shift_[Index(id)];
  }

  // The shift of the results of `node` on parts of its inputs, the positions of
  // which a part must get shifted by `position_shift`.
  absl::StatusOr<int64_t> ShiftOf(const Node& node,
                                  const std::vector<ValueId>& inputs,
                                  int64_t position_shift) const {
    std::vector<int64_t> shifts;
    for (ValueId id : inputs) shifts.push_back(Shift(id));
    if (position_shift != 0) {
      if (shifts[1] != position_shift) {
        return Refuse(node, "may read other examples");
      }
      shifts[1] = 0;
    }
    if (std::all_of(shifts.begin(), shifts.end(),
                    [](int64_t shift) { return shift == 0; })) {
      return 0;
    }
    int64_t sum = 0;
    if (node.op == "Add" &&
        !__builtin_add_overflow(shifts[0], shifts[1], &sum)) {
      return sum;
    }
    if (node.op == "Sub" &&
        !__builtin_sub_overflow(shifts[0], shifts[1], &sum)) {
      return sum;
    }
    if (node.op == "Mul") {
      for (const size_t i : {size_t{0}, size_t{1}}) {
        const std::optional<int64_t> factor = NumberIn(inputs[1 - i]);
        if (shifts[1 - i] == 0 && factor.has_value() &&
            !__builtin_mul_overflow(shifts[i], *factor, &sum)) {
          return sum;
        }
      }
    }
    if (node.op == "Where" && shifts[0] == 0) {
      if (shifts[1] == shifts[2]) return shifts[1];
      if (IsBeyond(inputs[1], shifts[2])) return shifts[2];
      if (IsBeyond(inputs[2], shifts[1])) return shifts[1];
    }
    if (MovesElements(node)) return shifts[0];
    return Refuse(node, "computes with numbers of examples");
  }

  // The only element of a constant.
  std::optional<int64_t> NumberIn(ValueId id) const {
    const models::Value& value = graph_.value(id);
    if (value.kind != ValueKind::kConstant ||
        value.type.dtype != models::DType::kI64 || value.type.elements() != 1) {
      return std::nullopt;
    }
    return value.initial->as<int64_t>()[0];
  }

  // Whether it is one number that is no position, in the whole or in a part.
  bool IsBeyond(ValueId id, int64_t shift) const {
    const std::optional<int64_t> number = NumberIn(id);
    return Shift(id) == 0 && number.has_value() && shift > 0 &&
           *number / shift >= parts_;
  }

  // Of Gather, GatherGrad or a scatter: how many rows there are positions of,
  // in the whole.
  int64_t RowsOf(const Node& node) const {
    const ValueId rows = node.op == "Gather" ? node.inputs[0] : node.outputs[0];
    return whole_[Index(rows)]
        .dims[static_cast<size_t>(node.attributes.Int("axis", 0))];
  }

  static absl::Status Refuse(const Node& node, absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat(node.op, " '", node.name, "' ", why));
  }

  // The types of a part, which must be the whole's with one axis shorter.
  absl::Status SetTypes(const Node& node) {
    std::vector<const TensorType*> types;
    for (ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : &graph_.value(id).type);
    }
    LOADLINE_ASSIGN_OR_RETURN(std::vector<TensorType> made,
                              models::InferTypes(node, types));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      const int64_t axis = axis_[Index(id)];
      const TensorType& whole = whole_[Index(id)];
      if (made[i] != (axis < 0 ? whole : models::PartOf(whole, axis, parts_))) {
        return absl::FailedPreconditionError(absl::StrCat(
            node.op, " '", node.name, "' makes ", made[i].ToString(),
            " of a part of the batch, and ", whole.ToString(), " of it all"));
      }
      graph_.value(id).type = std::move(made[i]);
    }
    return absl::OkStatus();
  }

  // The axis and the whole type of values that were added meanwhile.
  void Follow(ValueId id, TensorType whole, int64_t axis) {
    axis_.resize(graph_.values.size(), kWhole);
    shift_.resize(graph_.values.size(), 0);
    whole_.resize(graph_.values.size());
    trained_.resize(graph_.values.size(), false);
    axis_[Index(id)] = axis;
    whole_[Index(id)] = std::move(whole);
  }

  absl::Status AddCount(Node& loss) {
    std::vector<ValueId>& inputs = loss.inputs;
    if (inputs.size() > 2 && inputs[2] != kNoValue) return absl::OkStatus();
    std::vector<ValueId> counted = {inputs[1]};
    if (inputs.size() > 3) counted.push_back(inputs[3]);  // weights
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> count,
        graph_.AddNode("CountTargets", NewName(loss.name, ".count"), counted,
                       {}, models::Phase::kLoss));
    Follow(count[0], graph_.value(count[0]).type, kWhole);
    if (inputs.size() < 3) inputs.push_back(kNoValue);
    inputs[2] = count[0];
    return absl::OkStatus();
  }

  // Rows that do not depend on the batch and are read at positions that count
  // through all examples: those of one part.
  absl::Status CutRowsRead(Node& gather) {
    const ValueId rows = gather.inputs[0];
    const auto axis = static_cast<size_t>(gather.attributes.Int("axis", 0));
    const int64_t shift = Shift(gather.inputs[1]);
    const int64_t size = whole_[Index(rows)].dims[axis];
    if (axis_[Index(rows)] != kWhole || shift == 0 || size % parts_ != 0 ||
        size / parts_ != shift) {
      return absl::OkStatus();
    }
    LOADLINE_ASSIGN_OR_RETURN(gather.inputs[0],
                              PartOfWhole(rows, static_cast<int64_t>(axis)));
    return absl::OkStatus();
  }

  // With a sum over the batch, each part adds its share of a term that is not
  // one: of a penalty on weights, a constant or a mean.
  absl::Status ShareTerms(Node& node) {
    for (size_t i = 0; i < 2; ++i) {
      if (axis_[Index(node.inputs[1 - i])] != models::kAdded) continue;
      const ValueId term = node.inputs[i];
      const int64_t axis = axis_[Index(term)];
      if ((axis != kWhole && axis != models::kMean) ||
          graph_.value(term).type.dtype != models::DType::kF32) {
        continue;
      }
      LOADLINE_ASSIGN_OR_RETURN(node.inputs[i], ShareOf(term));
      Follow(node.inputs[i], whole_[Index(term)], models::kAdded);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> ShareOf(ValueId id) {
    if (number_of_parts_ == kNoValue) {
      number_of_parts_ = graph_.AddConstant(
          "micro_batches", models::ScalarTensor(static_cast<float>(parts_)));
      Follow(number_of_parts_, graph_.value(number_of_parts_).type, kWhole);
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> share,
        graph_.AddNode("Div", NewName(graph_.value(id).name, ".part"),
                       {id, number_of_parts_}, {}, models::Phase::kLoss));
    return share[0];
  }

  // A value that does not depend on the batch and yet has an axis as long as
  // the batch: one part, which is the same for all.
  absl::StatusOr<ValueId> PartOfWhole(ValueId id, int64_t axis) {
    const auto known = parts_of_.find({id, axis});
    if (known != parts_of_.end()) return known->second;
    LOADLINE_ASSIGN_OR_RETURN(const ValueId part, MakePart(id, axis));
    Follow(part, whole_[Index(id)], axis);
    parts_of_[{id, axis}] = part;
    return part;
  }

  absl::StatusOr<ValueId> MakePart(ValueId id, int64_t axis) {
    const models::Value& value = graph_.value(id);
    if (value.kind == ValueKind::kConstant) {
      LOADLINE_ASSIGN_OR_RETURN(PartOfConstant part,
                                CommonPart(value, axis, parts_));
      const TensorType whole = value.type;
      const std::string name = absl::StrCat(value.name, ".part");
      const ValueId id_of_part = graph_.AddConstant(name, std::move(part.part));
      Follow(id_of_part, whole, axis);
      shift_[Index(id_of_part)] = part.shift;
      return id_of_part;
    }
    const auto maker = maker_.find(id);
    const Node* node = maker == maker_.end() ? nullptr : &maker->second;
    if (node != nullptr && node->op == "Expand" &&
        IsRepeated(whole_[Index(node->inputs[0])], value.type, axis)) {
      return AddPart(*node, value.type, axis);
    }
    if (node != nullptr && node->op == "Reshape") {
      const TensorType& from = whole_[Index(node->inputs[0])];
      const auto own = models::SameRange(value.type, axis, from, parts_);
      if (own.has_value()) {
        Node part = *node;
        const TensorType type = value.type;
        LOADLINE_ASSIGN_OR_RETURN(part.inputs[0],
                                  PartOfWhole(part.inputs[0], *own));
        LOADLINE_ASSIGN_OR_RETURN(const ValueId made,
                                  AddPart(part, type, axis));
        Follow(made, type, axis);
        shift_[Index(made)] = Shift(part.inputs[0]);
        return made;
      }
    }
    if (node != nullptr && node->op == "RandomUniform" &&
        models::ElementsBefore(value.type, axis) == 1) {
      return AddPart(*node, value.type, axis);
    }
    if (node != nullptr) {
      const auto part = PartOfComputed(*node, id, axis);
      if (part.ok()) return part;
    }
    return Unalike(value,
                   "does not depend on the batch and has an axis for it");
  }

  // The node once more, on parts of what it reads, such as the first product
  // of a recurrent layer's initial state.
  absl::StatusOr<ValueId> PartOfComputed(const Node& node, ValueId id,
                                         int64_t axis) {
    std::vector<const TensorType*> types;
    for (ValueId input : node.inputs) {
      types.push_back(input == kNoValue ? nullptr : &whole_[Index(input)]);
    }
    std::vector<TensorType> outputs;
    for (ValueId output : node.outputs) {
      outputs.push_back(whole_[Index(output)]);
    }
    const auto at = static_cast<size_t>(
        std::find(node.outputs.begin(), node.outputs.end(), id) -
        node.outputs.begin());
    for (size_t i = 0; i < types.size(); ++i) {
      for (int64_t a = 0; types[i] != nullptr && a < types[i]->rank(); ++a) {
        std::vector<int64_t> axes(types.size(), kWhole);
        axes[i] = a;
        const auto cut =
            models::CutNode(node, types, outputs, axes, parts_, statistics_);
        if (!cut.ok() || cut->outputs[at] != axis) continue;
        // A table is read whole, at the same positions by each part.
        if (cut->position_shift != 0) continue;
        return OnParts(node, *cut, at);
      }
    }
    return absl::FailedPreconditionError("no part");
  }

  absl::StatusOr<ValueId> OnParts(const Node& node, const models::NodeCut& cut,
                                  size_t output) {
    std::vector<ValueId> inputs = node.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (cut.inputs[i] == kWhole) continue;
      LOADLINE_ASSIGN_OR_RETURN(inputs[i],
                                PartOfWhole(inputs[i], cut.inputs[i]));
    }
    LOADLINE_ASSIGN_OR_RETURN(const int64_t shift,
                              ShiftOf(node, inputs, cut.position_shift));
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        graph_.AddNode(node.op, NewName(node.name, ".part"), std::move(inputs),
                       cut.attributes, node.phase));
    Follow(made[output], whole_[Index(node.outputs[output])],
           cut.outputs[output]);
    shift_[Index(made[output])] = shift;
    return made[output];
  }

  // The name for a node, unlike those of the nodes that are yet to come.
  std::string NewName(absl::string_view base, absl::string_view what) {
    std::string name = absl::StrCat(base, what);
    while (!names_.insert(name).second) absl::StrAppend(&name, "_");
    return name;
  }

  static bool IsRepeated(const TensorType& from, const TensorType& to,
                         int64_t axis) {
    const int64_t own = models::AxisOf(axis) - (to.rank() - from.rank());
    return own < 0 || from.dims[static_cast<size_t>(own)] == 1;
  }

  // The node, with a shape that is shorter along `axis`.
  absl::StatusOr<ValueId> AddPart(const Node& node, TensorType type,
                                  int64_t axis) {
    models::Attributes attributes = node.attributes;
    attributes.Set("shape", models::PartOf(type, axis, parts_).dims);
    if (node.op == "RandomUniform") {
      attributes.Set("offset", attributes.Int("offset", 0));
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        graph_.AddNode(node.op, NewName(node.name, ".part"), node.inputs,
                       std::move(attributes), node.phase));
    return made[0];
  }

  // Only running statistics can be updated by one part after the other.
  absl::Status CheckUpdates() const {
    std::set<ValueId> by_parts;
    for (const Node& node : graph_.nodes) {
      if (node.op != "RunningStatsUpdate" || !AnyCut(node)) continue;
      by_parts.insert(node.outputs.begin(), node.outputs.end());
    }
    for (const auto& [old, next] : graph_.updates) {
      if (by_parts.count(next) == 0) {
        return Unalike(graph_.value(old),
                       "is updated once for the whole batch");
      }
    }
    return absl::OkStatus();
  }

  // A mean becomes this part's share of the whole mean.
  absl::Status WeighLoss() {
    const ValueId loss = graph_.outputs[0];
    const int64_t axis = axis_[Index(loss)];
    if (axis == models::kAdded) return absl::OkStatus();
    if (axis != models::kMean) {
      return Unalike(graph_.value(loss), "is no loss of the whole batch");
    }
    LOADLINE_ASSIGN_OR_RETURN(graph_.outputs[0], ShareOf(loss));
    return absl::OkStatus();
  }

  Graph& graph_;
  const int64_t parts_;
  const models::BatchStatistics statistics_;
  int64_t loss_axis_ = kWhole;
  std::vector<int64_t> axis_;  // by value: as models::NodeCut has it
  // By value: by how much each element is larger in the next part than what it
  // is here, such as the number of the first token of an example.
  std::vector<int64_t> shift_;
  std::vector<TensorType> whole_;  // by value: its type in the whole batch
  std::vector<bool> trained_;      // by value: depends on a parameter
  std::map<ValueId, ValueId> whole_of_;
  absl::Status first_refusal_;   // of a node that reads all parts instead
  std::set<std::string> names_;  // of the nodes, before and after
  Makers maker_;
  ValueId number_of_parts_ = kNoValue;
  std::map<std::pair<ValueId, int64_t>, ValueId> parts_of_;
};

}  // namespace

absl::Status CutBatch(Graph& graph, int64_t parts,
                      models::BatchStatistics statistics) {
  if (parts < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts, " micro-batches; there must be 1 or more"));
  }
  if (parts == 1) return absl::OkStatus();
  if (graph.outputs.size() != 1) {
    return absl::InvalidArgumentError(
        "a step in micro-batches has no other output than the loss");
  }
  // Importing leaves what nothing reads, such as the joined columns of an
  // index.
  LOADLINE_RETURN_IF_ERROR(RemoveDeadNodes(graph));
  return BatchCutter(graph, parts, statistics).Run();
}

LossReduction FindLossReduction(Graph graph) {
  const int64_t most = MostParts(graph);
  if (most < 2 || graph.outputs.size() != 1) return LossReduction::kUnknown;
  int64_t parts = 2;  // the least, as an axis of 1 says less
  while (most % parts != 0) ++parts;
  if (!RemoveDeadNodes(graph).ok()) return LossReduction::kUnknown;
  BatchCutter cutter(graph, parts, models::BatchStatistics::kOfBatch);
  if (!cutter.Run().ok() || cutter.reads_all_parts()) {
    return LossReduction::kUnknown;
  }
  if (cutter.loss_axis() == models::kMean) return LossReduction::kMean;
  const bool counts =
      std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [](const Node& node) { return node.op == "CountTargets"; });
  return counts ? LossReduction::kMeanOfTargets : LossReduction::kSum;
}

int64_t MostParts(const Graph& graph) {
  int64_t most = 0;
  for (ValueId id : graph.inputs) {
    const TensorType& type = graph.value(id).type;
    most = std::gcd(most, type.dims.empty() ? 1 : type.dims[0]);
  }
  return std::max<int64_t>(most, 1);
}

}  // namespace loadline::passes
