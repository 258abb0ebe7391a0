// nn.Dropout(inplace=True) in torch's newer exporter, and stochastic depth in
// both. Tested in tests/models/onnx_written_dropout_test.cc.
#include "models/onnx/written_dropout.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/onnx/model_file.h"
#include "models/onnx/node_attributes.h"

namespace loadline::models::onnx_internal {
namespace {

// Of f32 numbers that were written in different ways.
constexpr double kTolerance = 1e-6;
constexpr int kMostCasts = 8;

bool IsOneOf(const std::string& op, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (op == name) return true;
  }
  return false;
}

class Restorer {
 public:
  explicit Restorer(onnx::GraphProto* graph) : graph_(graph) {
    for (const auto& node : graph->node()) {
      for (const auto& output : node.output()) made_by_[output] = &node;
      for (const auto& input : node.input()) ++readers_[input];
    }
    for (const auto& output : graph->output()) ++readers_[output.name()];
    for (const auto& tensor : graph->initializer()) {
      initializers_[tensor.name()] = &tensor;
    }
  }

  void Run() {
    std::map<std::string, double> factors;  // by the output of the Div
    for (const auto& node : graph_->node()) {
      if (const auto keep = KeptShare(node)) factors[node.output(0)] = *keep;
    }
    if (factors.empty()) return;
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    for (const auto& node : graph_->node()) {
      auto factor = factors.find(node.output_size() > 0 ? node.output(0) : "");
      if (factor != factors.end()) {
        if (!BecomesDropout(node))
          AddDropoutOfOnes(node, factor->second, &nodes);
        continue;
      }
      const auto [x, div] = Multiplied(node, factors);
      if (div != nullptr && BecomesDropout(*div)) {
        AddDropout(node.name(), *x, node.output(0), factors.at(div->output(0)),
                   &nodes);
      } else {
        *nodes.Add() = node;
      }
    }
    graph_->mutable_node()->Swap(&nodes);
  }

 private:
  const onnx::NodeProto* Maker(const std::string& name) const {
    auto it = made_by_.find(name);
    return it == made_by_.end() ? nullptr : it->second;
  }

  // The node whose result `name` has, but for its type.
  const onnx::NodeProto* BehindCasts(const std::string& name) const {
    const onnx::NodeProto* node = Maker(name);
    for (int i = 0; node != nullptr && i < kMostCasts; ++i) {
      if (!IsOneOf(node->op_type(), {"Cast", "CastLike", "Identity"})) break;
      node = Maker(node->input(0));
    }
    return node;
  }

  // One number, also repeated to a shape.
  std::optional<double> Number(const std::string& name, int depth = 0) const {
    if (auto it = initializers_.find(name); it != initializers_.end()) {
      return NumberIn(*it->second);
    }
    const onnx::NodeProto* node = Maker(name);
    if (node == nullptr || depth > kMostCasts) return std::nullopt;
    if (IsOneOf(node->op_type(), {"Cast", "CastLike", "Identity", "Expand"})) {
      return Number(node->input(0), depth + 1);
    }
    if (node->op_type() != "Constant") return std::nullopt;
    if (FindAttribute(*node, "value_float") != nullptr) {
      return FloatAttribute(*node, "value_float", 0);
    }
    const auto* value = FindAttribute(*node, "value");
    return value == nullptr ? std::nullopt : NumberIn(value->t());
  }

  static std::optional<double> NumberIn(const onnx::TensorProto& proto) {
    int64_t budget_bytes = 64;
    const auto tensor = ReadTensor(proto, "", &budget_bytes);
    if (!tensor.ok() || tensor->data == nullptr ||
        tensor->type.elements() != 1) {
      return std::nullopt;
    }
    if (tensor->type.dtype == DType::kF32) return tensor->as<float>()[0];
    if (tensor->type.dtype == DType::kF64) return tensor->as<double>()[0];
    return std::nullopt;
  }

  // The node that draws the random numbers behind a mask, and its share of
  // ones.
  std::pair<const onnx::NodeProto*, std::optional<double>> Mask(
      const std::string& name) const {
    const onnx::NodeProto* node = BehindCasts(name);
    if (node == nullptr) return {nullptr, std::nullopt};
    if (node->op_type() == "Bernoulli") return {node, Number(node->input(0))};
    if (node->op_type() != "Less") return {nullptr, std::nullopt};
    const onnx::NodeProto* drawn = BehindCasts(node->input(0));
    if (drawn == nullptr ||
        !IsOneOf(drawn->op_type(), {"RandomUniformLike", "RandomUniform"}) ||
        FloatAttribute(*drawn, "low", 0) != 0 ||
        FloatAttribute(*drawn, "high", 1) != 1) {
      return {nullptr, std::nullopt};
    }
    return {drawn, Number(node->input(1))};
  }

  // Of a Div that is a mask over its share of ones.
  std::optional<double> KeptShare(const onnx::NodeProto& node) const {
    if (node.op_type() != "Div" || node.input_size() != 2 ||
        node.output_size() != 1) {
      return std::nullopt;
    }
    const auto share = Mask(node.input(0)).second;
    const auto divisor = Number(node.input(1));
    if (!share || !divisor || !(*share > 0 && *share < 1) ||
        !(std::abs(*share - *divisor) <= kTolerance)) {
      return std::nullopt;
    }
    return share;
  }

  // The other operand of a Mul, and the Div among `factors`; or null.
  std::pair<const std::string*, const onnx::NodeProto*> Multiplied(
      const onnx::NodeProto& node,
      const std::map<std::string, double>& factors) const {
    if (node.op_type() != "Mul" || node.input_size() != 2) return {};
    for (int i : {0, 1}) {
      if (factors.count(node.input(i)) > 0) {
        return {&node.input(1 - i), Maker(node.input(i))};
      }
    }
    return {};
  }

  // Whether the only reader of the Div multiplies it with a tensor of its
  // shape.
  bool BecomesDropout(const onnx::NodeProto& div) const {
    if (readers_.at(div.output(0)) != 1) return false;
    for (const auto& node : graph_->node()) {
      if (node.op_type() != "Mul" || node.input_size() != 2) continue;
      for (int i : {0, 1}) {
        if (node.input(i) == div.output(0)) {
          return HasShapeOf(Mask(div.input(0)).first, node.input(1 - i));
        }
      }
    }
    return false;
  }

  // Whether the random numbers have the shape of x by how they are written.
  bool HasShapeOf(const onnx::NodeProto* drawn, const std::string& x) const {
    if (drawn == nullptr || drawn->input_size() == 0) return false;
    if (drawn->input(0) == x) return true;
    const onnx::NodeProto* like = BehindCasts(drawn->input(0));
    if (like == nullptr ||
        !IsOneOf(like->op_type(), {"Expand", "ConstantOfShape"}))
      return false;
    const onnx::NodeProto* shape = Maker(like->input(like->input_size() - 1));
    return shape != nullptr && shape->op_type() == "Shape" &&
           shape->input(0) == x && IntAttribute(*shape, "start", 0) == 0 &&
           FindAttribute(*shape, "end") == nullptr;
  }

  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  static onnx::NodeProto* Add(const std::string& op, const std::string& name,
                              const std::vector<std::string>& inputs,
                              const std::string& output, Nodes* nodes) {
    onnx::NodeProto* node = nodes->Add();
    node->set_op_type(op);
    node->set_name(name);
    for (const auto& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }

  static onnx::TensorProto* AddValue(onnx::TensorProto::DataType type,
                                     onnx::NodeProto* node) {
    auto* attribute = node->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    attribute->mutable_t()->set_data_type(type);
    return attribute->mutable_t();
  }

  static void AddDropout(const std::string& name, const std::string& x,
                         const std::string& y, double keep, Nodes* nodes) {
    const std::string ratio = y + "/ratio", training = y + "/training";
    AddValue(onnx::TensorProto::FLOAT, Add("Constant", ratio, {}, ratio, nodes))
        ->add_float_data(static_cast<float>(1 - keep));
    AddValue(onnx::TensorProto::BOOL,
             Add("Constant", training, {}, training, nodes))
        ->add_int32_data(1);
    Add("Dropout", name, {x, ratio, training}, y, nodes);
  }

  void AddDropoutOfOnes(const onnx::NodeProto& div, double keep,
                        Nodes* nodes) const {
    const std::string shape = div.output(0) + "/shape";
    const std::string ones = div.output(0) + "/ones";
    const onnx::NodeProto* drawn = Mask(div.input(0)).first;
    const std::string& like =
        drawn->input_size() > 0 ? drawn->input(0) : div.input(0);
    Add("Shape", shape, {like}, shape, nodes);
    onnx::TensorProto* one =
        AddValue(onnx::TensorProto::FLOAT,
                 Add("ConstantOfShape", ones, {shape}, ones, nodes));
    one->add_dims(1);
    one->add_float_data(1);
    AddDropout(div.name(), ones, div.output(0), keep, nodes);
  }

  onnx::GraphProto* graph_;
  std::map<std::string, const onnx::NodeProto*> made_by_;
  std::map<std::string, int> readers_;
  std::map<std::string, const onnx::TensorProto*> initializers_;
};

}  // namespace

void RestoreWrittenDropout(onnx::GraphProto* graph) { Restorer(graph).Run(); }

}  // namespace loadline::models::onnx_internal
