// The nodes are appended again one by one, each with the quantizers of what it
// makes behind it, so the order stays valid. Tested in
// tests/passes/compress/add_fake_quantize_test.cc, trained in
// tests/onnxruntime/quantized_test.
#include "passes/compress/add_fake_quantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/ops/quantize.h"
#include "passes/compress/quantize_biases.h"
#include "passes/compress/quantize_points.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Attributes;
using models::Graph;
using models::Index;
using models::Node;
using models::TensorType;
using models::ValueId;
using models::ValueKind;

// Share of the old range in an average over the steps.
constexpr double kRangeMomentum = 0.9;

Attributes GridAttributes(const QuantizedTensor& tensor) {
  return {{"bits", tensor.bits},
          {"signed", int64_t{tensor.is_signed}},
          {"symmetric", int64_t{tensor.symmetric}}};
}

class Inserter {
 public:
  Inserter(Graph& graph, const std::vector<QuantizePoint>& points)
      : graph_(graph), replaced_(graph.values.size()), biases_(graph, points) {
    for (size_t i = 0; i < replaced_.size(); ++i) {
      replaced_[i] = ValueId{static_cast<int32_t>(i)};
    }
    for (const QuantizePoint& point : points) {
      if (point.tensor.same_as.empty()) points_[point.tensor.value] = &point;
    }
  }

  absl::Status Run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    const std::vector<bool> made = MadeByNodes(nodes);
    for (const auto& [value, point] : points_) {
      if (!made[Index(value)]) LOADLINE_RETURN_IF_ERROR(Insert(*point));
    }
    for (Node& node : nodes) {
      const std::vector<ValueId> inputs = node.inputs;
      for (ValueId& id : node.inputs) {
        if (id != models::kNoValue) id = replaced_[Index(id)];
      }
      LOADLINE_RETURN_IF_ERROR(biases_.Quantize(inputs, &node));
      const std::vector<ValueId> outputs = node.outputs;
      graph_.nodes.push_back(std::move(node));
      for (ValueId id : outputs) {
        const auto point = points_.find(id);
        if (point == points_.end()) continue;
        LOADLINE_RETURN_IF_ERROR(Insert(*point->second));
      }
    }
    for (ValueId& id : graph_.outputs) {
      if (replaced_[Index(id)] == id) continue;
      // An output keeps its name.
      const ValueId output = replaced_[Index(id)];
      std::string name = graph_.value(id).name;
      graph_.Rename(id, graph_.value(output).name);
      graph_.Rename(output, std::move(name));
      id = replaced_[Index(id)];
    }
    return absl::OkStatus();
  }

 private:
  std::vector<bool> MadeByNodes(const std::vector<Node>& nodes) const {
    std::vector<bool> made(graph_.values.size(), false);
    for (const Node& node : nodes) {
      for (ValueId id : node.outputs) made[Index(id)] = true;
    }
    return made;
  }

  absl::Status Insert(const QuantizePoint& point) {
    point_ = &point;
    name_ = point.tensor.name;
    if (point.tensor.weight && point.stage == QuantizeStage::kCalibrate) {
      return absl::OkStatus();
    }
    if (point.tensor.quantizer == Quantizer::kKMeans) return InsertCodebook();
    if (point.tensor.quantizer == Quantizer::kLsq &&
        point.stage != QuantizeStage::kCalibrate) {
      return InsertLearned();
    }
    return InsertObserved();
  }

  // Adds a persistent value with zeros as contents.
  absl::StatusOr<ValueId> Persistent(absl::string_view suffix, TensorType type,
                                     ValueKind kind) {
    const std::string name = absl::StrCat(name_, ".", suffix);
    if (graph_.Find(name).has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model already has a value named '", name,
                       "', the name of a quantizer's; rename it in the model"));
    }
    models::Tensor zeros = models::ZeroTensor(std::move(type));
    return kind == ValueKind::kParameter
               ? graph_.AddParameter(name, std::move(zeros))
               : graph_.AddState(name, std::move(zeros));
  }

  absl::StatusOr<std::vector<ValueId>> Add(absl::string_view op,
                                           absl::string_view suffix,
                                           std::vector<ValueId> inputs,
                                           Attributes attributes = {}) {
    return graph_.AddNode(op, absl::StrCat(name_, ".", suffix),
                          std::move(inputs), std::move(attributes));
  }

  TensorType ChannelsType() const {
    const QuantizedTensor& tensor = point_->tensor;
    TensorType type{models::DType::kF32, {}};
    if (tensor.axis.has_value()) {
      type.dims = {graph_.value(tensor.value)
                       .type.dims[static_cast<size_t>(*tensor.axis)]};
    }
    return type;
  }

  Attributes WithAxis(Attributes attributes) const {
    if (point_->tensor.axis.has_value()) {
      attributes.Set("axis", *point_->tensor.axis);
    }
    return attributes;
  }

  absl::Status InsertCodebook() {
    const ValueId w = point_->tensor.value;
    const TensorType codebook{models::DType::kF32,
                              {int64_t{1} << point_->tensor.bits}};
    const TensorType codes{models::DType::kI32, graph_.value(w).type.dims};
    const bool trains = graph_.value(w).kind == ValueKind::kParameter &&
                        point_->stage == QuantizeStage::kTrain;
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId entries,
        Persistent("codebook", codebook,
                   trains ? ValueKind::kParameter : ValueKind::kState));
    LOADLINE_ASSIGN_OR_RETURN(const ValueId indices,
                              Persistent("codes", codes, ValueKind::kState));
    LOADLINE_ASSIGN_OR_RETURN(
        const auto quantized,
        Add("Gather", "quantized", {entries, indices}, {{"axis", int64_t{0}}}));
    replaced_[Index(w)] = quantized[0];
    return absl::OkStatus();
  }

  // The scale is trained as its logarithm: it stays above zero, and steps of
  // any optimizer are relative to it (Jain et al. 2020, section 3).
  absl::Status InsertLearned() {
    const QuantizedTensor& tensor = point_->tensor;
    const ValueKind kind = point_->stage == QuantizeStage::kTrain
                               ? ValueKind::kParameter
                               : ValueKind::kState;
    LOADLINE_ASSIGN_OR_RETURN(const ValueId log_scale,
                              Persistent("log_scale", ChannelsType(), kind));
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId zero_point,
        Persistent("zero_point", ChannelsType(), ValueKind::kState));
    LOADLINE_ASSIGN_OR_RETURN(const auto scale,
                              Add("Exp", "scale", {log_scale}));
    const models::QuantGrid grid =
        models::MakeQuantGrid(tensor.bits, tensor.is_signed, tensor.symmetric);
    const double elements =
        static_cast<double>(graph_.value(tensor.value).type.elements()) /
        static_cast<double>(std::max<int64_t>(ChannelsType().elements(), 1));
    Attributes attributes = WithAxis(GridAttributes(tensor));
    // The factor of Esser et al. 2020, section 2.2.
    attributes.Set("scale_gradient",
                   1 / std::sqrt(std::max(elements * grid.most, 1.0)));
    return Quantize(scale[0], zero_point, std::move(attributes));
  }

  absl::Status InsertObserved() {
    const QuantizedTensor& tensor = point_->tensor;
    std::vector<ValueId> range;
    if (tensor.weight) {
      LOADLINE_ASSIGN_OR_RETURN(
          range, Add("ValueRange", "range", {tensor.value}, WithAxis({})));
    } else {
      LOADLINE_ASSIGN_OR_RETURN(range, ObservedRange());
    }
    if (point_->stage == QuantizeStage::kCalibrate) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(
        const auto grid,
        Add("QuantizationGrid", "grid", range, GridAttributes(tensor)));
    return Quantize(grid[0], grid[1], WithAxis(GridAttributes(tensor)));
  }

  // The range with this step's, or the frozen one.
  absl::StatusOr<std::vector<ValueId>> ObservedRange() {
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId low,
        Persistent("low", ChannelsType(), ValueKind::kState));
    LOADLINE_ASSIGN_OR_RETURN(
        const ValueId high,
        Persistent("high", ChannelsType(), ValueKind::kState));
    if (point_->stage == QuantizeStage::kFrozen) {
      return std::vector<ValueId>{low, high};
    }
    LOADLINE_ASSIGN_OR_RETURN(
        const auto batch, Add("ValueRange", "range", {point_->tensor.value}));
    const bool average = point_->observer == Observer::kEmaMinMax;
    LOADLINE_ASSIGN_OR_RETURN(
        std::vector<ValueId> range,
        Add("RangeUpdate", "observed", {low, high, batch[0], batch[1]},
            {{"average", int64_t{average}},
             {"momentum", average ? kRangeMomentum : 0.0}}));
    graph_.updates.emplace_back(low, range[0]);
    graph_.updates.emplace_back(high, range[1]);
    return range;
  }

  absl::Status Quantize(ValueId scale, ValueId zero_point,
                        Attributes attributes) {
    const ValueId x = point_->tensor.value;
    LOADLINE_ASSIGN_OR_RETURN(
        const auto quantized,
        Add("FakeQuantize", "quantized", {x, scale, zero_point},
            std::move(attributes)));
    replaced_[Index(x)] = quantized[0];
    biases_.SetScale(x, scale);
    return absl::OkStatus();
  }

  Graph& graph_;
  std::vector<ValueId> replaced_;  // by the values before the pass
  BiasQuantizer biases_;
  std::map<ValueId, const QuantizePoint*> points_;
  const QuantizePoint* point_ = nullptr;  // at work
  std::string name_;                      // its tensor's
};

}  // namespace

absl::StatusOr<std::vector<QuantizedTensor>> AddFakeQuantize(
    Graph& model, absl::Span<const QuantizeRequest> requests) {
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<QuantizePoint> points,
                            FindQuantizePoints(model, requests));
  LOADLINE_RETURN_IF_ERROR(Inserter(model, points).Run());
  std::vector<QuantizedTensor> tensors;
  for (const QuantizePoint& point : points) tensors.push_back(point.tensor);
  return tensors;
}

}  // namespace loadline::passes
