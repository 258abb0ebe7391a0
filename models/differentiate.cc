// Two sweeps. Forward: which values depend on a target (through floats;
// integers and booleans carry no gradient). Backward from y: each node whose
// outputs have a gradient passes gradients to those of its inputs that depend
// on a target. Tested in tests/passes/add_gradients_test.cc and
// tests/models/onnx_training_test.cc for structure, and in
// tests/conformance/gradient_test.cc against finite differences.
#include "models/differentiate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/ops/operator.h"
#include "planner/base/status_macros.h"

namespace loadline::models {
namespace {

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

class Differentiator {
 public:
  Differentiator(Graph& graph, const Differential& what)
      : graph_(graph), what_(what), forward_nodes_(graph.nodes.size()) {}

  absl::StatusOr<std::vector<ValueId>> Run() {
    FindActiveValues();
    LOADLINE_RETURN_IF_ERROR(CheckRules());
    gradient_.assign(graph_.values.size(), kNoValue);
    if (active_[Index(what_.y)]) {
      gradient_[Index(what_.y)] =
          graph_.AddConstant(what_.seed_name, OnesLike());
    }
    for (size_t i = forward_nodes_; i-- > 0;) {
      LOADLINE_RETURN_IF_ERROR(Visit(NodeId{static_cast<int32_t>(i)}));
    }
    std::vector<ValueId> gradients;
    for (ValueId target : what_.targets) {
      gradients.push_back(gradient_[Index(target)]);
    }
    return gradients;
  }

 private:
  // A one-element tensor that holds 1.
  Tensor OnesLike() const {
    const float one = 1;
    return MakeTensor(graph_.value(what_.y).type, &one);
  }

  void FindActiveValues() {
    active_ = ActiveValues(graph_, what_.targets, what_.held);
    independent_.assign(graph_.values.size(), false);
    for (ValueId id : what_.held) independent_[Index(id)] = true;
    for (ValueId id : what_.targets) independent_[Index(id)] = true;
  }

  bool IsActive(ValueId id) const {
    return id != kNoValue && active_[Index(id)];
  }
  // Active, and by the node that makes it.
  bool IsDerived(ValueId id) const {
    return IsActive(id) && !independent_[Index(id)];
  }

  // Lists every node between a target and y that has no rule.
  absl::Status CheckRules() const {
    std::vector<bool> reaches_y(graph_.values.size(), false);
    reaches_y[Index(what_.y)] = true;
    std::vector<std::string> without_rule;
    for (size_t i = forward_nodes_; i-- > 0;) {
      const Node& node = graph_.nodes[i];
      bool on_the_way = false;
      for (ValueId id : node.outputs) {
        on_the_way = on_the_way || (reaches_y[Index(id)] && IsDerived(id));
      }
      if (!on_the_way) continue;
      const Operator* op = FindOperator(node.op);
      if (op == nullptr || op->gradient == nullptr) {
        without_rule.push_back(absl::StrCat(node.op, " '", node.name, "'"));
      }
      for (ValueId id : node.inputs) {
        if (IsActive(id)) reaches_y[Index(id)] = true;
      }
    }
    if (without_rule.empty()) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("no gradient for ", absl::StrJoin(without_rule, ", "),
                     ", between ", what_.ends,
                     "; replace the operator in the model, or make what leads "
                     "to it a constant"));
  }

  absl::Status Visit(NodeId id) {
    // A copy, because emitting nodes moves the graph's vectors.
    const Node node = graph_.node(id);
    std::vector<ValueId> output_gradients;
    bool any = false;
    for (ValueId output : node.outputs) {
      output_gradients.push_back(
          independent_[Index(output)] ? kNoValue : gradient_[Index(output)]);
      any = any || output_gradients.back() != kNoValue;
    }
    std::vector<bool> wanted;
    bool any_wanted = false;
    for (ValueId input : node.inputs) {
      wanted.push_back(IsActive(input));
      any_wanted = any_wanted || wanted.back();
    }
    if (!any || !any_wanted) return absl::OkStatus();

    GradientContext context(&graph_, id, output_gradients, wanted);
    LOADLINE_RETURN_IF_ERROR(FindOperator(node.op)->gradient(context));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId gradient = context.input_gradients()[i];
      if (!wanted[i] || gradient == kNoValue) continue;
      LOADLINE_RETURN_IF_ERROR(Accumulate(node.inputs[i], gradient));
    }
    return absl::OkStatus();
  }

  absl::Status Accumulate(ValueId value, ValueId gradient) {
    ValueId& sum = gradient_[Index(value)];
    if (sum == kNoValue) {
      sum = gradient;
      return absl::OkStatus();
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> added,
        graph_.AddNode("Add", absl::StrCat(graph_.value(value).name, ".grad"),
                       {sum, gradient}, {}, Phase::kBackward));
    sum = added[0];
    return absl::OkStatus();
  }

  Graph& graph_;
  const Differential& what_;
  const size_t forward_nodes_;
  // All indexed by the values that existed before the first backward node.
  std::vector<bool> active_;
  std::vector<bool> independent_;
  std::vector<ValueId> gradient_;
};

}  // namespace

std::vector<bool> ActiveValues(const Graph& graph,
                               const std::vector<ValueId>& targets,
                               const std::vector<ValueId>& held) {
  std::vector<bool> active(graph.values.size(), false);
  std::vector<bool> independent(graph.values.size(), false);
  for (ValueId id : held) independent[Index(id)] = true;
  for (ValueId id : targets) {
    independent[Index(id)] = true;
    active[Index(id)] = IsFloat(graph.value(id).type.dtype);
  }
  for (const Node& node : graph.nodes) {
    const Operator* op = FindOperator(node.op);
    bool leads = false;
    for (ValueId id : node.inputs) {
      leads = leads || (id != kNoValue && active[Index(id)]);
    }
    leads = leads && (op == nullptr || !op->stops_gradient) &&
            node.attributes.Int("detached", 0) == 0;
    for (ValueId id : node.outputs) {
      if (independent[Index(id)]) continue;
      active[Index(id)] = leads && IsFloat(graph.value(id).type.dtype);
    }
  }
  return active;
}

absl::StatusOr<std::vector<ValueId>> Differentiate(Graph& graph,
                                                   const Differential& what) {
  return Differentiator(graph, what).Run();
}

}  // namespace loadline::models
