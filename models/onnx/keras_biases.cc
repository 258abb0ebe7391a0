// A bias is an input of the layer, or is added to its output, which may be
// scaled, moved or added to another layer's before. Tested in
// tests/models/onnx_keras_biases_test.cc.
#include "models/onnx/keras_biases.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/producers.h"
#include "models/onnx/supported.h"

namespace loadline::models::onnx_internal {
namespace {

using Readers = std::map<std::string, std::vector<const onnx::NodeProto*>>;

bool MayStandBeforeBias(const onnx::NodeProto& node) {
  static constexpr const char* kOps[] = {
      "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Identity", "Mul", "Add"};
  return std::find(std::begin(kOps), std::end(kOps), node.op_type()) !=
         std::end(kOps);
}

// Whether an initializer is added to the value before something else happens.
bool IsAddedTo(std::string value, const Readers& readers,
               const std::set<std::string>& initializers) {
  while (true) {
    const auto found = readers.find(value);
    if (found == readers.end() || found->second.size() != 1) return false;
    const onnx::NodeProto& node = *found->second[0];
    if (node.op_type() == "Add" &&
        std::any_of(
            node.input().begin(), node.input().end(),
            [&](const auto& name) { return initializers.count(name) > 0; })) {
      return true;
    }
    if (!MayStandBeforeBias(node)) return false;
    value = node.output(0);
  }
}

bool IsWeighted(const onnx::NodeProto& node,
                const std::set<std::string>& initializers) {
  const std::string& op = node.op_type();
  if (node.input_size() < 2 || node.output_size() == 0) return false;
  const bool right = initializers.count(node.input(1)) > 0;
  if (op == "MatMul") return right || initializers.count(node.input(0)) > 0;
  return right && (op == "Gemm" || op == "Conv" || op == "ConvTranspose");
}

// Layers whose output no bias is added to.
int LayersWithoutBias(const onnx::GraphProto& graph) {
  const std::set<std::string> initializers = InitializerNames(graph);
  Readers readers;
  for (const auto& node : graph.node()) {
    for (const auto& name : node.input()) readers[name].push_back(&node);
  }
  return static_cast<int>(std::count_if(
      graph.node().begin(), graph.node().end(), [&](const auto& node) {
        return IsWeighted(node, initializers) && !HasInput(node, 2) &&
               !IsAddedTo(node.output(0), readers, initializers);
      }));
}

// [directions, 2 * rows]: of the input and of the state.
bool HasNoStateBias(const Tensor& bias) {
  if (bias.data == nullptr || bias.type.dtype != DType::kF32 ||
      bias.type.rank() != 2 || bias.type.dims[1] % 2 != 0) {
    return false;
  }
  const auto values = bias.as<float>();
  const int64_t columns = bias.type.dims[1];
  for (int64_t row = 0; row < bias.type.dims[0]; ++row) {
    const auto state = values.begin() + row * columns + columns / 2;
    if (std::any_of(state, state + columns / 2,
                    [](float value) { return value != 0; })) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string KerasBiasWarning(const onnx::ModelProto& model) {
  if (model.producer_name() != kTensorFlow) return "";
  const int without = LayersWithoutBias(model.graph());
  if (without == 0) return "";
  return absl::StrCat(
      without, without == 1 ? " layer has" : " layers have",
      " no bias: tf2onnx leaves out biases that are all zeros, as they are in "
      "a new Keras model, and they are not trained then; if the original has "
      "them, train it for a step, or give them other values, before the "
      "export");
}

std::set<std::string> FindSingleBiases(
    const onnx::ModelProto& model,
    const std::map<std::string, Tensor>& initializers) {
  std::set<std::string> names;
  if (model.producer_name() != kTensorFlow) return names;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != "LSTM" || !HasInput(node, 3)) continue;
    const auto bias = initializers.find(node.input(3));
    if (bias != initializers.end() && HasNoStateBias(bias->second)) {
      names.insert(bias->first);
    }
  }
  return names;
}

}  // namespace loadline::models::onnx_internal
