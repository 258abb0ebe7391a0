// Which rule a node takes. Tested in tests/conformance/pruned_export_test.cc.
#include "models/onnx/pruned_nodes.h"

#include <string>
#include <utility>

#include "models/onnx/pruned_file.h"
#include "models/onnx/pruned_rules.h"

namespace loadline::models::onnx_internal {
namespace {

void Visit(PrunedFile& file, onnx::NodeProto* node) {
  const std::string& op = node->op_type();
  if (node->output_size() == 0 || !node->domain().empty()) return;
  if (op == "Reshape" || op == "Expand") {
    RewriteShape(file, node);
    return;
  }
  if (op == "Conv" || op == "ConvTranspose") {
    RewriteConvolution(file, node);
  } else if (op == "Slice") {
    RewriteSlice(file, node);
  } else if (op == "Split") {
    RewriteSplit(file, node);
  } else if (op == "SplitToSequence") {
    RewriteSplitToSequence(file, node);
  } else if (op == "Pad") {
    RewritePad(file, node);
  } else if (op == "Resize") {
    RewriteResize(file, node);
  } else if (op == "GroupNormalization") {
    RewriteGroupNormalization(file, node);
  } else if (op == "Attention") {
    RewriteAttention(file, node);
  } else if (op == "LSTM" || op == "GRU" || op == "RNN") {
    RewriteRecurrent(file, node);
  } else if (op == "RandomUniformLike" || op == "RandomNormalLike" ||
             op == "Bernoulli") {
    RewriteRandomLike(file, node);
  } else if (op != "Constant") {
    RewriteConstantOperands(file, node);
  }
  FreezeStale(file, node);
}

}  // namespace

void RewritePrunedNodes(const Imported& original, const Graph& pruned,
                        FixedSizes fixed, const VariedConstants* varied,
                        onnx::ModelProto* model) {
  PrunedFile file(original, pruned, std::move(fixed), varied, model);
  file.RewriteNodes([&file](onnx::NodeProto* node) { Visit(file, node); });
}

}  // namespace loadline::models::onnx_internal
