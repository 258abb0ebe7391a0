// One rule per operator that names sizes. A rule reads the new numbers off the
// pruned graph, whose nodes and values have the ids of the imported one. Tested
// in tests/conformance/pruned_export_test.cc.
#include "models/onnx/pruned_nodes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/edit_model.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int64_t kMaxConstantBytes = int64_t{1} << 31;

class Rewriter {
 public:
  Rewriter(const Imported& original, const Graph& pruned, FixedSizes fixed,
           const VariedConstants* varied, onnx::ModelProto* model)
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

  void Run() {
    const int count = graph_.node_size();  // rules append nodes
    std::vector<std::vector<onnx::NodeProto>> added(static_cast<size_t>(count));
    for (int n = 0; n < count; ++n) {
      new_nodes_.clear();
      Visit(graph_.mutable_node(n));
      added[static_cast<size_t>(n)] = std::move(new_nodes_);
    }
    Insert(std::move(added));
    DropUnused(before_, &graph_);
  }

 private:
  // Null: the graph has no value for the tensor.
  const Value* Old(const std::string& name) const {
    const auto it = original_.value_of.find(name);
    return it == original_.value_of.end() ? nullptr
                                          : &original_.graph.value(it->second);
  }
  const Value* New(const std::string& name) const {
    const auto it = original_.value_of.find(name);
    return it == original_.value_of.end() ? nullptr
                                          : &pruned_.value(it->second);
  }
  bool Changed(const std::string& name) const {
    const Value* old_value = Old(name);
    return old_value != nullptr && old_value->type != New(name)->type;
  }
  // Its new shape, of an initializer too.
  std::optional<Ints> NewDims(const std::string& name) const {
    if (const Value* value = New(name)) return value->type.dims;
    const auto it = initializer_.find(name);
    if (it == initializer_.end()) return std::nullopt;
    const auto& dims = graph_.initializer(it->second).dims();
    return Ints(dims.begin(), dims.end());
  }
  // The graph's nodes that the import emitted for this one.
  std::vector<int32_t> Emitted(const onnx::NodeProto& node) const {
    const auto it =
        emitted_.find(node.name().empty() ? node.output(0) : node.name());
    return it == emitted_.end() ? std::vector<int32_t>{} : it->second;
  }
  // The position of the graph's node with this operator that makes the node's
  // first output, or else was emitted for it; -1: none.
  int32_t Made(const onnx::NodeProto& node, const std::string& op) const {
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
  const Node& NodeAt(int32_t n) const {
    return original_.graph.nodes[static_cast<size_t>(n)];
  }
  const Node& PrunedAt(int32_t n) const {
    return pruned_.nodes[static_cast<size_t>(n)];
  }

  // Whether the file computes it, and out of a size that has changed.
  bool IsStale(const std::string& name) {
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

  // The contents of an initializer, a Constant node, or what the file computes
  // and does not depend on an open axis, if that is known; none: it is neither.
  std::optional<onnx::TensorProto> ConstantTensor(
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
  std::optional<Ints> ConstantInts(const onnx::NodeProto& node, int i) const {
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

  std::string NewName(const onnx::NodeProto& node, const std::string& what) {
    const std::string base = absl::StrCat(node.output(0), "/", what);
    std::string name = base;
    for (int k = 2; !names_.insert(name).second; ++k) {
      name = absl::StrCat(base, ".", k);
    }
    return name;
  }
  std::string AddInitializer(const onnx::NodeProto& node,
                             const std::string& what, const Tensor& tensor) {
    const std::string name = NewName(node, what);
    onnx::TensorProto* proto = graph_.add_initializer();
    proto->set_name(name);
    SetTensor(tensor, proto);
    return name;
  }
  // As a node, because the import may take an initializer for a parameter.
  std::string AddConstant(const onnx::NodeProto& node, const Tensor& tensor) {
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
  void SetInput(int i, const std::string& name, onnx::NodeProto* node) {
    while (node->input_size() <= i) node->add_input("");
    node->set_input(i, name);
  }
  void SetInputInts(int i, const std::string& what, const Ints& values,
                    onnx::NodeProto* node) {
    SetInput(i, AddInitializer(*node, what, Int64Tensor(values)), node);
  }

  void Visit(onnx::NodeProto* node) {
    const std::string& op = node->op_type();
    if (node->output_size() == 0 || !node->domain().empty()) return;
    if (op == "Reshape" || op == "Expand") {
      Shape(node);
      return;
    }
    if (op == "Conv" || op == "ConvTranspose") {
      Convolution(node);
    } else if (op == "Slice") {
      Slice(node);
    } else if (op == "Split") {
      Split(node);
    } else if (op == "SplitToSequence") {
      SplitToSequence(node);
    } else if (op == "Pad") {
      Pad(node);
    } else if (op == "Resize") {
      Resize(node);
    } else if (op == "GroupNormalization") {
      GroupNormalization(node);
    } else if (op == "Attention") {
      Attention(node);
    } else if (op == "LSTM" || op == "GRU" || op == "RNN") {
      Recurrent(node);
    } else if (op == "RandomUniformLike" || op == "RandomNormalLike" ||
               op == "Bernoulli") {
      RandomLike(node);
    } else if (op != "Constant") {
      ConstantOperands(node);
    }
    FreezeStale(node);
  }

  // What the file computes out of a size that has changed, such as the root of
  // a head's width or the middle of a Slice, becomes what it was: rules have
  // replaced what has to change.
  void FreezeStale(onnx::NodeProto* node) {
    if (varied_ == nullptr || New(node->output(0)) == nullptr) return;
    for (int i = 0; i < node->input_size(); ++i) {
      if (!IsStale(node->input(i))) continue;
      const auto tensor = FixedConstant(*varied_, node->input(i));
      if (tensor.has_value()) SetInput(i, AddConstant(*node, *tensor), node);
    }
  }

  void Convolution(onnx::NodeProto* node) {
    ConstantOperands(node);
    if (IntAttribute(*node, "group", 1) == 1) return;
    const std::string& wide =
        node->op_type() == "Conv" ? node->input(0) : node->output(0);
    const std::optional<Ints> channels = NewDims(wide);
    const std::optional<Ints> weight = NewDims(node->input(1));
    if (!channels.has_value() || !weight.has_value()) return;
    SetInt("group", (*channels)[1] / (*weight)[1], node);
  }

  // The shape as the file has it, with the sizes of shortened axes replaced.
  void Shape(onnx::NodeProto* node) {
    const std::string& y = node->output(0);
    if (node->input_size() < 2 || !(Changed(y) || Changed(node->input(0)) ||
                                    (varied_ != nullptr && Old(y) != nullptr &&
                                     IsStale(node->input(1))))) {
      return;
    }
    const Ints& old_dims = Old(y)->type.dims;
    const Ints& new_dims = New(y)->type.dims;
    const std::optional<Ints> given = ConstantInts(*node, 1);
    if (!given.has_value()) {
      ComputedShape(node, old_dims, new_dims);
      return;
    }
    const std::optional<Ints> from = NewDims(node->input(0));
    Ints shape = *given;
    if (shape.size() > new_dims.size()) return;
    // Expand aligns the last axes.
    const size_t first = new_dims.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool copies = node->op_type() == "Reshape" && shape[i] == 0 &&
                          IntAttribute(*node, "allowzero", 0) == 0;
      if (copies) {
        if (!from.has_value() || (*from)[i] != new_dims[i]) {
          shape[i] = new_dims[i];
        }
      } else if (shape[i] == old_dims[first + i]) {
        shape[i] = new_dims[first + i];
      }
    }
    if (shape != *given) SetInputInts(1, "shape", shape, node);
  }

  // Of a shape that is joined of single numbers.
  bool IsStaleElement(const std::string& shape, size_t i) {
    const auto it = node_of_.find(shape);
    if (varied_ == nullptr || it == node_of_.end()) return false;
    const onnx::NodeProto& node = graph_.node(it->second);
    if (node.op_type() != "Concat" ||
        node.input_size() !=
            static_cast<int>(varied_->here.at(shape).type.elements())) {
      return false;
    }
    return IsStale(node.input(static_cast<int>(i)));
  }

  // The elements of a computed shape, if they can be told.
  std::optional<std::vector<ShapeElement>> Elements(
      const std::string& shape) const {
    auto elements = ElementsOfShape(graph_, fixed_, shape);
    if (varied_ == nullptr) return elements;
    const auto here = varied_->here.find(shape);
    const auto there = varied_->there.find(shape);
    if (here == varied_->here.end() || there == varied_->there.end() ||
        here->second.type != there->second.type ||
        here->second.type.dtype != DType::kI64) {
      return elements;
    }
    const auto a = here->second.as<int64_t>(), b = there->second.as<int64_t>();
    if (elements.has_value() && elements->size() != a.size()) return elements;
    const bool told = elements.has_value() && !varied_->all_axes;
    if (!elements.has_value()) elements.emplace(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      ShapeElement& element = (*elements)[i];
      if (a[i] != b[i]) {
        element = ShapeElement::kOpen;
      } else if (!told) {
        element = a[i] == -1  ? ShapeElement::kInferred
                  : a[i] == 0 ? ShapeElement::kCopied
                              : ShapeElement::kFixed;
      }
    }
    return elements;
  }

  // Axes whose size the file fixes become numbers; the others are read off the
  // shape that the file computes, or follow from the other axes.
  void ComputedShape(onnx::NodeProto* node, const Ints& old_dims,
                     const Ints& new_dims) {
    const auto elements = Elements(node->input(1));
    if (elements.has_value() && elements->size() != new_dims.size()) return;
    Ints sizes = new_dims;
    std::vector<bool> open(new_dims.size(), false);
    for (size_t i = 0; i < open.size(); ++i) {
      const ShapeElement element =
          elements.has_value() ? (*elements)[i] : ShapeElement::kOpen;
      open[i] = element != ShapeElement::kFixed && old_dims[i] == new_dims[i];
      if (element != ShapeElement::kFixed && !open[i]) sizes[i] = -1;
    }
    int64_t inferred = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      inferred += open[i] ? elements.has_value() &&
                                (*elements)[i] == ShapeElement::kInferred
                          : sizes[i] == -1;
    }
    if (node->op_type() == "Expand" || inferred > 1) sizes = new_dims;
    // What depends on the batch and on what has changed is inferred, if it is
    // the only such size.
    if (inferred == 0 && node->op_type() == "Reshape") {
      int stale = -1, count = 0;
      for (size_t i = 0; i < open.size(); ++i) {
        if (!open[i] || !IsStaleElement(node->input(1), i)) continue;
        stale = static_cast<int>(i);
        ++count;
      }
      if (count == 1) {
        open[static_cast<size_t>(stale)] = false;
        sizes[static_cast<size_t>(stale)] = -1;
      }
    }
    const std::string computed = node->input(1);
    std::vector<std::string> parts;
    for (size_t i = 0; i < open.size();) {
      size_t end = i + 1;
      while (end < open.size() && open[end] == open[i]) ++end;
      const auto a = static_cast<int64_t>(i), b = static_cast<int64_t>(end);
      if (open[i]) {
        onnx::NodeProto slice;
        slice.set_op_type("Slice");
        slice.add_output(NewName(*node, "open"));
        slice.set_name(slice.output(0));
        slice.add_input(computed);
        slice.add_input(AddInitializer(slice, "starts", Int64Tensor({a})));
        slice.add_input(AddInitializer(slice, "ends", Int64Tensor({b})));
        parts.push_back(slice.output(0));
        new_nodes_.push_back(std::move(slice));
      } else {
        parts.push_back(AddInitializer(
            *node, "sizes",
            Int64Tensor(Ints(sizes.begin() + a, sizes.begin() + b))));
      }
      i = end;
    }
    if (parts.size() == 1) {
      SetInput(1, parts[0], node);
      return;
    }
    onnx::NodeProto join;
    join.set_op_type("Concat");
    join.add_output(NewName(*node, "shape"));
    join.set_name(join.output(0));
    for (const std::string& part : parts) join.add_input(part);
    SetInt("axis", 0, &join);
    SetInput(1, join.output(0), node);
    new_nodes_.push_back(std::move(join));
  }

  void Slice(onnx::NodeProto* node) {
    const int32_t n = Made(*node, "Slice");
    if (n < 0 || NodeAt(n).attributes == PrunedAt(n).attributes) return;
    const Attributes& now = PrunedAt(n).attributes;
    const char* const names[] = {"starts", "ends", "axes", "steps"};
    for (int i = 0; i < 4; ++i) {
      if (node->input_size() < 2) {
        if (i < 3) SetInts(names[i], now.IntList(names[i]), node);
      } else {
        SetInputInts(i + 1, names[i], now.IntList(names[i]), node);
      }
    }
  }

  void Split(onnx::NodeProto* node) {
    const int32_t n = Made(*node, "Split");
    if (n < 0 || NodeAt(n).attributes == PrunedAt(n).attributes) return;
    const Ints sizes = PrunedAt(n).attributes.IntList("sizes");
    if (FindAttribute(*node, "split") != nullptr || Opset() < 13) {
      SetInts("split", sizes, node);
      return;
    }
    EraseAttribute("num_outputs", node);
    SetInputInts(1, "split", sizes, node);
  }

  // A single number is the size of every part, which may differ now.
  void SplitToSequence(onnx::NodeProto* node) {
    const int32_t n = Made(*node, "Split");
    if (n < 0 || NodeAt(n).attributes == PrunedAt(n).attributes) return;
    SetInputInts(1, "split", PrunedAt(n).attributes.IntList("sizes"), node);
  }

  // The graph pads with zeros by SliceGrad, whose attributes say what stands
  // before the input; other padding is rewritten only if it is at the end.
  void Pad(onnx::NodeProto* node) {
    const Value* x = New(node->input(0));
    const Value* y = New(node->output(0));
    if (x == nullptr || y == nullptr ||
        !(Changed(node->output(0)) || Changed(node->input(0)))) {
      return;
    }
    const size_t rank = x->type.dims.size();
    Ints pads(2 * rank, 0);
    const int32_t n = Made(*node, "SliceGrad");
    if (n >= 0) {
      const Ints axes = PrunedAt(n).attributes.IntList("axes");
      const Ints starts = PrunedAt(n).attributes.IntList("starts");
      for (size_t i = 0; i < axes.size(); ++i) {
        pads[static_cast<size_t>(axes[i])] = starts[i];
      }
    } else {
      const std::optional<Ints> given = GivenPads(*node);
      if (!given.has_value() || given->size() != 2 * rank) return;
      pads = *given;
    }
    for (size_t axis = 0; axis < rank; ++axis) {
      pads[rank + axis] = y->type.dims[axis] - x->type.dims[axis] - pads[axis];
    }
    if (FindAttribute(*node, "pads") != nullptr) {
      SetInts("pads", pads, node);
      return;
    }
    SetInputInts(1, "pads", pads, node);
    if (node->input_size() > 3) node->set_input(3, "");  // axes: all of them
  }
  std::optional<Ints> GivenPads(const onnx::NodeProto& node) const {
    if (FindAttribute(node, "pads") != nullptr) {
      return IntsAttribute(node, "pads");
    }
    return ConstantInts(node, 1);
  }

  void Resize(onnx::NodeProto* node) {
    std::optional<Ints> sizes = ConstantInts(*node, 3);
    if (!sizes.has_value() || !Changed(node->output(0))) return;
    Ints axes = IntsAttribute(*node, "axes");
    if (axes.empty()) {
      for (size_t i = 0; i < sizes->size(); ++i) {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
    const Ints& old_dims = Old(node->output(0))->type.dims;
    const Ints& new_dims = New(node->output(0))->type.dims;
    for (size_t i = 0; i < sizes->size() && i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0
                               ? axes[i] + static_cast<int64_t>(old_dims.size())
                               : axes[i];
      const auto a = static_cast<size_t>(axis);
      if (a < old_dims.size() && (*sizes)[i] == old_dims[a]) {
        (*sizes)[i] = new_dims[a];
      }
    }
    SetInputInts(3, "sizes", *sizes, node);
  }

  // Random numbers in the shape of a constant, such as a mask of dropout at a
  // fixed batch. The graph has other nodes there, so the shape is that of what
  // the numbers are combined with.
  void RandomLike(onnx::NodeProto* node) {
    const auto proto = ConstantTensor(node->input(0));
    if (!proto.has_value()) return;
    int64_t budget_bytes = kMaxConstantBytes;
    const auto tensor = ReadTensor(*proto, "", &budget_bytes);
    const std::string combined = Combined(node->output(0));
    if (!tensor.ok() || !Changed(combined)) return;
    const Ints& new_dims = New(combined)->type.dims;
    const Ints& old_dims = Old(combined)->type.dims;
    TensorType type = tensor->type;
    if (type.dims.size() != old_dims.size()) return;
    for (size_t i = 0; i < type.dims.size(); ++i) {
      if (type.dims[i] == old_dims[i]) type.dims[i] = new_dims[i];
    }
    // Of Bernoulli the numbers count too: the first for all.
    const auto element = static_cast<size_t>(DTypeBytes(type.dtype));
    auto bytes = std::make_shared<std::vector<std::byte>>();
    for (int64_t i = 0; i < type.elements(); ++i) {
      bytes->insert(bytes->end(), tensor->data->begin(),
                    tensor->data->begin() + static_cast<long>(element));
    }
    SetInput(0, AddConstant(*node, {type, std::move(bytes)}), node);
  }
  // The nearest tensor made with this one that the graph has. Empty: none.
  std::string Combined(const std::string& name) const {
    Names seen = {name};
    std::vector<std::string> next = {name};
    for (size_t at = 0; at < next.size(); ++at) {
      if (New(next[at]) != nullptr) return next[at];
      for (const onnx::NodeProto& reader : graph_.node()) {
        if (reader.op_type() == "Shape" ||
            std::count(reader.input().begin(), reader.input().end(),
                       next[at]) == 0) {
          continue;
        }
        for (const auto& output : reader.output()) {
          if (seen.insert(output).second) next.push_back(output);
        }
      }
    }
    return "";
  }

  // Whole groups go where there are several.
  void GroupNormalization(onnx::NodeProto* node) {
    const std::string& x = node->input(0);
    const int64_t groups = IntAttribute(*node, "num_groups", 1);
    if (!Changed(x) || groups <= 1) return;
    const int64_t in_group = Old(x)->type.dims[1] / groups;
    if (New(x)->type.dims[1] % in_group != 0) return;
    SetInt("num_groups", New(x)->type.dims[1] / in_group, node);
  }

  // R is [directions, gates * hidden, hidden].
  void Recurrent(onnx::NodeProto* node) {
    const std::vector<std::string> given(node->input().begin(),
                                         node->input().end());
    ConstantOperands(node);
    // A first state that the file computes, from its batch for instance.
    const std::optional<Ints> r = NewDims(node->input(2));
    if (!r.has_value() || r->size() != 3) return;
    for (int i = 5; i <= 6 && i < node->input_size(); ++i) {
      const std::string& name = node->input(i);
      const Value* first = Old(name);
      const bool computed =
          !name.empty() && name == given[static_cast<size_t>(i)] &&
          initializer_.count(name) == 0 &&
          (first == nullptr || first->kind == ValueKind::kConstant);
      if (computed &&
          (first == nullptr || first->type.dims.back() != r->back())) {
        Shorten(i, -1, r->back(), node);
      }
    }
    SetInt("hidden_size", r->back(), node);
  }

  // The input loses the last numbers of the axis.
  void Shorten(int i, int64_t axis, int64_t size, onnx::NodeProto* node) {
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

  void Attention(onnx::NodeProto* node) {
    for (const auto& [i, name] :
         {std::pair(0, "q_num_heads"), std::pair(1, "kv_num_heads")}) {
      const int64_t heads = IntAttribute(*node, name, 0);
      if (i >= node->input_size() || heads == 0 || !Changed(node->input(i))) {
        continue;
      }
      const int64_t width = Old(node->input(i))->type.dims.back();
      SetInt(name, New(node->input(i))->type.dims.back() / (width / heads),
             node);
    }
  }

  // A constant operand that the nodes emitted for this one read smaller. The
  // import shares constants of equal contents, so that its name does not tell.
  void ConstantOperands(onnx::NodeProto* node) {
    for (int i = 0; i < node->input_size(); ++i) {
      const auto proto = ConstantTensor(node->input(i));
      if (!proto.has_value()) {
        ComputedOperand(i, node);
        continue;
      }
      int64_t budget_bytes = kMaxConstantBytes;
      const auto tensor = ReadTensor(*proto, "", &budget_bytes);
      if (!tensor.ok()) continue;
      const Tensor* now = Smaller(*node, *tensor);
      if (now != nullptr) {
        SetInput(i, AddConstant(*node, *now), node);
      }
    }
  }
  // One that depends on the batch loses the last numbers of an axis. That these
  // are the pruned ones, as in zeros or a mask for every head, shows when the
  // file is read again.
  void ComputedOperand(int i, onnx::NodeProto* node) {
    if (varied_ == nullptr) return;
    const auto was = varied_->here.find(node->input(i));
    if (was == varied_->here.end()) return;
    const Tensor* now = Smaller(*node, was->second);
    if (now == nullptr || now->type.rank() != was->second.type.rank()) return;
    for (size_t axis = 0; axis < now->type.dims.size(); ++axis) {
      if (now->type.dims[axis] == was->second.type.dims[axis]) continue;
      Shorten(i, static_cast<int64_t>(axis), now->type.dims[axis], node);
    }
  }
  const Tensor* Smaller(const onnx::NodeProto& node, const Tensor& was) const {
    for (int32_t n : Emitted(node)) {
      for (size_t i = 0; i < NodeAt(n).inputs.size(); ++i) {
        const ValueId id = NodeAt(n).inputs[i];
        if (id == kNoValue) continue;
        const Value& old_value = original_.graph.value(id);
        const Value& now = pruned_.value(PrunedAt(n).inputs[i]);
        if (old_value.kind == ValueKind::kConstant &&
            old_value.type == was.type && now.type != was.type &&
            *old_value.initial->data == *was.data) {
          return &*now.initial;
        }
      }
    }
    return nullptr;
  }

  int64_t Opset() const {
    for (const auto& import : model_.opset_import()) {
      if (import.domain().empty() || import.domain() == "ai.onnx") {
        return import.version();
      }
    }
    return 0;
  }

  // Each list before its node.
  void Insert(std::vector<std::vector<onnx::NodeProto>> added) {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    for (int n = 0; n < graph_.node_size(); ++n) {
      for (onnx::NodeProto& node : added[static_cast<size_t>(n)]) {
        *nodes.Add() = std::move(node);
      }
      nodes.Add()->Swap(graph_.mutable_node(n));
    }
    graph_.mutable_node()->Swap(&nodes);
  }

  const Imported& original_;
  const Graph& pruned_;
  const FixedSizes fixed_;
  const VariedConstants* const varied_;  // null: not known
  onnx::ModelProto& model_;
  onnx::GraphProto& graph_;
  const std::vector<int32_t> maker_;
  const Names before_;  // tensors that had a reader
  Names names_;         // all that are taken
  std::map<std::string, int> initializer_;
  std::map<std::string, int> constant_;  // Constant nodes
  std::map<std::string, int> node_of_;   // by the output
  std::map<std::string, bool> stale_;    // see IsStale
  std::map<std::string, std::vector<int32_t>> emitted_;
  std::vector<onnx::NodeProto> new_nodes_;
};

}  // namespace

void RewritePrunedNodes(const Imported& original, const Graph& pruned,
                        FixedSizes fixed, const VariedConstants* varied,
                        onnx::ModelProto* model) {
  Rewriter(original, pruned, std::move(fixed), varied, model).Run();
}

}  // namespace loadline::models::onnx_internal
