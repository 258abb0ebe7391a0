// Inputs first, then outputs, then weights; the first claim of a tensor stays.
// Tested in tests/passes/compress/add_fake_quantize_test.cc.
#include "passes/compress/quantize_points.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Index;
using models::Node;
using models::NodeId;
using models::ValueId;
using models::ValueKind;

bool IsWeight(const Graph& graph, ValueId id) {
  const ValueKind kind = graph.value(id).kind;
  return (kind == ValueKind::kParameter || kind == ValueKind::kConstant) &&
         graph.value(id).type.dtype == models::DType::kF32;
}

class PointFinder {
 public:
  explicit PointFinder(const Graph& graph)
      : graph_(graph), index_(models::IndexGraph(graph)) {
    for (ValueId id : graph.outputs) is_output_.insert(id);
  }

  absl::StatusOr<std::vector<QuantizePoint>> Run(
      absl::Span<const QuantizeRequest> requests) {
    for (const QuantizeRequest& request : requests) {
      for (NodeId id : request.nodes) {
        LOADLINE_RETURN_IF_ERROR(Check(graph_.node(id), request.spec));
        if (request.spec.targets.input) ClaimInput(graph_.node(id), request);
      }
    }
    for (const QuantizeRequest& request : requests) {
      for (NodeId id : request.nodes) {
        if (request.spec.targets.output) ClaimOutput(graph_.node(id), request);
      }
    }
    for (const QuantizeRequest& request : requests) {
      for (NodeId id : request.nodes) {
        if (!request.spec.targets.weight) continue;
        LOADLINE_RETURN_IF_ERROR(ClaimWeight(graph_.node(id), request));
      }
    }
    std::vector<QuantizePoint> points;
    for (const auto& [id, point] : claims_) {
      points.push_back(point);
      ShareGrid(id, points.back().tensor);
    }
    return points;
  }

 private:
  static absl::Status Check(const Node& node, const QuantizeSpec& spec) {
    if (!CanQuantize(node)) {
      return absl::UnimplementedError(
          absl::StrCat("node '", node.name, "': ", node.op,
                       " is not quantized; Conv, ConvTranspose, Gemm and "
                       "MatMul are"));
    }
    if (spec.observer != Observer::kMinMax &&
        spec.observer != Observer::kEmaMinMax) {
      return absl::UnimplementedError(absl::StrCat(
          "node '", node.name, "': the observers are minmax and ema_minmax"));
    }
    const bool one_bit =
        (spec.targets.weight && WeightBits(spec) < 2 &&
         spec.quantizer != Quantizer::kKMeans) ||
        (spec.targets.input && spec.symmetric.input && spec.bits.input < 2) ||
        (spec.targets.output && spec.symmetric.output && spec.bits.output < 2);
    if (one_bit) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node '", node.name,
          "': a symmetric grid of 1 bit holds only 0; take 2 bits, or kmeans "
          "for a weight"));
    }
    return absl::OkStatus();
  }

  // With reduce_range, 8-bit products of x86's older integer instructions do
  // not saturate.
  static int64_t WeightBits(const QuantizeSpec& spec) {
    const bool reduce = spec.reduce_range && spec.bits.weight == 8 &&
                        spec.quantizer != Quantizer::kKMeans;
    return reduce ? 7 : spec.bits.weight;
  }

  const Node* ProducerOf(ValueId id) const {
    const int32_t at = index_.producer[Index(id)];
    return at < 0 ? nullptr : &graph_.nodes[static_cast<size_t>(at)];
  }

  // The one node that reads the value; null if it has none, several, or is an
  // output.
  const Node* OnlyReader(ValueId id) const {
    const std::vector<NodeId>& readers = index_.consumers[Index(id)];
    if (readers.size() != 1 || is_output_.contains(id)) return nullptr;
    return &graph_.node(readers[0]);
  }

  void Claim(ValueId id, const QuantizeRequest& request, int64_t bits,
             bool symmetric) {
    QuantizePoint point;
    point.tensor.name = graph_.value(id).name;
    point.tensor.value = id;
    point.tensor.quantizer = request.spec.quantizer == Quantizer::kLsq
                                 ? Quantizer::kLsq
                                 : Quantizer::kUniform;
    point.tensor.bits = bits;
    point.tensor.is_signed = symmetric;
    point.tensor.symmetric = symmetric;
    point.stage = request.stage;
    point.observer = request.spec.observer;
    claims_.try_emplace(id, std::move(point));
  }

  void ClaimInput(const Node& node, const QuantizeRequest& request) {
    ValueId x = node.inputs[0];
    // Evaluation has no dropout: what it drops is quantized before.
    while (ProducerOf(x) != nullptr && ProducerOf(x)->op == "Dropout") {
      x = ProducerOf(x)->inputs[0];
    }
    if (IsWeight(graph_, x)) return;
    Claim(x, request, request.spec.bits.input, request.spec.symmetric.input);
  }

  void ClaimOutput(const Node& node, const QuantizeRequest& request) {
    Claim(EndOf(node), request, request.spec.bits.output,
          request.spec.symmetric.output);
  }

  // A ConvTranspose's bias is imported as an Add of its column.
  bool IsBias(ValueId id) const {
    const Node* reshape = ProducerOf(id);
    if (reshape != nullptr && reshape->op == "Reshape") id = reshape->inputs[0];
    return IsWeight(graph_, id);
  }

  // The value behind everything that an integer kernel computes with the node.
  ValueId EndOf(const Node& node) const {
    ValueId y = node.outputs[0];
    const Node* next = OnlyReader(y);
    if (node.op == "Conv" && next != nullptr && next->inputs[0] == y &&
        (next->op == "BatchNormTraining" || next->op == "BatchNormalization")) {
      y = next->outputs[0];
      next = OnlyReader(y);
    }
    if ((node.op == "MatMul" || node.op == "ConvInputGrad") &&
        next != nullptr && next->op == "Add" &&
        (IsBias(next->inputs[0]) || IsBias(next->inputs[1]))) {
      y = next->outputs[0];
      next = OnlyReader(y);
    }
    if (next != nullptr && (next->op == "Relu" || next->op == "Clip")) {
      y = next->outputs[0];
    }
    return y;
  }

  absl::Status ClaimWeight(const Node& node, const QuantizeRequest& request) {
    ValueId w = node.inputs[1];
    std::optional<int64_t> axis = OutputAxis(node, graph_.value(w).type.rank());
    const Node* transpose = ProducerOf(w);
    if (transpose != nullptr && transpose->op == "Transpose") {
      w = transpose->inputs[0];
      if (axis.has_value()) {
        axis =
            transpose->attributes.IntList("perm")[static_cast<size_t>(*axis)];
      }
    }
    if (!IsWeight(graph_, w)) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", node.name, "': its second operand is '",
                       graph_.value(w).name,
                       "', which is computed: there is no weight to quantize"));
    }
    const bool trained = graph_.value(w).kind == ValueKind::kParameter;
    QuantizePoint point;
    point.tensor.name = graph_.value(w).name;
    point.tensor.value = w;
    point.tensor.weight = true;
    point.tensor.quantizer =
        request.spec.quantizer == Quantizer::kLsq && !trained
            ? Quantizer::kUniform
            : request.spec.quantizer;
    point.tensor.bits = WeightBits(request.spec);
    point.tensor.symmetric = request.spec.symmetric.weight;
    if (request.spec.per_channel.weight &&
        point.tensor.quantizer != Quantizer::kKMeans) {
      point.tensor.axis = axis;
    }
    point.stage = request.stage;
    point.observer = request.spec.observer;
    claims_.try_emplace(w, std::move(point));
    return absl::OkStatus();
  }

  // The axis of the second operand that becomes the channels of the result.
  static std::optional<int64_t> OutputAxis(const Node& node, int64_t rank) {
    if (node.op == "Conv") return 0;
    if (node.op == "ConvInputGrad") {
      // Grouped, the output's channels are two axes of the weight.
      if (node.attributes.Int("group", 1) != 1) return std::nullopt;
      return 1;
    }
    if (node.op == "Gemm") {
      return node.attributes.Int("transB", 0) != 0 ? 0 : 1;
    }
    if (rank < 2) return std::nullopt;
    return node.attributes.Int("trans_b", 0) != 0 ? rank - 2 : rank - 1;
  }

  // Looks behind operators that only move elements for a tensor with the same
  // kind of grid.
  void ShareGrid(ValueId id, QuantizedTensor& tensor) const {
    static const std::set<std::string> moves = {
        "Reshape", "Transpose", "Slice", "MaxPool", "Expand", "Split"};
    if (tensor.weight) return;
    for (const Node* node = ProducerOf(id);
         node != nullptr && moves.contains(node->op) && node->outputs[0] == id;
         node = ProducerOf(id)) {
      id = node->inputs[0];
      const auto from = claims_.find(id);
      if (from == claims_.end()) continue;
      const QuantizedTensor& other = from->second.tensor;
      if (other.weight || other.quantizer != tensor.quantizer ||
          other.bits != tensor.bits || other.symmetric != tensor.symmetric) {
        return;
      }
      tensor.same_as = other.name;
    }
  }

  const Graph& graph_;
  const models::GraphIndex index_;
  std::set<ValueId> is_output_;
  std::map<ValueId, QuantizePoint> claims_;
};

}  // namespace

bool CanQuantize(const Node& node) {
  return node.op == "Conv" || node.op == "ConvInputGrad" || node.op == "Gemm" ||
         node.op == "MatMul";
}

absl::StatusOr<std::vector<QuantizePoint>> FindQuantizePoints(
    const Graph& model, absl::Span<const QuantizeRequest> requests) {
  return PointFinder(model).Run(requests);
}

}  // namespace loadline::passes
