// The nodes that depend on an input are written once for each part; an update
// reads sums instead of the gradients of one part. A sum follows the node that
// makes its last term directly, so that at most one gradient of a part waits.
// Tested in tests/passes/repeat_micro_batches_test.cc, and with numbers in
// tests/end_to_end/micro_batches_test.cc.
#include "passes/repeat_micro_batches.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/micro_batches.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::kNoValue;
using models::Node;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

// How many random numbers one part takes.
int64_t RandomElements(const Graph& graph, const Node& node) {
  const TensorType& first = graph.value(node.outputs[0]).type;
  if (node.op != "Attention" && node.op != "AttentionGrad") {
    return first.elements();
  }
  // One for each query and key: the statistic has one element for each query.
  const bool forward = node.op == "Attention";
  const TensorType& k = graph.value(node.inputs[forward ? 1 : 2]).type;
  const bool interleaved = node.attributes.Int("interleaved", 0) != 0;
  const int64_t keys =
      k.dims[static_cast<size_t>(interleaved ? 1 : k.rank() - 2)];
  const ValueId lse = forward ? node.outputs[1] : node.inputs[5];
  return graph.value(lse).type.elements() * keys;
}

class Repeater {
 public:
  Repeater(Graph& graph, int64_t parts) : graph_(graph), parts_(parts) {}

  absl::Status Run() {
    FindParts();
    nodes_ = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const models::Value& value : graph_.values) names_.insert(value.name);
    for (const Node& node : nodes_) names_.insert(node.name);
    LOADLINE_RETURN_IF_ERROR(FindSummed());
    LOADLINE_RETURN_IF_ERROR(AddInputs());
    for (int64_t part = 0; part < parts_; ++part) {
      for (size_t n = 0; n < nodes_.size(); ++n) {
        const bool differs = by_part_[Index(nodes_[n].outputs[0])];
        if (differs) {
          LOADLINE_RETURN_IF_ERROR(AddPart(n, part));
        } else if (part == 0 && !IsLate(nodes_[n])) {
          LOADLINE_RETURN_IF_ERROR(AddShared(n));
        }
      }
    }
    return AddLate();
  }

 private:
  static bool IsUpdate(const Node& node) {
    return !models::FindOperator(node.op)->recompute;
  }

  // Updates, and what is computed of whole gradients: their norm for clipping.
  bool IsLate(const Node& node) const { return late_[Index(node.outputs[0])]; }

  // Whether it reads its inputs of every part, and so is the same for each.
  static bool ReadsAllParts(const Node& node) {
    return node.op == "CountTargets" ||
           (node.op == "Concat" && node.attributes.Int("of_parts", 0) != 0);
  }

  // Marks the values that late nodes make, and those that differ between the
  // parts.
  void FindParts() {
    by_part_.assign(graph_.values.size(), false);
    late_.assign(graph_.values.size(), false);
    for (ValueId id : graph_.inputs) by_part_[Index(id)] = true;
    for (const Node& node : graph_.nodes) {
      bool differs = node.attributes.Has("offset");
      bool late = IsUpdate(node) || node.op == "SumSquares";
      for (ValueId id : node.inputs) {
        if (id == kNoValue) continue;
        differs = differs || by_part_[Index(id)];
        late = late || late_[Index(id)];
      }
      if (late || ReadsAllParts(node)) differs = false;
      for (ValueId id : node.outputs) {
        by_part_[Index(id)] = differs;
        late_[Index(id)] = late;
      }
    }
  }

  // The input of a late node that is a gradient; -1: none. Anything else that a
  // late node reads, such as a running statistic, is no sum over the parts.
  static int GradientInput(const Node& node) {
    if (node.op == "SumSquares") return 0;
    const bool optimizer = node.op == "Sgd" || node.op == "AdamW" ||
                           node.op == "Adam" || node.op == "Adagrad" ||
                           node.op == "Lion" || node.op == "Adafactor";
    return optimizer ? 1 : -1;
  }

  // Running statistics are updated by those of one part after the other.
  static bool TakesParts(const Node& node) {
    return node.op == "RunningStatsUpdate";
  }

  // Marks what is added up over the parts: the loss and every gradient.
  absl::Status FindSummed() {
    const auto sum = [&](ValueId id) -> absl::Status {
      if (id == kNoValue || late_[Index(id)]) return absl::OkStatus();
      const models::Value& value = graph_.value(id);
      if (by_part_[Index(id)]) {
        sums_[id] = kNoValue;
      } else if (value.kind == ValueKind::kIntermediate) {
        return absl::FailedPreconditionError(absl::StrCat(
            "'", value.name,
            "' does not depend on the batch, so micro-batches cannot add it "
            "up"));
      }
      return absl::OkStatus();
    };
    LOADLINE_RETURN_IF_ERROR(sum(graph_.outputs[0]));
    for (const Node& node : nodes_) {
      if (!IsLate(node)) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId id = node.inputs[i];
        if (static_cast<int>(i) == GradientInput(node)) {
          LOADLINE_RETURN_IF_ERROR(sum(id));
        } else if (TakesParts(node)) {
          continue;
        } else if (id != kNoValue && by_part_[Index(id)]) {
          return absl::FailedPreconditionError(absl::StrCat(
              node.op, " '", node.name, "' reads '", graph_.value(id).name,
              "' of the whole batch, and micro-batches have it in parts"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddInputs() {
    copies_.resize(static_cast<size_t>(parts_));
    std::vector<ValueId> inputs;
    const std::vector<ValueId> first = graph_.inputs;
    for (ValueId id : first) {
      inputs.push_back(id);
      for (int64_t part = 1; part < parts_; ++part) {
        models::Value copy = graph_.value(id);
        copy.name = models::NameInPart(copy.name, part);
        if (graph_.Find(copy.name).has_value()) {
          return absl::FailedPreconditionError(absl::StrCat(
              "the model has a value named '", copy.name,
              "', the name of a micro-batch; rename it in the model"));
        }
        inputs.push_back(AddValue(std::move(copy)));
        copies_[static_cast<size_t>(part)][id] = inputs.back();
      }
    }
    graph_.inputs = std::move(inputs);
    return absl::OkStatus();
  }

  // "conv1@2" for the second part.
  std::string NameOf(absl::string_view name, int64_t part) {
    std::string own = models::NameInPart(name, part);
    while (names_.contains(own)) absl::StrAppend(&own, "_");
    return own;
  }

  ValueId AddValue(models::Value value) {
    graph_.values.push_back(std::move(value));
    return ValueId{static_cast<int32_t>(graph_.values.size() - 1)};
  }

  ValueId InPart(ValueId id, int64_t part) const {
    const auto& copies = copies_[static_cast<size_t>(part)];
    const auto it = copies.find(id);
    return it == copies.end() ? id : it->second;
  }

  absl::Status AddShared(size_t n) {
    Node node = nodes_[n];
    if (ReadsAllParts(node)) {
      for (int64_t part = 1; part < parts_; ++part) {
        LOADLINE_RETURN_IF_ERROR(AddWhatLeadsTo(n, part));
      }
    }
    if (node.op == "CountTargets") {
      std::vector<ValueId> inputs;
      for (ValueId id : node.inputs) {
        const int64_t copies = by_part_[Index(id)] ? parts_ : 1;  // weights: 1
        for (int64_t part = 0; part < copies; ++part) {
          inputs.push_back(InPart(id, part));
        }
      }
      node.inputs = std::move(inputs);
    } else if (ReadsAllParts(node)) {
      for (int64_t part = 1; part < parts_; ++part) {
        ValueId& id = node.inputs[static_cast<size_t>(part)];
        id = InPart(id, part);
      }
    }
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  // What another part has of that on which node `n` depends, before its turn.
  absl::Status AddWhatLeadsTo(size_t n, int64_t part) {
    std::set<ValueId> read(nodes_[n].inputs.begin(), nodes_[n].inputs.end());
    std::vector<size_t> leading;
    for (size_t m = n; m-- > 0;) {
      const Node& node = nodes_[m];
      const bool leads = std::any_of(
          node.outputs.begin(), node.outputs.end(),
          [&](ValueId id) { return by_part_[Index(id)] && read.contains(id); });
      if (!leads) continue;
      read.insert(node.inputs.begin(), node.inputs.end());
      leading.push_back(m);
    }
    for (size_t i = leading.size(); i-- > 0;) {
      LOADLINE_RETURN_IF_ERROR(AddPart(leading[i], part));
    }
    return absl::OkStatus();
  }

  absl::Status AddPart(size_t n, int64_t part) {
    const Node& original = nodes_[n];
    if (!added_.emplace(n, part).second) return absl::OkStatus();
    Node node = original;
    if (part > 0) {
      node.name = NameOf(node.name, part);
      for (ValueId& id : node.inputs) {
        if (id != kNoValue) id = InPart(id, part);
      }
      for (ValueId& id : node.outputs) {
        models::Value copy = graph_.value(id);
        copy.name = NameOf(copy.name, part);
        const ValueId made = AddValue(std::move(copy));
        copies_[static_cast<size_t>(part)][id] = made;
        id = made;
      }
      if (node.attributes.Has("offset")) {
        node.attributes.Set("offset",
                            node.attributes.Int("offset", 0) +
                                part * RandomElements(graph_, original));
      }
    }
    graph_.nodes.push_back(std::move(node));
    for (ValueId id : original.outputs) {
      const auto sum = sums_.find(id);
      if (sum == sums_.end()) continue;
      LOADLINE_RETURN_IF_ERROR(AddTerm(id, part, original.phase, sum->second));
    }
    return absl::OkStatus();
  }

  absl::Status AddTerm(ValueId id, int64_t part, models::Phase phase,
                       ValueId& sum) {
    if (part == 0) {
      sum = id;
      return absl::OkStatus();
    }
    Node add;
    add.op = "Add";
    std::string sum_name = absl::StrCat(graph_.value(id).name, ".sum");
    while (names_.contains(sum_name)) absl::StrAppend(&sum_name, "_");
    add.name = NameOf(sum_name, part);
    add.phase = phase;
    add.inputs = {sum, InPart(id, part)};
    models::Value made = graph_.value(id);
    made.name = add.name;
    sum = AddValue(std::move(made));
    add.outputs = {sum};
    graph_.nodes.push_back(std::move(add));
    return absl::OkStatus();
  }

  // Those of the other parts.
  void AddStatistics(Node& update) const {
    const std::vector<ValueId> first = update.inputs;
    for (int64_t part = 1; part < parts_; ++part) {
      for (size_t i = 2; i < first.size(); ++i) {
        update.inputs.push_back(InPart(first[i], part));
      }
    }
  }

  // Late nodes, and the outputs, with sums in place of what one part has.
  absl::Status AddLate() {
    for (ValueId& id : graph_.outputs) {
      const auto sum = sums_.find(id);
      if (sum != sums_.end()) id = sum->second;
    }
    for (Node& node : nodes_) {
      if (!IsLate(node)) continue;
      for (ValueId& id : node.inputs) {
        const auto sum = sums_.find(id);
        if (sum != sums_.end()) id = sum->second;
      }
      if (TakesParts(node)) AddStatistics(node);
      graph_.nodes.push_back(std::move(node));
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const int64_t parts_;
  std::vector<Node> nodes_;          // of one part
  std::vector<bool> late_;           // by value of one part
  std::vector<bool> by_part_;        // by value of one part
  std::map<ValueId, ValueId> sums_;  // value of one part -> its sum so far
  std::set<std::pair<size_t, int64_t>> added_;  // nodes of parts
  // By part: its copy of a value of the first.
  std::vector<std::map<ValueId, ValueId>> copies_;
  std::set<std::string> names_;  // of one part
};

absl::Status CheckStep(const Graph& graph) {
  if (graph.outputs.size() == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a step in micro-batches has no other output than the loss");
}

}  // namespace

absl::Status RepeatMicroBatches(Graph& graph, int64_t parts) {
  LOADLINE_CHECK(parts >= 1);
  if (parts == 1) return absl::OkStatus();
  LOADLINE_RETURN_IF_ERROR(CheckStep(graph));
  return Repeater(graph, parts).Run();
}

}  // namespace loadline::passes
