// Symbolic shape inference on a copy of the model without its weights; then the
// arithmetic of shapes is followed back to the axes that it reads. Tested in
// tests/conformance/pruned_export_test.cc.
#include "models/onnx/open_axes.h"

#include <algorithm>
#include <set>

#include "models/onnx/guard.h"
#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"
#include "onnx/shape_inference/implementation.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr int64_t kSmallElements = 64;  // shapes, axes

// Large initializers become inputs, which have a shape and no contents.
onnx::ModelProto WithoutWeights(const onnx::ModelProto& model) {
  onnx::ModelProto copy;
  copy.set_ir_version(model.ir_version());
  *copy.mutable_opset_import() = model.opset_import();
  onnx::GraphProto& graph = *copy.mutable_graph();
  graph.set_name(model.graph().name());
  *graph.mutable_node() = model.graph().node();
  *graph.mutable_input() = model.graph().input();
  *graph.mutable_output() = model.graph().output();
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    int64_t elements = 1;
    for (int64_t dim : tensor.dims()) elements *= dim;
    if (elements <= kSmallElements) {
      *graph.add_initializer() = tensor;
      continue;
    }
    onnx::ValueInfoProto* input = graph.add_input();
    input->set_name(tensor.name());
    auto* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(tensor.data_type());
    for (int64_t dim : tensor.dims()) {
      type->mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }
  return copy;
}

using ShapeElements = std::optional<std::vector<ShapeElement>>;

constexpr int kMostShapeSteps = 10000;

class ShapeReader {
 public:
  ShapeReader(const onnx::GraphProto& graph, const FixedSizes& sizes)
      : sizes_(sizes) {
    for (const auto& node : graph.node()) {
      for (const auto& output : node.output()) maker_[output] = &node;
    }
    for (const auto& tensor : graph.initializer()) {
      initializer_[tensor.name()] = &tensor;
    }
  }

  ShapeElements Read(const std::string& name) {
    if (++steps_ > kMostShapeSteps) return std::nullopt;
    if (const auto values = Constant(name)) {
      std::vector<ShapeElement> elements;
      for (int64_t value : *values) {
        elements.push_back(value == -1  ? ShapeElement::kInferred
                           : value == 0 ? ShapeElement::kCopied
                                        : ShapeElement::kFixed);
      }
      return elements;
    }
    const auto it = maker_.find(name);
    if (it == maker_.end()) return std::nullopt;
    const onnx::NodeProto& node = *it->second;
    static const auto& same = *new std::set<std::string>{
        "Unsqueeze", "Squeeze", "Cast", "Identity", "Reshape"};
    static const auto& both = *new std::set<std::string>{
        "Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"};
    const std::string& op = node.op_type();
    if (op == "Shape") return ShapeOf(node);
    if (op == "Gather" && node.input_size() == 2) return Gathered(node);
    if (op == "Slice" && node.input_size() >= 3) return Sliced(node);
    if (op == "Concat") return Joined(node);
    if (same.count(op) > 0) return Read(node.input(0));
    if (both.count(op) > 0 && node.input_size() == 2) return Combined(node);
    return std::nullopt;
  }

 private:
  // Whole numbers that the file has.
  std::optional<std::vector<int64_t>> Constant(const std::string& name) const {
    const onnx::TensorProto* proto = nullptr;
    const auto initializer = initializer_.find(name);
    const auto maker = maker_.find(name);
    if (initializer != initializer_.end()) {
      proto = initializer->second;
    } else if (maker != maker_.end() &&
               maker->second->op_type() == "Constant") {
      if (const auto* ints = FindAttribute(*maker->second, "value_ints")) {
        return std::vector<int64_t>(ints->ints().begin(), ints->ints().end());
      }
      if (const auto* one = FindAttribute(*maker->second, "value_int")) {
        return std::vector<int64_t>{one->i()};
      }
      const auto* value = FindAttribute(*maker->second, "value");
      if (value != nullptr) proto = &value->t();
    }
    if (proto == nullptr) return std::nullopt;
    int64_t budget_bytes = int64_t{1} << 16;
    const auto tensor = ReadTensor(*proto, "", &budget_bytes);
    if (!tensor.ok() || tensor->type.dtype != DType::kI64) return std::nullopt;
    const auto values = tensor->as<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }

  ShapeElements ShapeOf(const onnx::NodeProto& node) const {
    const auto it = sizes_.find(node.input(0));
    if (it == sizes_.end()) return std::nullopt;
    const auto rank = static_cast<int64_t>(it->second.size());
    const auto at = [rank](int64_t i) {
      return std::clamp(i < 0 ? i + rank : i, int64_t{0}, rank);
    };
    std::vector<ShapeElement> elements;
    for (int64_t i = at(IntAttribute(node, "start", 0));
         i < at(IntAttribute(node, "end", rank)); ++i) {
      elements.push_back(it->second[static_cast<size_t>(i)] < 0
                             ? ShapeElement::kOpen
                             : ShapeElement::kFixed);
    }
    return elements;
  }

  ShapeElements Gathered(const onnx::NodeProto& node) {
    const ShapeElements from = Read(node.input(0));
    const auto positions = Constant(node.input(1));
    if (!from.has_value() || !positions.has_value()) return std::nullopt;
    const auto size = static_cast<int64_t>(from->size());
    std::vector<ShapeElement> elements;
    for (int64_t i : *positions) {
      if (i < 0) i += size;
      if (i < 0 || i >= size) return std::nullopt;
      elements.push_back((*from)[static_cast<size_t>(i)]);
    }
    return elements;
  }

  ShapeElements Sliced(const onnx::NodeProto& node) {
    const ShapeElements from = Read(node.input(0));
    const auto starts = Constant(node.input(1));
    const auto ends = Constant(node.input(2));
    const auto steps =
        HasInput(node, 4) ? Constant(node.input(4)) : std::vector<int64_t>{1};
    if (!from.has_value() || !starts.has_value() || !ends.has_value() ||
        steps != std::vector<int64_t>{1} || starts->size() != 1 ||
        ends->size() != 1) {
      return std::nullopt;
    }
    const auto size = static_cast<int64_t>(from->size());
    const auto at = [size](int64_t i) {
      return std::clamp(i < 0 ? i + size : i, int64_t{0}, size);
    };
    const int64_t start = at((*starts)[0]);
    const int64_t end = std::max(start, at((*ends)[0]));
    return std::vector<ShapeElement>(from->begin() + start,
                                     from->begin() + end);
  }

  ShapeElements Joined(const onnx::NodeProto& node) {
    std::vector<ShapeElement> elements;
    for (const auto& input : node.input()) {
      const ShapeElements part = Read(input);
      if (!part.has_value()) return std::nullopt;
      elements.insert(elements.end(), part->begin(), part->end());
    }
    return elements;
  }

  ShapeElements Combined(const onnx::NodeProto& node) {
    const ShapeElements a = Read(node.input(0)), b = Read(node.input(1));
    if (!a.has_value() || !b.has_value() ||
        (a->size() != b->size() && a->size() != 1 && b->size() != 1)) {
      return std::nullopt;
    }
    std::vector<ShapeElement> elements(std::max(a->size(), b->size()),
                                       ShapeElement::kFixed);
    for (size_t i = 0; i < elements.size(); ++i) {
      if ((*a)[a->size() == 1 ? 0 : i] == ShapeElement::kOpen ||
          (*b)[b->size() == 1 ? 0 : i] == ShapeElement::kOpen) {
        elements[i] = ShapeElement::kOpen;
      }
    }
    return elements;
  }

  const FixedSizes& sizes_;
  std::map<std::string, const onnx::NodeProto*> maker_;
  std::map<std::string, const onnx::TensorProto*> initializer_;
  int steps_ = 0;
};

}  // namespace

absl::StatusOr<FixedSizes> InferFixedSizes(const onnx::ModelProto& model) {
  onnx::ModelProto copy = WithoutWeights(model);
  LOADLINE_RETURN_IF_ERROR(Guard("the model's shapes do not fit", [&copy] {
    onnx::shape_inference::InferShapes(
        copy, onnx::OpSchemaRegistry::Instance(),
        onnx::ShapeInferenceOptions(/*check_type=*/false, /*strict_mode=*/0,
                                    /*data_prop=*/true));
  }));
  FixedSizes sizes;
  const auto add = [&sizes](const onnx::ValueInfoProto& info) {
    if (!info.type().tensor_type().has_shape()) return;
    std::vector<int64_t>& dims = sizes[info.name()];
    dims.clear();
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      dims.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    }
  };
  for (const auto& info : copy.graph().value_info()) add(info);
  for (const auto& info : copy.graph().output()) add(info);
  for (const auto& info : copy.graph().input()) add(info);
  return sizes;
}

std::optional<std::vector<ShapeElement>> ElementsOfShape(
    const onnx::GraphProto& graph, const FixedSizes& sizes,
    const std::string& shape) {
  return ShapeReader(graph, sizes).Read(shape);
}

}  // namespace loadline::models::onnx_internal
