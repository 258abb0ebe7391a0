// The operator table: all facts about an operator that do not depend on a
// device. One file per family (models/ops/pointwise.cc, ...) defines entries;
// models/ops/table.cc lists the families. models/ops/operators.md has the
// contract of every operator (inputs, outputs, attributes, semantics).
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

// Input and output of a gradient rule. The rule reads values of the forward
// node (inputs or outputs, so that the fewest bytes must be saved), emits
// nodes, and sets the gradients of its inputs.
class GradientContext {
 public:
  GradientContext(Graph* graph, NodeId forward,
                  absl::Span<const ValueId> output_gradients,
                  std::vector<bool> wanted);

  const Node& forward() const { return forward_; }
  ValueId input(int i) const { return forward_.inputs[i]; }
  ValueId output(int i) const { return forward_.outputs[i]; }
  const TensorType& type(ValueId id) const { return graph_->value(id).type; }
  // Contents of a constant; null for any other value.
  const Tensor* constant(ValueId id) const {
    const Value& value = graph_->value(id);
    return value.kind == ValueKind::kConstant ? &*value.initial : nullptr;
  }
  // Gradient of output i, or kNoValue if nothing downstream needs it.
  ValueId output_gradient(int i) const { return output_gradients_[i]; }
  // Whether the gradient of input i is required.
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
  // Sums `gradient` over broadcast dimensions to `type`'s shape.
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

// How a node runs on a part of its rows. The first dimensions of a value,
// merged into one, are its rows, or several to each row; so a part of them is
// one stretch of bytes. The node of a part has the same operator and
// `attributes`, except that `shape` is the shape of its output 0.
struct RowCut {
  // By input and output: how many leading dimensions are its rows, or one of
  // the following.
  std::vector<int> inputs;
  std::vector<int> outputs;
  static constexpr int kWhole = 0;   // read whole by every part, or absent
  static constexpr int kAdded = -1;  // an output that is the sum over all parts
  Attributes attributes;
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
  // InvalidArgument names the wrong attribute or input. Call through
  // InferTypes, which checks input counts and attribute kinds first.
  absl::StatusOr<std::vector<TensorType>> (*infer)(
      const Node& node, absl::Span<const TensorType* const> inputs) = nullptr;

  // Null: not differentiable (integers, updates).
  absl::Status (*gradient)(GradientContext& context) = nullptr;

  // Null: zero flops, and the bytes of all inputs and outputs.
  OperatorCost (*cost)(const Node& node,
                       absl::Span<const TensorType* const> inputs,
                       absl::Span<const TensorType> outputs) = nullptr;

  // The outputs count as constant when gradients are added: what is observed,
  // not computed.
  bool stops_gradient = false;
  bool view = false;      // output 0 shares input 0's bytes
  bool recompute = true;  // false: an update or side effect, runs only once
  // (input, output) positions: the kernel may write the output over the input
  // if both have the same size.
  std::vector<std::pair<int, int>> inplace;

  // The ways to run the node on parts of `rows` rows; rules are in row_cuts.h.
  // Null: none, because elements of different rows depend on each other, or on
  // where they are (Dropout).
  std::vector<RowCut> (*row_cuts)(const Node& node,
                                  absl::Span<const TensorType* const> inputs,
                                  absl::Span<const TensorType> outputs,
                                  int64_t rows) = nullptr;

  // All attributes; a node with any other is refused.
  std::vector<AttributeSpec> attributes;
};

// The table entry, or null for an unknown operator.
const Operator* FindOperator(absl::string_view name);
// Every entry, sorted by name.
std::vector<const Operator*> AllOperators();

// Checks a node, then calls the operator's `infer`. The operator must be known
// (else Unimplemented), no required input missing, not too many inputs, and
// attributes known, of the right kind and complete. Errors begin with operator
// and node name.
absl::StatusOr<std::vector<TensorType>> InferTypes(
    const Node& node, absl::Span<const TensorType* const> inputs);

// The element type, such as "i64", if InferTypes gave this error because the
// operator does not support it; else empty.
std::string RefusedDType(const absl::Status& status);

// Makes axes non-negative and sorted as the operator's attributes require.
// Leaves invalid ones unchanged, for InferTypes to refuse.
void NormalizeAxes(Node* node, absl::Span<const TensorType* const> inputs);

// Cost of a node of a graph.
OperatorCost CostOf(const Graph& graph, const Node& node);

// The ways to run a node of a graph on parts of `rows` rows; none if it cannot.
std::vector<RowCut> RowCutsOf(const Graph& graph, const Node& node,
                              int64_t rows);

// Key of a measured time in a machine profile: operator, input and output
// types, attributes. Nodes with equal keys take equal time.
std::string OperatorKey(const Graph& graph, const Node& node);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_OPERATOR_H_
