// Used by the export of pruned models. Tested in
// tests/conformance/pruned_export_test.cc.
#include "models/onnx/edit_model.h"

#include <algorithm>

#include "models/onnx/model_file.h"

namespace loadline::models::onnx_internal {

Names NamesUsed(const onnx::GraphProto& graph) {
  Names used;
  for (const auto& node : graph.node()) {
    used.insert(node.input().begin(), node.input().end());
  }
  for (const auto& output : graph.output()) used.insert(output.name());
  return used;
}

void SetInt(const std::string& name, int64_t value, onnx::NodeProto* node) {
  for (auto& attribute : *node->mutable_attribute()) {
    if (attribute.name() == name) {
      attribute.set_i(value);
      return;
    }
  }
  onnx::AttributeProto* added = node->add_attribute();
  added->set_name(name);
  added->set_type(onnx::AttributeProto::INT);
  added->set_i(value);
}

void SetInts(const std::string& name, const Ints& values,
             onnx::NodeProto* node) {
  for (auto& attribute : *node->mutable_attribute()) {
    if (attribute.name() != name) continue;
    attribute.mutable_ints()->Assign(values.begin(), values.end());
    return;
  }
  onnx::AttributeProto* added = node->add_attribute();
  added->set_name(name);
  added->set_type(onnx::AttributeProto::INTS);
  added->mutable_ints()->Assign(values.begin(), values.end());
}

void EraseAttribute(const std::string& name, onnx::NodeProto* node) {
  auto* attributes = node->mutable_attribute();
  for (int i = attributes->size(); i-- > 0;) {
    if (attributes->Get(i).name() == name) attributes->DeleteSubrange(i, 1);
  }
}

void SetTensor(const Tensor& tensor, onnx::TensorProto* proto) {
  proto->set_data_type(DTypeToOnnx(tensor.type.dtype));
  proto->mutable_dims()->Assign(tensor.type.dims.begin(),
                                tensor.type.dims.end());
  WriteTensor(tensor, proto);
}

void DropUnused(const Names& before, onnx::GraphProto* graph) {
  Names used;
  for (const auto& output : graph->output()) used.insert(output.name());
  google::protobuf::RepeatedPtrField<onnx::NodeProto> reversed, nodes;
  for (int n = graph->node_size(); n-- > 0;) {
    onnx::NodeProto* node = graph->mutable_node(n);
    const auto outputs = node->output();
    const bool keep = std::any_of(
        outputs.begin(), outputs.end(), [&](const std::string& name) {
          return used.count(name) > 0 ||
                 (before.count(name) == 0 && !name.empty());
        });
    if (!keep) continue;
    used.insert(node->input().begin(), node->input().end());
    reversed.Add()->Swap(node);
  }
  for (int n = reversed.size(); n-- > 0;) {
    nodes.Add()->Swap(reversed.Mutable(n));
  }
  graph->mutable_node()->Swap(&nodes);
  auto* initializers = graph->mutable_initializer();
  int kept = 0;
  for (int i = 0; i < initializers->size(); ++i) {
    const std::string& name = initializers->Get(i).name();
    if (used.count(name) == 0 && before.count(name) > 0) continue;
    if (i != kept) initializers->SwapElements(i, kept);
    ++kept;
  }
  initializers->DeleteSubrange(kept, initializers->size() - kept);
}

}  // namespace loadline::models::onnx_internal
