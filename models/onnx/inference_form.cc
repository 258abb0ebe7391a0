// Tested in tests/models/onnx_export_quantized_test.cc.
#include "models/onnx/inference_form.h"

#include <cmath>
#include <limits>
#include <set>

#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr double kOnnxEpsilon = 1e-5;

// How many nodes read each tensor; an output of the graph counts once more.
std::map<std::string, int> CountReaders(const onnx::GraphProto& graph) {
  std::map<std::string, int> readers;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& name : node.input()) ++readers[name];
  }
  for (const onnx::ValueInfoProto& output : graph.output()) {
    ++readers[output.name()];
  }
  return readers;
}

absl::StatusOr<std::vector<double>> Numbers(const onnx::GraphProto& graph,
                                            const std::string& name) {
  for (const onnx::TensorProto& proto : graph.initializer()) {
    if (proto.name() != name) continue;
    int64_t budget_bytes = std::numeric_limits<int64_t>::max();
    LOADLINE_ASSIGN_OR_RETURN(const Tensor tensor,
                              ReadTensor(proto, "", &budget_bytes));
    if (tensor.type.dtype != DType::kF32) break;
    const absl::Span<const float> numbers = tensor.as<float>();
    return std::vector<double>(numbers.begin(), numbers.end());
  }
  return std::vector<double>();
}

// Empty factors if the norm's operands are not four vectors of one size.
absl::StatusOr<FoldedNorm> FoldNorm(const onnx::GraphProto& graph,
                                    const onnx::NodeProto& norm) {
  FoldedNorm folded;
  std::vector<std::vector<double>> operands;
  for (int i = 1; i < norm.input_size(); ++i) {
    LOADLINE_ASSIGN_OR_RETURN(operands.emplace_back(),
                              Numbers(graph, norm.input(i)));
    if (operands.back().size() != operands[0].size()) return FoldedNorm();
  }
  if (operands.size() != 4) return FoldedNorm();
  const double epsilon = FloatAttribute(norm, "epsilon", kOnnxEpsilon);
  for (size_t c = 0; c < operands[0].size(); ++c) {
    const double factor = operands[0][c] / std::sqrt(operands[3][c] + epsilon);
    folded.factors.push_back(factor);
    folded.shifts.push_back(operands[1][c] - operands[2][c] * factor);
  }
  return folded;
}

}  // namespace

void UseInferenceForm(onnx::GraphProto* graph) {
  const std::map<std::string, int> readers = CountReaders(*graph);
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    if (node.op_type() == "BatchNormalization") {
      while (node.output_size() > 1) node.mutable_output()->RemoveLast();
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.name() == "training_mode") attribute.set_i(0);
      }
    } else if (node.op_type() == "Dropout") {
      if (node.output_size() > 1 && readers.contains(node.output(1))) {
        // Its mask is read: without training_mode all of it is true.
        while (node.input_size() > 2) node.mutable_input()->RemoveLast();
        continue;
      }
      while (node.output_size() > 1) node.mutable_output()->RemoveLast();
      while (node.input_size() > 1) node.mutable_input()->RemoveLast();
      node.clear_attribute();
      node.set_op_type("Identity");
    }
  }
}

absl::StatusOr<std::map<std::string, FoldedNorm>> FoldNorms(
    const std::vector<std::string>& weights, onnx::GraphProto* graph) {
  const std::set<std::string> wanted(weights.begin(), weights.end());
  std::map<std::string, int> readers = CountReaders(*graph);
  std::map<std::string, onnx::NodeProto*> convs;  // by output
  std::map<std::string, FoldedNorm> norms;
  onnx::GraphProto rest;
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    if (node.op_type() == "Conv" && readers[node.output(0)] == 1 &&
        wanted.contains(node.input(1)) && readers[node.input(1)] == 1) {
      const bool has_bias = HasInput(node, 2);
      if (has_bias) {
        LOADLINE_ASSIGN_OR_RETURN(const auto bias,
                                  Numbers(*graph, node.input(2)));
        if (bias.empty()) continue;  // computed
      }
      convs[node.output(0)] = &node;
      continue;
    }
    const auto conv = node.op_type() == "BatchNormalization"
                          ? convs.find(node.input(0))
                          : convs.end();
    if (conv == convs.end()) continue;
    LOADLINE_ASSIGN_OR_RETURN(FoldedNorm norm, FoldNorm(*graph, node));
    if (norm.factors.empty()) continue;
    norms[conv->second->input(1)] = std::move(norm);
    conv->second->set_output(0, node.output(0));
    node.clear_output();  // removed below
  }
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    if (node.op_type() == "BatchNormalization" && node.output_size() == 0) {
      continue;
    }
    rest.add_node()->Swap(&node);
  }
  graph->mutable_node()->Swap(rest.mutable_node());
  return norms;
}

}  // namespace loadline::models::onnx_internal
