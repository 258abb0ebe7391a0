// Written with operators that have gradients, so that no loss needs a rule or a
// kernel. Tested in tests/passes/add_loss_test.cc and
// tests/conformance/losses_test.cc.
#include "passes/loss_nodes.h"

#include <string>
#include <utility>
#include <vector>

#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::DType;
using models::ValueId;

// As PyTorch's ignore_index.
constexpr int64_t kIgnored = -100;

// Adds nodes of the loss; after an error it adds nothing more and keeps the
// error.
class Builder {
 public:
  explicit Builder(models::Graph& graph) : graph_(graph) {}

  ValueId Node(const char* op, std::vector<ValueId> inputs,
               Attributes attributes = {}) {
    if (!status_.ok()) return models::kNoValue;
    auto outputs = graph_.AddNode(op, "loss", std::move(inputs),
                                  std::move(attributes), models::Phase::kLoss);
    status_ = outputs.status();
    return outputs.ok() ? (*outputs)[0] : models::kNoValue;
  }
  ValueId Number(float number) {
    return graph_.AddConstant("loss.number",
                              models::MakeTensor({DType::kF32, {}}, &number));
  }
  ValueId Scaled(ValueId x, double by) {
    return Node("Mul", {x, Number(static_cast<float>(by))});
  }
  ValueId Mean(ValueId x) {
    return Node("ReduceMean", {x}, {{"keepdims", int64_t{0}}});
  }
  ValueId Sum(ValueId x) {
    return Node("ReduceSum", {x}, {{"keepdims", int64_t{0}}});
  }

  absl::StatusOr<ValueId> Result(ValueId loss) const {
    if (!status_.ok()) return status_;
    return loss;
  }

 private:
  models::Graph& graph_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<ValueId> AddL1Loss(models::Graph& graph, ValueId prediction,
                                  ValueId target) {
  Builder b(graph);
  const ValueId difference = b.Node("Sub", {prediction, target});
  return b.Result(b.Mean(b.Node("Abs", {difference})));
}

absl::StatusOr<ValueId> AddHuberLoss(models::Graph& graph, ValueId prediction,
                                     ValueId target, double delta) {
  // With c, which is d clipped to delta: c (d - c / 2).
  Builder b(graph);
  const ValueId d = b.Node("Sub", {prediction, target});
  const ValueId c = b.Node("Clip", {d}, {{"min", -delta}, {"max", delta}});
  const ValueId rest = b.Node("Sub", {d, b.Scaled(c, 0.5)});
  return b.Result(b.Mean(b.Node("Mul", {c, rest})));
}

absl::StatusOr<ValueId> AddBceLoss(models::Graph& graph, ValueId logits,
                                   ValueId target) {
  Builder b(graph);
  const ValueId product = b.Node("Mul", {logits, target});
  return b.Result(
      b.Mean(b.Node("Sub", {b.Node("Softplus", {logits}), product})));
}

absl::StatusOr<ValueId> AddLabelSmoothing(models::Graph& graph, ValueId loss,
                                          const std::vector<ValueId>& operands,
                                          int64_t class_axis,
                                          double smoothing) {
  Builder b(graph);
  const ValueId logits = operands[0], target = operands[1];
  const models::TensorType type = graph.value(target).type;
  const int64_t wide = kIgnored;
  const auto narrow = static_cast<int32_t>(kIgnored);
  const ValueId ignored = graph.AddConstant(
      "loss.ignored", type.dtype == DType::kI64
                          ? models::MakeTensor({DType::kI64, {}}, &wide)
                          : models::MakeTensor({type.dtype, {}}, &narrow));
  ValueId by_class = b.Node("LogSoftmax", {logits}, {{"axis", class_axis}});
  std::vector<ValueId> counted = {target};
  if (operands.size() > 3) {
    const ValueId weights = operands[3];
    counted.push_back(weights);
    models::Ints column = {graph.value(weights).type.dims[0]};
    column.resize(
        static_cast<size_t>(graph.value(logits).type.rank() - class_axis), 1);
    by_class = b.Node(
        "Mul", {by_class, b.Node("Reshape", {weights}, {{"shape", column}})});
  }
  const ValueId of_targets =
      b.Node("ReduceMean", {by_class},
             {{"axes", models::Ints{class_axis}}, {"keepdims", int64_t{0}}});
  const ValueId is_ignored = b.Node("Equal", {target, ignored});
  const ValueId kept = b.Node("Where", {is_ignored, b.Number(0), of_targets});
  const ValueId count = b.Node("CountTargets", counted);
  const ValueId uniform = b.Node("Div", {b.Sum(kept), count});
  return b.Result(b.Node(
      "Sub", {b.Scaled(loss, 1 - smoothing), b.Scaled(uniform, smoothing)}));
}

}  // namespace loadline::passes
