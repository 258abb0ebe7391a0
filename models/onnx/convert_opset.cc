// The conversion takes time that grows with the square of the nodes, and most
// versions of an operator only admit further types. Which ones do is read from
// the library's own table of adapters. Tested in
// tests/models/onnx_convert_opset_test.cc.
#include "models/onnx/convert_opset.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/attributes.h"
#include "models/onnx/edit_model.h"
#include "models/onnx/erase_if.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
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

constexpr char kHiddenDomain[] = "loadline.hidden";
constexpr int kNewResize = 11;  // the first opset of today's Pad and Resize

// The contents of an initializer or of a Constant node; nullptr: neither.
const onnx::TensorProto* FindContents(const onnx::GraphProto& graph,
                                      const std::string& name) {
  for (const auto& tensor : graph.initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  for (const auto& node : graph.node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1 ||
        node.output(0) != name) {
      continue;
    }
    const auto* value = FindAttribute(node, "value");
    return value == nullptr ? nullptr : &value->t();
  }
  return nullptr;
}

bool OnlyEnlarges(const onnx::GraphProto& graph, const std::string& scales) {
  const onnx::TensorProto* proto = FindContents(graph, scales);
  if (proto == nullptr) return false;
  int64_t budget_bytes = std::numeric_limits<int64_t>::max();
  const auto tensor = ReadTensor(*proto, /*folder=*/"", &budget_bytes);
  if (!tensor.ok() || tensor->type.dtype != DType::kF32) return false;
  const auto values = tensor->as<float>();
  return std::all_of(values.begin(), values.end(),
                     [](float scale) { return scale >= 1; });
}

template <typename T>
std::string AddConstant(const std::string& name, DType dtype,
                        const std::vector<T>& values, bool is_scalar,
                        onnx::GraphProto* graph) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Constant");
  node->add_output(name);
  auto* attribute = node->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  const Ints dims =
      is_scalar ? Ints() : Ints{static_cast<int64_t>(values.size())};
  SetTensor(MakeTensor({dtype, dims}, values.data()), attribute->mutable_t());
  return name;
}

void SetString(const std::string& name, const std::string& value,
               onnx::NodeProto* node) {
  EraseAttribute(name, node);
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

// Constants that the new form reads are added to `graph`.
void WriteNewForm(onnx::NodeProto* node, onnx::GraphProto* graph) {
  const std::string made = node->output(0);
  if (node->op_type() == "Pad") {
    const Ints pads = IntsAttribute(*node, "pads");
    const std::vector<int64_t> ends(pads.begin(), pads.end());
    const auto value = static_cast<float>(FloatAttribute(*node, "value", 0));
    node->add_input(AddConstant<int64_t>(absl::StrCat(made, "_pads"),
                                         DType::kI64, ends, false, graph));
    if (StringAttribute(*node, "mode", "constant") == "constant") {
      node->add_input(AddConstant<float>(absl::StrCat(made, "_margin"),
                                         DType::kF32, {value}, true, graph));
    }
    EraseAttribute("pads", node);
    EraseAttribute("value", node);
    return;
  }
  std::string scales;
  if (HasInput(*node, 1)) {
    scales = node->input(1);
  } else {
    const auto* attribute = FindAttribute(*node, "scales");
    const std::vector<float> factors(attribute->floats().begin(),
                                     attribute->floats().end());
    scales = AddConstant<float>(absl::StrCat(made, "_scales"), DType::kF32,
                                factors, false, graph);
    EraseAttribute("scales", node);
  }
  node->set_op_type("Resize");
  while (node->input_size() > 1) node->mutable_input()->RemoveLast();
  node->add_input("");
  node->add_input(scales);
  SetString("coordinate_transformation_mode", "asymmetric", node);
  SetString("nearest_mode", "floor", node);
}

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

bool HasNewForm(const onnx::NodeProto& node, const onnx::GraphProto& graph,
                int opset) {
  if (opset >= kNewResize || QualifiedName(node) != node.op_type() ||
      node.output_size() != 1 || node.input_size() < 1) {
    return false;
  }
  if (node.op_type() == "Pad") return FindAttribute(node, "pads") != nullptr;
  if (node.op_type() == "Upsample") {
    return FindAttribute(node, "scales") != nullptr || HasInput(node, 1);
  }
  if (node.op_type() != "Resize" || !HasInput(node, 1)) return false;
  return StringAttribute(node, "mode", "nearest") == "linear" ||
         OnlyEnlarges(graph, node.input(1));
}

void HideOldOperators(int opset, onnx::ModelProto* proto) {
  onnx::GraphProto* graph = proto->mutable_graph();
  std::vector<bool> old;
  for (const auto& node : graph->node()) {
    old.push_back(HasNewForm(node, *graph, opset));
  }
  if (std::find(old.begin(), old.end(), true) == old.end()) return;
  onnx::GraphProto rest;
  for (size_t n = 0; n < old.size(); ++n) {
    onnx::NodeProto* node = graph->mutable_node(static_cast<int>(n));
    if (old[n]) {
      WriteNewForm(node, &rest);
      node->set_domain(kHiddenDomain);
    }
    rest.add_node()->Swap(node);
  }
  graph->mutable_node()->Swap(rest.mutable_node());
  auto* import = proto->add_opset_import();
  import->set_domain(kHiddenDomain);
  import->set_version(1);
}

void ShowOldOperators(onnx::ModelProto* proto) {
  for (auto& node : *proto->mutable_graph()->mutable_node()) {
    if (node.domain() == kHiddenDomain) node.clear_domain();
  }
  EraseIf(proto->mutable_opset_import(),
          [](const auto* import) { return import->domain() == kHiddenDomain; });
}

void ConvertNodes(int opset, onnx::ModelProto* proto) {
  *proto = onnx::version_conversion::ConvertVersion(*proto, opset);
}

}  // namespace loadline::models::onnx_internal
