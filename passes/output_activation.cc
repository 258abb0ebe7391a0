// Keras and scikit-learn export classifiers that end with Softmax or Sigmoid.
// A loss of logits on top trains something else than the author did, and
// nothing fails. The walk goes from the output back through nodes that move
// elements only. Tested in tests/passes/output_activation_test.cc.
#include "passes/output_activation.h"

#include "absl/strings/str_cat.h"
#include "passes/example_positions.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::GraphIndex;
using models::Node;
using models::ValueId;

// The node that computes the elements of `id`; null for inputs and parameters.
const Node* MakerOfElements(const Graph& graph, ValueId id) {
  const GraphIndex index = models::IndexGraph(graph);
  while (true) {
    const int32_t producer = index.producer[models::Index(id)];
    if (producer < 0) return nullptr;
    const Node& node = graph.nodes[static_cast<size_t>(producer)];
    if (!MovesElements(node) && node.op != "Cast" && node.op != "Identity") {
      return &node;
    }
    id = node.inputs[0];
  }
}

}  // namespace

std::string OutputActivationWarning(const Graph& graph, ValueId prediction,
                                    LossKind loss) {
  const bool cross_entropy = loss == LossKind::kCrossEntropy;
  if (!cross_entropy && loss != LossKind::kBce) return "";
  const Node* maker = MakerOfElements(graph, prediction);
  if (maker == nullptr) return "";
  const std::string& op = maker->op;
  if (op != "Softmax" && op != "Sigmoid" &&
      (op != "LogSoftmax" || cross_entropy)) {
    return "";
  }
  const char* fitting = op == "Sigmoid" ? "bce_with_logits" : "cross_entropy";
  return absl::StrCat(
      "the model's output '", graph.value(prediction).name, "' is ", op,
      " already, and --loss ",
      cross_entropy ? "cross_entropy" : "bce_with_logits", " applies its own ",
      cross_entropy ? "softmax" : "sigmoid",
      " on top, so this is not the loss of the model's probabilities: export "
      "the model without its last ",
      op, ", for --loss ", fitting);
}

}  // namespace loadline::passes
