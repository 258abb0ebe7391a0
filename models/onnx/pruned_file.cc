// Tested in tests/conformance/pruned_export_test.cc.
#include "models/onnx/pruned_file.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"

namespace loadline::models::onnx_internal {

PrunedFile::PrunedFile(const Imported& original, const Graph& pruned,
                       FixedSizes fixed, const VariedConstants* varied,
                       onnx::ModelProto* model)
    : original_(original),
      pruned_(pruned),
      fixed_(std::move(fixed)),
      varied_(varied),
      model_(*model),
      graph_(*model->mutable_graph()),
      maker_(IndexGraph(original.graph).producer),
      before_(NamesUsed(model->graph())) {
  for (int i = 0; i < graph_.initializer_size(); ++i) {
    initializer_[graph_.initializer(i).name()] = i;
    names_.insert(graph_.initializer(i).name());
  }
  for (int n = 0; n < graph_.node_size(); ++n) {
    for (const auto& output : graph_.node(n).output()) {
      names_.insert(output);
      node_of_[output] = n;
      if (graph_.node(n).op_type() == "Constant") constant_[output] = n;
    }
  }
  names_.insert(before_.begin(), before_.end());
  for (size_t n = 0; n < original.graph.nodes.size(); ++n) {
    absl::string_view name = original.graph.nodes[n].name;
    emitted_[std::string(name)].push_back(static_cast<int32_t>(n));
    // Further nodes of one ONNX node are named NAME.1, NAME.2, ...
    const size_t dot = name.rfind('.');
    int64_t number = 0;
    if (dot != absl::string_view::npos &&
        absl::SimpleAtoi(name.substr(dot + 1), &number)) {
      emitted_[std::string(name.substr(0, dot))].push_back(
          static_cast<int32_t>(n));
    }
  }
}

const Value* PrunedFile::Old(const std::string& name) const {
  const auto it = original_.value_of.find(name);
  return it == original_.value_of.end() ? nullptr
                                        : &original_.graph.value(it->second);
}

const Value* PrunedFile::New(const std::string& name) const {
  const auto it = original_.value_of.find(name);
  return it == original_.value_of.end() ? nullptr : &pruned_.value(it->second);
}

bool PrunedFile::Changed(const std::string& name) const {
  const Value* old_value = Old(name);
  return old_value != nullptr && old_value->type != New(name)->type;
}

std::optional<Ints> PrunedFile::NewDims(const std::string& name) const {
  if (const Value* value = New(name)) return value->type.dims;
  const auto it = initializer_.find(name);
  if (it == initializer_.end()) return std::nullopt;
  const auto& dims = graph_.initializer(it->second).dims();
  return Ints(dims.begin(), dims.end());
}

std::vector<int32_t> PrunedFile::Emitted(const onnx::NodeProto& node) const {
  const auto it =
      emitted_.find(node.name().empty() ? node.output(0) : node.name());
  return it == emitted_.end() ? std::vector<int32_t>{} : it->second;
}

int32_t PrunedFile::Made(const onnx::NodeProto& node,
                         const std::string& op) const {
  const auto it = original_.value_of.find(node.output(0));
  if (it != original_.value_of.end()) {
    const int32_t n = maker_[Index(it->second)];
    if (n >= 0 && NodeAt(n).op == op) return n;
  }
  for (int32_t n : Emitted(node)) {
    if (NodeAt(n).op == op) return n;
  }
  return -1;
}

bool PrunedFile::IsStale(const std::string& name) {
  const auto it = node_of_.find(name);
  if (it == node_of_.end() || New(name) != nullptr) return false;
  const auto [stale, first] = stale_.emplace(name, false);
  if (!first) return stale->second;
  const onnx::NodeProto& node = graph_.node(it->second);
  const bool size = node.op_type() == "Shape" || node.op_type() == "Size";
  bool found = false;
  for (int i = 0; i < node.input_size() && !found; ++i) {
    found = size ? Changed(node.input(i)) : IsStale(node.input(i));
  }
  return stale_[name] = found;
}

std::optional<onnx::TensorProto> PrunedFile::ConstantTensor(
    const std::string& name) const {
  const auto it = initializer_.find(name);
  if (it != initializer_.end()) return graph_.initializer(it->second);
  const auto node = constant_.find(name);
  if (node == constant_.end() && varied_ != nullptr && varied_->all_axes) {
    const std::optional<Tensor> fixed = FixedConstant(*varied_, name);
    if (!fixed.has_value()) return std::nullopt;
    onnx::TensorProto tensor;
    SetTensor(*fixed, &tensor);
    return tensor;
  }
  if (node == constant_.end()) return std::nullopt;
  const onnx::NodeProto& constant = graph_.node(node->second);
  const auto* value = FindAttribute(constant, "value");
  if (value != nullptr) return value->t();
  const auto* ints = FindAttribute(constant, "value_ints");
  if (ints == nullptr) return std::nullopt;
  onnx::TensorProto tensor;
  SetTensor(Int64Tensor(Ints(ints->ints().begin(), ints->ints().end())),
            &tensor);
  return tensor;
}

std::optional<Ints> PrunedFile::ConstantInts(const onnx::NodeProto& node,
                                             int i) const {
  if (i >= node.input_size()) return std::nullopt;
  const auto proto = ConstantTensor(node.input(i));
  if (!proto.has_value()) return std::nullopt;
  int64_t budget_bytes = int64_t{1} << 20;
  const auto tensor = ReadTensor(*proto, "", &budget_bytes);
  if (!tensor.ok() || tensor->data == nullptr) return std::nullopt;
  if (tensor->type.dtype == DType::kI64) {
    const auto v = tensor->as<int64_t>();
    return Ints(v.begin(), v.end());
  }
  if (tensor->type.dtype == DType::kI32) {
    const auto v = tensor->as<int32_t>();
    return Ints(v.begin(), v.end());
  }
  return std::nullopt;
}

std::string PrunedFile::NewName(const onnx::NodeProto& node,
                                const std::string& what) {
  const std::string base = absl::StrCat(node.output(0), "/", what);
  std::string name = base;
  for (int k = 2; !names_.insert(name).second; ++k) {
    name = absl::StrCat(base, ".", k);
  }
  return name;
}

std::string PrunedFile::AddInitializer(const onnx::NodeProto& node,
                                       const std::string& what,
                                       const Tensor& tensor) {
  const std::string name = NewName(node, what);
  onnx::TensorProto* proto = graph_.add_initializer();
  proto->set_name(name);
  SetTensor(tensor, proto);
  return name;
}

std::string PrunedFile::AddConstant(const onnx::NodeProto& node,
                                    const Tensor& tensor) {
  onnx::NodeProto constant;
  constant.set_op_type("Constant");
  constant.add_output(NewName(node, "constant"));
  constant.set_name(constant.output(0));
  onnx::AttributeProto* value = constant.add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  SetTensor(tensor, value->mutable_t());
  new_nodes_.push_back(std::move(constant));
  return new_nodes_.back().output(0);
}

void PrunedFile::SetInput(int i, const std::string& name,
                          onnx::NodeProto* node) {
  while (node->input_size() <= i) node->add_input("");
  node->set_input(i, name);
}

void PrunedFile::SetInputInts(int i, const std::string& what,
                              const Ints& values, onnx::NodeProto* node) {
  SetInput(i, AddInitializer(*node, what, Int64Tensor(values)), node);
}

void PrunedFile::Shorten(int i, int64_t axis, int64_t size,
                         onnx::NodeProto* node) {
  if (Opset() < 10) return;  // bounds are attributes
  onnx::NodeProto slice;
  slice.set_op_type("Slice");
  slice.add_output(NewName(*node, "first"));
  slice.set_name(slice.output(0));
  slice.add_input(node->input(i));
  slice.add_input(AddInitializer(slice, "starts", Int64Tensor({0})));
  slice.add_input(AddInitializer(slice, "ends", Int64Tensor({size})));
  slice.add_input(AddInitializer(slice, "axes", Int64Tensor({axis})));
  SetInput(i, slice.output(0), node);
  new_nodes_.push_back(std::move(slice));
}

int64_t PrunedFile::Opset() const {
  for (const auto& import : model_.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") {
      return import.version();
    }
  }
  return 0;
}

const onnx::NodeProto* PrunedFile::Maker(const std::string& name) const {
  const auto it = node_of_.find(name);
  return it == node_of_.end() ? nullptr : &graph_.node(it->second);
}

void PrunedFile::RewriteNodes(
    const std::function<void(onnx::NodeProto*)>& rewrite) {
  const int count = graph_.node_size();
  std::vector<std::vector<onnx::NodeProto>> added(static_cast<size_t>(count));
  for (int n = 0; n < count; ++n) {
    new_nodes_.clear();
    rewrite(graph_.mutable_node(n));
    added[static_cast<size_t>(n)] = std::move(new_nodes_);
  }
  Insert(std::move(added));
  DropUnused(before_, &graph_);
}

// Each list before its node.
void PrunedFile::Insert(std::vector<std::vector<onnx::NodeProto>> added) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (int n = 0; n < graph_.node_size(); ++n) {
    for (onnx::NodeProto& node : added[static_cast<size_t>(n)]) {
      *nodes.Add() = std::move(node);
    }
    nodes.Add()->Swap(graph_.mutable_node(n));
  }
  graph_.mutable_node()->Swap(&nodes);
}

}  // namespace loadline::models::onnx_internal
