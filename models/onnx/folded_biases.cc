// A bias is an input of the layer, or is added to its output, which may be
// scaled, moved or added to another layer's before. Tested in
// tests/models/onnx_folded_biases_test.cc.
#include "models/onnx/folded_biases.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
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

}  // namespace

std::string FoldedBiasesWarning(const onnx::ModelProto& model) {
  if (model.producer_name() != "tf2onnx") return "";
  const std::set<std::string> initializers = InitializerNames(model.graph());
  Readers readers;
  for (const auto& node : model.graph().node()) {
    for (const auto& name : node.input()) readers[name].push_back(&node);
  }
  int without = 0;
  for (const auto& node : model.graph().node()) {
    const bool has_input = node.input_size() > 2 && !node.input(2).empty();
    if (IsWeighted(node, initializers) && !has_input &&
        !IsAddedTo(node.output(0), readers, initializers)) {
      ++without;
    }
  }
  if (without == 0) return "";
  return absl::StrCat(
      without, without == 1 ? " layer has" : " layers have",
      " no bias: tf2onnx leaves out biases that are all zeros, as they are in "
      "a new Keras model, and they are not trained then; if the original has "
      "them, train it for a step, or give them other values, before the "
      "export");
}

}  // namespace loadline::models::onnx_internal
