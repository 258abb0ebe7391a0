// The conversion takes time that grows with the square of the nodes, and most
// versions of an operator only admit further types. Which ones do is read from
// the library's own table of adapters. Tested in
// tests/models/onnx_convert_opset_test.cc.
#include "models/onnx/convert_opset.h"

#include <algorithm>
#include <set>
#include <string>

#include "models/onnx/edit_model.h"
#include "models/onnx/supported.h"
#include "onnx/defs/schema.h"
#include "onnx/version_converter/convert.h"

namespace loadline::models::onnx_internal {
namespace {

class Adapters : public onnx::version_conversion::DefaultVersionConverter {
 public:
  // Whether the operator's version in opset `from` means the same in the next.
  bool Keeps(const std::string& op, int from) const {
    const auto* next = onnx::OpSchemaRegistry::Schema(op, from + 1);
    if (next == nullptr) return false;
    if (next->SinceVersion() <= from) return true;
    const auto of_op = adapters.find(op);
    if (of_op == adapters.end()) return false;
    const auto source = of_op->second.find(onnx::OpSetID(from).toString());
    if (source == of_op->second.end()) return false;
    const auto target = source->second.find(onnx::OpSetID(from + 1).toString());
    return target != source->second.end() &&
           dynamic_cast<const onnx::version_conversion::CompatibleAdapter*>(
               target->second.get()) != nullptr;
  }
};

void CollectOperators(const onnx::GraphProto& graph,
                      std::set<std::string>* ops) {
  for (const auto& node : graph.node()) {
    // Other domains have opsets of their own, which stay.
    if (QualifiedName(node) == node.op_type()) ops->insert(node.op_type());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) CollectOperators(attribute.g(), ops);
    }
  }
}

}  // namespace

bool ConversionKeepsNodes(const onnx::GraphProto& graph, int from, int to) {
  if (from > to) return false;
  std::set<std::string> ops;
  CollectOperators(graph, &ops);
  const Adapters adapters;
  for (const std::string& op : ops) {
    for (int opset = from; opset < to; ++opset) {
      if (!adapters.Keeps(op, opset)) return false;
    }
  }
  return true;
}

void SetOpset(int opset, onnx::ModelProto* proto) {
  for (auto& import : *proto->mutable_opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") {
      import.set_version(opset);
    }
  }
}

void SetTrainingMode(onnx::GraphProto* graph) {
  std::set<std::string> read = NeededNames(*graph);
  read.erase("");  // omits an input or an output
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    if (node.op_type() != "BatchNormalization" || node.output_size() < 2) {
      continue;
    }
    const bool trains =
        std::any_of(node.output().begin() + 1, node.output().end(),
                    [](const std::string& name) { return !name.empty(); });
    while (node.output_size() > (trains ? 3 : 1) &&
           read.count(node.output(node.output_size() - 1)) == 0) {
      node.mutable_output()->RemoveLast();
    }
    if (trains) SetInt("training_mode", 1, &node);
  }
}

void ConvertNodes(int opset, onnx::ModelProto* proto) {
  *proto = onnx::version_conversion::ConvertVersion(*proto, opset);
}

}  // namespace loadline::models::onnx_internal
