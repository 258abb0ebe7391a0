// One pass over the nodes in order. models::CutNode follows the axis of the
// examples from the inputs to the loss, which proves that each part has the
// numbers of the whole; shapes that the model's file has as constants change
// with it. Tested in tests/passes/cut_batch_test.cc.
#include "passes/cut_batch.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/ops/cut_axis.h"
#include "models/ops/operator.h"
#include "passes/batch_parts.h"
#include "passes/cut_graph.h"
#include "passes/example_positions.h"
#include "passes/position_shift.h"
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
        cut_(graph, parts, statistics),
        batch_parts_(cut_) {}

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
  absl::Status CutAll() {
    LOADLINE_RETURN_IF_ERROR(CutInputs());
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (ValueId id : nodes[n].outputs) {
        cut_.makers()[id] = nodes[n];
        cut_[id].trained = cut_.ReadsTrained(nodes[n]);
      }
      LOADLINE_RETURN_IF_ERROR(CutOrReadAll(nodes[n]));
      graph_.nodes.push_back(std::move(nodes[n]));
    }
    LOADLINE_RETURN_IF_ERROR(CheckUpdates());
    loss_axis_ = cut_[graph_.outputs[0]].axis;
    return WeighLoss();
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
      cut_[id].axis = 0;
      input.type = models::PartOf(input.type, 0, parts_);
    }
    return absl::OkStatus();
  }

  // A node that cannot be cut may still read the whole of a value on which no
  // parameter has an influence, such as the number of unmasked elements: every
  // part computes its own part of that first, and no gradient flows there.
  absl::Status CutOrReadAll(Node& node) {
    if (!cut_.AnyInputCut(node)) return absl::OkStatus();
    const Node original = node;
    const absl::Status refused = Cut(node);
    if (!absl::IsFailedPrecondition(refused)) return refused;
    node = original;
    for (ValueId id : node.outputs) {
      cut_[id].axis = kWhole;
      cut_[id].shift = 0;
      graph_.value(id).type = cut_[id].whole;
    }
    LOADLINE_ASSIGN_OR_RETURN(const bool reads_all, ReadAllParts(node));
    if (!reads_all) return refused;
    first_refusal_.Update(refused);
    if (cut_.AnyInputCut(node)) return Cut(node);
    for (ValueId id : node.outputs) cut_.makers()[id] = node;
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
    const int64_t axis = cut_[id].axis;
    if (cut_[id].trained || cut_.Shift(id) != 0 || axis == kWhole) return false;
    if (axis == models::kAdded || axis == models::kMean) {
      return graph_.value(id).type.dtype == models::DType::kF32;
    }
    return axis >= 0 && models::OuterOf(axis) == 1;
  }

  // All parts of the value joined; sums and means are added up.
  absl::StatusOr<ValueId> WholeOf(ValueId id) {
    const auto known = whole_of_.find(id);
    if (known != whole_of_.end()) return known->second;
    const int64_t axis = cut_[id].axis;
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
    if (axis >= 0) batch_parts_.Remember(whole, axis, id);
    whole_of_[id] = whole;
    return whole;
  }

  absl::StatusOr<ValueId> AddWhole(absl::string_view op, ValueId of,
                                   std::vector<ValueId> inputs,
                                   models::Attributes attributes) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        graph_.AddNode(
            std::string(op), cut_.NewName(graph_.value(of).name, ".whole"),
            std::move(inputs), std::move(attributes), models::Phase::kForward));
    cut_.Follow(made[0], graph_.value(made[0]).type, kWhole);
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
    std::vector<int64_t> axes;
    for (ValueId id : node.inputs) {
      axes.push_back(id == kNoValue ? kWhole : cut_[id].axis);
    }
    LOADLINE_ASSIGN_OR_RETURN(
        models::NodeCut node_cut,
        models::CutNode(node, cut_.WholeInputs(node), cut_.WholeOutputs(node),
                        axes, parts_, cut_.statistics()));
    if (node_cut.position_shift != 0 &&
        !AreNeverNegative(graph_, cut_.makers(), node.inputs[1],
                          RowsOf(node))) {
      return RefuseToCut(node, "may read other examples");
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (axes[i] == kWhole && node_cut.inputs[i] != kWhole) {
        LOADLINE_ASSIGN_OR_RETURN(
            node.inputs[i],
            batch_parts_.PartOf(node.inputs[i], node_cut.inputs[i]));
      }
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const int64_t shift,
        ShiftOfResults(cut_, node, node.inputs, node_cut.position_shift));
    if (node_cut.position_shift != 0 &&
        IsWithin(graph_.value(node.inputs[1]), 0) &&
        !IsWithin(graph_.value(node.inputs[1]), 0,
                  node_cut.position_shift - 1)) {
      return RefuseToCut(node, "may read other examples");
    }
    node.attributes = std::move(node_cut.attributes);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      cut_[node.outputs[i]].axis = node_cut.outputs[i];
      cut_[node.outputs[i]].shift = shift;
    }
    return SetTypes(node);
  }

  // Of Gather, GatherGrad or a scatter: how many rows there are positions of,
  // in the whole.
  int64_t RowsOf(const Node& node) const {
    const ValueId rows = node.op == "Gather" ? node.inputs[0] : node.outputs[0];
    return cut_[rows]
        .whole.dims[static_cast<size_t>(node.attributes.Int("axis", 0))];
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
      const int64_t axis = cut_[id].axis;
      const TensorType& whole = cut_[id].whole;
      if (made[i] != (axis < 0 ? whole : models::PartOf(whole, axis, parts_))) {
        return absl::FailedPreconditionError(absl::StrCat(
            node.op, " '", node.name, "' makes ", made[i].ToString(),
            " of a part of the batch, and ", whole.ToString(), " of it all"));
      }
      graph_.value(id).type = std::move(made[i]);
    }
    return absl::OkStatus();
  }

  absl::Status AddCount(Node& loss) {
    std::vector<ValueId>& inputs = loss.inputs;
    if (inputs.size() > 2 && inputs[2] != kNoValue) return absl::OkStatus();
    std::vector<ValueId> counted = {inputs[1]};
    if (inputs.size() > 3) counted.push_back(inputs[3]);  // weights
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> count,
        graph_.AddNode("CountTargets", cut_.NewName(loss.name, ".count"),
                       counted, {}, models::Phase::kLoss));
    cut_.Follow(count[0], graph_.value(count[0]).type, kWhole);
    if (inputs.size() < 3) inputs.push_back(kNoValue);
    inputs[2] = count[0];
    return absl::OkStatus();
  }

  // Rows that do not depend on the batch and are read at positions that count
  // through all examples: those of one part.
  absl::Status CutRowsRead(Node& gather) {
    const ValueId rows = gather.inputs[0];
    const auto axis = static_cast<size_t>(gather.attributes.Int("axis", 0));
    const int64_t shift = cut_.Shift(gather.inputs[1]);
    const int64_t size = cut_[rows].whole.dims[axis];
    if (cut_[rows].axis != kWhole || shift == 0 || size % parts_ != 0 ||
        size / parts_ != shift) {
      return absl::OkStatus();
    }
    LOADLINE_ASSIGN_OR_RETURN(
        gather.inputs[0],
        batch_parts_.PartOf(rows, static_cast<int64_t>(axis)));
    return absl::OkStatus();
  }

  // With a sum over the batch, each part adds its share of a term that is not
  // one: of a penalty on weights, a constant or a mean.
  absl::Status ShareTerms(Node& node) {
    for (size_t i = 0; i < 2; ++i) {
      if (cut_[node.inputs[1 - i]].axis != models::kAdded) continue;
      const ValueId term = node.inputs[i];
      const int64_t axis = cut_[term].axis;
      if ((axis != kWhole && axis != models::kMean) ||
          graph_.value(term).type.dtype != models::DType::kF32) {
        continue;
      }
      LOADLINE_ASSIGN_OR_RETURN(node.inputs[i], ShareOf(term));
      cut_.Follow(node.inputs[i], cut_[term].whole, models::kAdded);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> ShareOf(ValueId id) {
    if (number_of_parts_ == kNoValue) {
      number_of_parts_ = graph_.AddConstant(
          "micro_batches", models::ScalarTensor(static_cast<float>(parts_)));
      cut_.Follow(number_of_parts_, graph_.value(number_of_parts_).type,
                  kWhole);
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> share,
        graph_.AddNode("Div", cut_.NewName(graph_.value(id).name, ".part"),
                       {id, number_of_parts_}, {}, models::Phase::kLoss));
    return share[0];
  }

  // Only running statistics can be updated by one part after the other.
  absl::Status CheckUpdates() const {
    std::set<ValueId> by_parts;
    for (const Node& node : graph_.nodes) {
      if (node.op != "RunningStatsUpdate" || !cut_.AnyInputCut(node)) continue;
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
    const int64_t axis = cut_[loss].axis;
    if (axis == models::kAdded) return absl::OkStatus();
    if (axis != models::kMean) {
      return Unalike(graph_.value(loss), "is no loss of the whole batch");
    }
    LOADLINE_ASSIGN_OR_RETURN(graph_.outputs[0], ShareOf(loss));
    return absl::OkStatus();
  }

  Graph& graph_;
  const int64_t parts_;
  CutGraph cut_;
  BatchParts batch_parts_;
  int64_t loss_axis_ = kWhole;
  std::map<ValueId, ValueId> whole_of_;
  absl::Status first_refusal_;  // of a node that reads all parts instead
  ValueId number_of_parts_ = kNoValue;
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
