// Two sweeps. Forward: which values depend on a parameter (through floats;
// integers and booleans carry no gradient). Backward from the loss: each node
// whose outputs have a gradient passes gradients to those of its inputs that
// depend on a parameter. Tested in tests/passes/add_gradients_test.cc for
// structure and in tests/conformance/gradient_test.cc against finite
// differences.
#include "passes/add_gradients.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/ops/operator.h"
#include "passes/rewrite.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::kNoValue;
using models::Node;
using models::NodeId;
using models::Phase;
using models::ValueId;
using models::ValueKind;

class Differentiator {
 public:
  Differentiator(Graph& graph, ValueId loss)
      : graph_(graph), loss_(loss), forward_nodes_(graph.nodes.size()) {}

  absl::StatusOr<Gradients> Run() {
    FindActiveValues();
    if (!active_[Index(loss_)]) {
      return absl::InvalidArgumentError(
          "the loss depends on no parameter of the model: nothing to train");
    }
    LOADLINE_RETURN_IF_ERROR(CheckRules());
    gradient_.assign(graph_.values.size(), kNoValue);
    gradient_[Index(loss_)] =
        graph_.AddConstant("loss.grad", OnesLike(graph_.value(loss_).type));
    for (size_t i = forward_nodes_; i-- > 0;) {
      LOADLINE_RETURN_IF_ERROR(Visit(NodeId{static_cast<int32_t>(i)}));
    }
    return Collect();
  }

 private:
  // A one-element tensor that holds 1.
  static models::Tensor OnesLike(const models::TensorType& type) {
    const float one = 1;
    return models::MakeTensor(type, &one);
  }

  void FindActiveValues() {
    active_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const models::Value& value = graph_.values[i];
      active_[i] =
          value.kind == ValueKind::kParameter && IsFloat(value.type.dtype);
    }
    for (const Node& node : graph_.nodes) {
      const models::Operator* op = models::FindOperator(node.op);
      bool leads = false;
      for (ValueId id : node.inputs) leads = leads || IsActive(id);
      leads = leads && (op == nullptr || !op->stops_gradient);
      for (ValueId id : node.outputs) {
        active_[Index(id)] = leads && IsFloat(graph_.value(id).type.dtype);
      }
    }
  }

  bool IsActive(ValueId id) const {
    return id != kNoValue && active_[Index(id)];
  }

  // Lists every node between a parameter and the loss that has no rule.
  absl::Status CheckRules() const {
    std::vector<bool> reaches_loss(graph_.values.size(), false);
    reaches_loss[Index(loss_)] = true;
    std::vector<std::string> without_rule;
    for (size_t i = forward_nodes_; i-- > 0;) {
      const Node& node = graph_.nodes[i];
      bool on_the_way = false;
      for (ValueId id : node.outputs) {
        on_the_way = on_the_way || (reaches_loss[Index(id)] && IsActive(id));
      }
      if (!on_the_way) continue;
      const models::Operator* op = models::FindOperator(node.op);
      if (op == nullptr || op->gradient == nullptr) {
        without_rule.push_back(absl::StrCat(node.op, " '", node.name, "'"));
      }
      for (ValueId id : node.inputs) {
        if (IsActive(id)) reaches_loss[Index(id)] = true;
      }
    }
    if (without_rule.empty()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "no gradient for ", absl::StrJoin(without_rule, ", "),
        ", between the loss and a parameter; replace the operator in the "
        "model, or make what leads to it a constant"));
  }

  absl::Status Visit(NodeId id) {
    // A copy, because emitting nodes moves the graph's vectors.
    const Node node = graph_.node(id);
    std::vector<ValueId> output_gradients;
    bool any = false;
    for (ValueId output : node.outputs) {
      output_gradients.push_back(gradient_[Index(output)]);
      any = any || output_gradients.back() != kNoValue;
    }
    std::vector<bool> wanted;
    bool any_wanted = false;
    for (ValueId input : node.inputs) {
      wanted.push_back(IsActive(input));
      any_wanted = any_wanted || wanted.back();
    }
    if (!any || !any_wanted) return absl::OkStatus();

    models::GradientContext context(&graph_, id, output_gradients, wanted);
    LOADLINE_RETURN_IF_ERROR(models::FindOperator(node.op)->gradient(context));
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

  Gradients Collect() const {
    Gradients gradients;
    for (size_t i = 0; i < gradient_.size(); ++i) {
      if (graph_.values[i].kind == ValueKind::kParameter &&
          gradient_[i] != kNoValue) {
        gradients[ValueId{static_cast<int32_t>(i)}] = gradient_[i];
      }
    }
    return gradients;
  }

  Graph& graph_;
  const ValueId loss_;
  const size_t forward_nodes_;
  // Both indexed by the values that existed before the first backward node.
  std::vector<bool> active_;
  std::vector<ValueId> gradient_;
};

}  // namespace

absl::StatusOr<Gradients> AddGradients(Graph& graph, ValueId loss) {
  const models::TensorType& type = graph.value(loss).type;
  if (type.elements() != 1 || type.dtype != models::DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("a loss is one f32 number, and '", graph.value(loss).name,
                     "' is ", type.ToString()));
  }
  return Differentiator(graph, loss).Run();
}

}  // namespace loadline::passes
