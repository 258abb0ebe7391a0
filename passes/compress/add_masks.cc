// Only existing operators: so a plan accounts for every byte, and both devices
// run them. Tested by tests/passes/compress/add_masks_test.cc.
#include "passes/compress/add_masks.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Phase;
using models::TensorType;
using models::ValueId;

std::string StateName(absl::string_view parameter, int64_t axis,
                      absl::string_view kind) {
  return axis == kWholeTensor ? absl::StrCat(parameter, ".", kind)
                              : absl::StrCat(parameter, ".", kind, axis);
}

TensorType StateType(const TensorType& parameter, int64_t axis) {
  TensorType type = parameter;
  type.dtype = models::DType::kF32;
  for (int64_t i = 0; i < type.rank(); ++i) {
    if (axis != kWholeTensor && i != axis)
      type.dims[static_cast<size_t>(i)] = 1;
  }
  return type;
}

models::Tensor Ones(const TensorType& type) {
  const std::vector<float> ones(static_cast<size_t>(type.elements()), 1.0f);
  return models::MakeTensor(type, ones.data());
}

absl::Status CheckNew(const Graph& graph, const std::string& name) {
  if (!graph.Find(name).has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model already has a value named '", name,
      "', the name of a state of pruning; rename it in the model"));
}

// Adds nodes of one parameter.
class Builder {
 public:
  Builder(Graph& graph, const MaskedAxis& axis) : graph_(graph), axis_(axis) {}

  absl::StatusOr<ValueId> Masked(ValueId gradient) {
    const std::string name = MaskName(axis_.parameter, axis_.axis);
    LOADLINE_RETURN_IF_ERROR(CheckNew(graph_, name));
    const TensorType type = StateType(graph_.value(gradient).type, axis_.axis);
    const ValueId mask = graph_.AddState(name, Ones(type));
    return Emit("Mul", absl::StrCat(axis_.parameter, ".masked_gradient"),
                {gradient, mask});
  }

  absl::Status Score(ValueId parameter, ValueId gradient,
                     PruneCriterion criterion) {
    const std::string name = ScoreName(axis_.parameter, axis_.axis, criterion);
    LOADLINE_RETURN_IF_ERROR(CheckNew(graph_, name));
    const TensorType type = StateType(graph_.value(parameter).type, axis_.axis);
    LOADLINE_ASSIGN_OR_RETURN(ValueId now,
                              Emit("Mul", name, {parameter, gradient}));
    models::Ints axes;
    for (int64_t i = 0; i < type.rank(); ++i) {
      if (axis_.axis != kWholeTensor && i != axis_.axis) axes.push_back(i);
    }
    if (!axes.empty()) {
      LOADLINE_ASSIGN_OR_RETURN(
          now, Emit("ReduceSum", name, {now},
                    {{"axes", axes}, {"keepdims", int64_t{1}}}));
    }
    switch (criterion) {
      case PruneCriterion::kFisher: {
        LOADLINE_ASSIGN_OR_RETURN(now, Emit("Mul", name, {now, now}));
        break;
      }
      case PruneCriterion::kMovement: {
        LOADLINE_ASSIGN_OR_RETURN(now, Emit("Neg", name, {now}));
        break;
      }
      default: {
        LOADLINE_ASSIGN_OR_RETURN(now, Emit("Abs", name, {now}));
        break;
      }
    }
    const ValueId score = graph_.AddState(name, models::ZeroTensor(type));
    LOADLINE_ASSIGN_OR_RETURN(now, Emit("Add", name, {score, now}));
    graph_.updates.emplace_back(score, now);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<ValueId> Emit(absl::string_view op, const std::string& name,
                               std::vector<ValueId> inputs,
                               models::Attributes attributes = {}) {
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph_.AddNode(op, absl::StrCat(name, ".", op), std::move(inputs),
                       std::move(attributes), Phase::kUpdate));
    return outputs[0];
  }

  Graph& graph_;
  const MaskedAxis& axis_;
};

}  // namespace

bool NeedsGradients(PruneCriterion criterion) {
  return criterion == PruneCriterion::kTaylor ||
         criterion == PruneCriterion::kFisher ||
         criterion == PruneCriterion::kMovement;
}

std::string MaskName(absl::string_view parameter, int64_t axis) {
  return StateName(parameter, axis, "mask");
}

std::string ScoreName(absl::string_view parameter, int64_t axis,
                      PruneCriterion criterion) {
  return StateName(parameter, axis,
                   criterion == PruneCriterion::kFisher     ? "fisher"
                   : criterion == PruneCriterion::kMovement ? "movement"
                                                            : "taylor");
}

absl::Status AddMasks(Graph& graph, const std::vector<MaskedAxis>& axes,
                      Gradients* gradients) {
  const Gradients unmasked = *gradients;
  for (const MaskedAxis& axis : axes) {
    const std::optional<ValueId> parameter = graph.Find(axis.parameter);
    if (!parameter.has_value() ||
        axis.axis >= graph.value(*parameter).type.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no '", axis.parameter, "' with an axis ", axis.axis));
    }
    const auto gradient = unmasked.find(*parameter);
    if (gradient == unmasked.end()) continue;
    Builder builder(graph, axis);
    for (PruneCriterion criterion : axis.scores) {
      LOADLINE_RETURN_IF_ERROR(
          builder.Score(*parameter, gradient->second, criterion));
    }
    ValueId& masked = gradients->at(*parameter);
    LOADLINE_ASSIGN_OR_RETURN(masked, builder.Masked(masked));
  }
  return absl::OkStatus();
}

}  // namespace loadline::passes
