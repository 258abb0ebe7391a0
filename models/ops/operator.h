// The operator table: all facts about an operator that do not depend on a
// device. One file per family (models/ops/pointwise.cc, ...) defines entries;
// models/ops/table.cc lists the families. The contract of every operator
// (inputs, outputs, attributes, meaning) stands in models/ops/operators.md.
#ifndef LOADLINE_MODELS_OPS_OPERATOR_H_
#define LOADLINE_MODELS_OPS_OPERATOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/graph.h"

namespace loadline::models {

// What a gradient rule gets and gives. The rule reads values of the forward
// node (its inputs or outputs: whatever costs the fewest saved bytes), emits
// nodes, and hands back one gradient per input it has one for.
class GradientContext {
 public:
  GradientContext(Graph* graph, NodeId forward,
                  absl::Span<const ValueId> output_gradients,
                  std::vector<bool> wanted);

  const Node& forward() const { return forward_; }
  ValueId input(int i) const { return forward_.inputs[i]; }
  ValueId output(int i) const { return forward_.outputs[i]; }
  const TensorType& type(ValueId id) const { return graph_->value(id).type; }
  // What a constant holds; null for any other value.
  const Tensor* constant(ValueId id) const {
    const Value& value = graph_->value(id);
    return value.kind == ValueKind::kConstant ? &*value.initial : nullptr;
  }
  // Gradient of output i, or kNoValue where nothing downstream needs it.
  ValueId output_gradient(int i) const { return output_gradients_[i]; }
  // Whether the gradient of input i is asked for.
  bool wanted(int i) const { return wanted_[i]; }

  // Emits a backward node named after the forward one.
  absl::StatusOr<std::vector<ValueId>> EmitAll(absl::string_view op,
                                               std::vector<ValueId> inputs,
                                               Attributes attributes = {});
  // The same for an operator with one output.
  absl::StatusOr<ValueId> Emit(absl::string_view op,
                               std::vector<ValueId> inputs,
                               Attributes attributes = {});
  absl::StatusOr<ValueId> Scalar(float value);  // an f32[] constant, shared
  // Sums `gradient` over broadcast dimensions down to `type`'s shape.
  absl::StatusOr<ValueId> SumTo(ValueId gradient, const TensorType& type);

  void SetInputGradient(int i, ValueId gradient);
  const std::vector<ValueId>& input_gradients() const {
    return input_gradients_;
  }

 private:
  Graph* graph_;
  Node forward_;  // a copy: emitting moves the graph's nodes
  std::vector<ValueId> output_gradients_;
  std::vector<bool> wanted_;
  std::vector<ValueId> input_gradients_;
};

struct OperatorCost {
  double flops = 0;          // a multiply-add counts 2
  bool matmul_like = false;  // runs at the matmul rate, not the memory rate
  int64_t bytes = 0;         // read and written
};

enum class AttributeKind {
  kInt,
  kFloat,  // finite
  kString,
  kInts,
  kAxis,  // an int; AddNode adds input 0's rank where negative
  kAxes,  // ints; AddNode does the same to each and sorts them
};

struct AttributeSpec {
  absl::string_view name;
  AttributeKind kind;
  bool required = false;
};

struct Operator {
  absl::string_view name;

  int min_inputs = 1;
  int max_inputs = 1;  // -1: any number

  // Types of the outputs. `inputs[i]` is null for an absent optional input.
  // InvalidArgument names the attribute or input that does not fit. Called
  // through InferTypes, which has checked input counts and attribute kinds.
  absl::StatusOr<std::vector<TensorType>> (*infer)(
      const Node& node, absl::Span<const TensorType* const> inputs) = nullptr;

  // Null: not differentiable (integers, updates).
  absl::Status (*gradient)(GradientContext& context) = nullptr;

  // Null: zero flops, and the bytes of all inputs and outputs.
  OperatorCost (*cost)(const Node& node,
                       absl::Span<const TensorType* const> inputs,
                       absl::Span<const TensorType> outputs) = nullptr;

  bool view = false;      // output 0 is another name for input 0's bytes
  bool recompute = true;  // false: an update or side effect, runs once
  // (input, output) positions: the kernel may write the output over the
  // input where both have the same bytes.
  std::vector<std::pair<int, int>> inplace;

  // Every attribute there is; a node with another one is refused.
  std::vector<AttributeSpec> attributes;
};

// The table entry, or null for an operator nobody knows.
const Operator* FindOperator(absl::string_view name);
// Every entry, sorted by name.
std::vector<const Operator*> AllOperators();

// The checked way to an operator's `infer`: the operator is known
// (Unimplemented otherwise), no input is missing or too many, attributes are
// known, of the right kind, present where required; then `infer`. Errors are
// prefixed with operator and node name.
absl::StatusOr<std::vector<TensorType>> InferTypes(
    const Node& node, absl::Span<const TensorType* const> inputs);

// Makes axes non-negative and sorted where the operator's attributes say so.
// What does not fit stays as it is, for InferTypes to refuse.
void NormalizeAxes(Node* node, absl::Span<const TensorType* const> inputs);

// Cost of a node of a graph.
OperatorCost CostOf(const Graph& graph, const Node& node);

// Key of a measured time in a machine profile: operator, input and output
// types, attributes. Equal keys run in equal time.
std::string OperatorKey(const Graph& graph, const Node& node);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_OPERATOR_H_
