// One sweep over the nodes keeps for each value the initializers that it is
// made of, and what kind of result it is. Tested in
// tests/models/onnx_layer_operands_test.cc.
#include "models/onnx/layer_operands.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/supported.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr char kNormalizationScale[] = "scale of a normalization";
constexpr char kNormalizationBias[] = "bias of a normalization";

// What an activation is, as far as a bias or a scale may follow it.
enum class Result {
  kOther,
  kProduct,  // of a layer without bias
  kScaledProduct,
  kNormalized,  // without a scale
  kScaled,      // normalized and scaled, without a bias
  kStatistic,   // a reduction, and what is computed from it
  kRoot,        // a root of a statistic, or its reciprocal
  // As TensorFlow writes (x - mean) / root * scale + bias, which is
  // x * (scale / root) + (bias - mean * (scale / root)):
  kScaledRoot,       // scale / root
  kScaledStatistic,  // mean * (scale / root)
};

struct Known {
  bool constant = false;          // depends on initializers and constants only
  bool moved = true;              // constant: no arithmetic so far
  std::set<std::string> sources;  // constant: initializers
  Result result = Result::kOther;
  bool one_output = false;  // product: of a layer with one output
};

bool IsOneOf(absl::string_view op,
             std::initializer_list<absl::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool Moves(absl::string_view op) {
  return IsOneOf(op, {"Identity", "Transpose", "Reshape", "Flatten", "Squeeze",
                      "Unsqueeze", "Expand", "Cast", "CastLike", "Slice",
                      "Split", "Gather", "Tile"});
}

bool IsReduction(absl::string_view op) {
  return IsOneOf(op, {"ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL2",
                      "ReduceMax", "ReduceL1", "GlobalAveragePool"});
}

// The first input that is a weight of the layer; -1: the operator is no layer.
int FirstWeight(absl::string_view op) {
  if (IsOneOf(op, {"MatMul", "Gemm"})) return 0;
  if (IsOneOf(op, {"Conv", "ConvTranspose", "DeformConv", "BatchNormalization",
                   "LayerNormalization", "InstanceNormalization",
                   "GroupNormalization", "RMSNormalization",
                   "SimplifiedLayerNormalization", "LSTM", "GRU", "RNN",
                   "PRelu"})) {
    return 1;
  }
  return op == "Einsum" ? 0 : -1;
}

// Lengths and initial states of a recurrent layer.
bool IsStateOfSequence(absl::string_view op, int i) {
  return IsOneOf(op, {"LSTM", "GRU", "RNN"}) && i >= 4 && i <= 6;
}

// Whether a Loop or a Scan hands on its body's input i unchanged. Inputs of a
// Loop are the turn, the condition and the values; outputs the condition and
// the values. A Scan's begin with the values.
bool HandsOn(const onnx::NodeProto& loop, const onnx::GraphProto& body, int i) {
  const bool scan = loop.op_type() == "Scan";
  const int output = scan ? i : i - 1;
  if (output < (scan ? 0 : 1) || output >= body.output_size()) return false;
  std::string name = body.output(output).name();
  for (int n = body.node_size() - 1; n >= 0; --n) {
    const auto& node = body.node(n);
    if (node.op_type() == "Identity" && node.output(0) == name) {
      name = node.input(0);
    }
  }
  return name == body.input(i).name();
}

class Finder {
 public:
  Finder(const onnx::GraphProto& graph,
         const std::map<std::string, Tensor>& initializers)
      : initializers_(initializers) {
    for (const auto& input : graph.input()) known_[input.name()] = {};
    for (const auto& [name, tensor] : initializers) {
      Known known;
      known.constant = true;
      known.sources = {name};
      known_[name] = std::move(known);
    }
    for (const auto& node : graph.node()) Visit(node);
  }

  std::map<std::string, LayerOperand> Take() { return std::move(found_); }

 private:
  const Known& Input(const onnx::NodeProto& node, int i) const {
    static const auto* const kNothing = new Known{true, true, {}, {}};
    if (i >= node.input_size()) return *kNothing;
    auto it = known_.find(node.input(i));
    return it == known_.end() ? *kNothing : it->second;
  }

  void Find(const Known& value, OperandForm form, const std::string& op) {
    if (!value.moved) form = OperandForm::kComputed;
    for (const std::string& name : value.sources) {
      auto [it, added] = found_.try_emplace(name, LayerOperand{form, op});
      if (!added && form < it->second.form) it->second = {form, op};
    }
  }

  // The type of the one initializer that a constant is made of, or null.
  const TensorType* Source(const Known& value) const {
    if (!value.constant || value.sources.size() != 1) return nullptr;
    return &initializers_.find(*value.sources.begin())->second.type;
  }

  // At most one axis of the initializer is longer than one.
  bool IsVector(const Known& value) const {
    const TensorType* type = Source(value);
    return type != nullptr && type->elements() > 1 &&
           *std::max_element(type->dims.begin(), type->dims.end()) ==
               type->elements();
  }

  // Of one axis or several.
  bool IsAffine(const Known& value) const {
    const TensorType* type = Source(value);
    return type != nullptr && type->elements() > 1;
  }

  // A bias of a layer with one output has one element. Numbers without an axis
  // are no parameters.
  bool IsOneNumber(const Known& value) const {
    const TensorType* type = Source(value);
    return type != nullptr && type->rank() > 0 && type->elements() == 1;
  }

  // Whether the node, a layer, multiplies by a weight with one output.
  bool HasOneOutput(const onnx::NodeProto& node) const {
    const std::string& op = node.op_type();
    const bool left = op == "MatMul" && Input(node, 0).constant;
    const TensorType* weight = Source(Input(node, left ? 0 : 1));
    if (weight == nullptr || weight->rank() == 0) return false;
    if (weight->rank() == 1) return true;
    // A weight that was transposed before has its outputs elsewhere.
    const bool moved = initializers_.count(node.input(left ? 0 : 1)) == 0;
    const std::vector<int64_t>& dims = weight->dims;
    const int64_t columns = dims.back(), rows = dims[dims.size() - 2];
    if (op == "Conv") return dims[0] == 1;
    if (op == "ConvTranspose") return dims[1] == 1;
    if (moved) return std::min(rows, columns) == 1;
    const bool by_rows =
        left || (op == "Gemm" && IntAttribute(node, "transB", 0) != 0);
    return (by_rows ? rows : columns) == 1;
  }

  // Ones and zeros, or no initializers: as PyTorch writes GroupNorm.
  bool ScalesNothing(const onnx::NodeProto& node) const {
    for (int i : {1, 2}) {
      for (const std::string& name : Input(node, i).sources) {
        const Tensor& tensor = initializers_.find(name)->second;
        if (tensor.data == nullptr || tensor.type.dtype != DType::kF32) {
          return false;
        }
        const auto values = tensor.as<float>();
        if (std::any_of(values.begin(), values.end(),
                        [i](float v) { return v != (i == 1 ? 1 : 0); })) {
          return false;
        }
      }
    }
    return true;
  }

  Known Constant(const onnx::NodeProto& node) const {
    Known known;
    known.constant = true;
    known.moved = Moves(node.op_type()) || node.op_type() == "Concat";
    // The other inputs of a moving operator are shapes and indices.
    const int data = Moves(node.op_type()) ? 1 : node.input_size();
    for (int i = 0; i < data; ++i) {
      const Known& input = Input(node, i);
      known.moved = known.moved && input.moved;
      known.sources.insert(input.sources.begin(), input.sources.end());
    }
    return known;
  }

  // For an operator with two inputs of which one is an activation.
  Result Combined(const onnx::NodeProto& node, const Known& activation,
                  const Known& other) {
    const std::string& op = node.op_type();
    if (op == "Mul" && activation.result == Result::kRoot && IsAffine(other)) {
      Find(other, OperandForm::kFollows, kNormalizationScale);
      return Result::kScaledRoot;
    }
    if (IsOneOf(op, {"Add", "Sub"}) &&
        activation.result == Result::kScaledStatistic && IsAffine(other)) {
      Find(other, OperandForm::kFollows, kNormalizationBias);
      return Result::kOther;
    }
    if (activation.result == Result::kStatistic ||
        activation.result == Result::kRoot) {
      return op == "Pow" ? Result::kRoot : activation.result;
    }
    const bool after_product =
        op == "Add" && activation.result == Result::kProduct;
    if (after_product &&
        (IsVector(other) || (activation.one_output && IsOneNumber(other)))) {
      Find(other, OperandForm::kFollows, kProductBias);
      return Result::kOther;
    }
    if (!IsVector(other)) return Result::kOther;
    if (op == "Mul" && activation.result == Result::kNormalized) {
      Find(other, OperandForm::kFollows, kNormalizationScale);
      return Result::kScaled;
    } else if (op == "Mul" && activation.result == Result::kProduct) {
      Find(other, OperandForm::kFollows, kProductScale);
      return Result::kScaledProduct;
    } else if (op == "Add" && activation.result == Result::kScaledProduct) {
      Find(other, OperandForm::kFollows, kScaledProductBias);
    } else if (op == "Add" && activation.result == Result::kScaled) {
      Find(other, OperandForm::kFollows, kNormalizationBias);
    }
    return Result::kOther;
  }

  Result ResultOf(const onnx::NodeProto& node) {
    const std::string& op = node.op_type();
    const Known& a = Input(node, 0);
    const Known& b = Input(node, 1);
    if (IsOneOf(op, {"Conv", "ConvTranspose", "Gemm"})) {
      return HasInput(node, 2) ? Result::kOther : Result::kProduct;
    }
    if (op == "MatMul") {
      return a.constant || b.constant ? Result::kProduct : Result::kOther;
    }
    if (op == "InstanceNormalization") {
      return ScalesNothing(node) ? Result::kNormalized : Result::kOther;
    }
    if (op == "ReduceL2") return Result::kRoot;
    if (IsReduction(op)) return Result::kStatistic;
    if (op == "Sqrt") {
      return a.result == Result::kStatistic ? Result::kRoot : Result::kOther;
    }
    if (Moves(op) || IsOneOf(op, {"Reciprocal", "Clip", "Neg"})) {
      return a.result;
    }
    if (node.input_size() != 2) return Result::kOther;
    if (a.constant) return Combined(node, b, a);
    if (b.constant) return Combined(node, a, b);
    if (IsOneOf(op, {"Div", "Mul"}) &&
        (b.result == Result::kRoot ||
         (op == "Mul" && a.result == Result::kRoot))) {
      return Result::kNormalized;
    }
    if (op == "Mul" &&
        (a.result == Result::kScaledRoot || b.result == Result::kScaledRoot)) {
      const Known& factor = a.result == Result::kScaledRoot ? b : a;
      return factor.result == Result::kStatistic ? Result::kScaledStatistic
                                                 : Result::kScaled;
    }
    const auto statistic = [](const Known& v) {
      return v.result == Result::kStatistic || v.result == Result::kRoot;
    };
    return statistic(a) && statistic(b) ? Result::kStatistic : Result::kOther;
  }

  // Whether everything that the node computes with, its bodies too, is
  // constant.
  bool IsConstant(const onnx::NodeProto& node) const {
    std::vector<std::string> names = ReadNames(node);
    if (node.op_type() == "CastLike") names.resize(1);  // the other is a type
    return std::all_of(names.begin(), names.end(), [this](const auto& name) {
      const auto it = known_.find(name);
      return name.empty() || it == known_.end() || it->second.constant;
    });
  }

  void FindInputs(const onnx::NodeProto& node) {
    for (int i = 0; i < node.input_size(); ++i) {
      if (IsWeightInput(node, i)) {
        Find(Input(node, i), OperandForm::kInput, node.op_type());
      }
    }
    if (IsOneOf(node.op_type(),
                {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})) {
      Find(Input(node, 2), OperandForm::kInput, node.op_type());
    }
  }

  // What input i of the body is outside: of a Loop or a Scan, a value that it
  // hands on unchanged from turn to turn, or what a Scan takes apart.
  Known OfBodyInput(const onnx::NodeProto& node, const onnx::GraphProto& body,
                    int i) const {
    const bool scan = node.op_type() == "Scan";
    if (!scan && node.op_type() != "Loop") return Known();
    const int states = node.input_size() - static_cast<int>(IntAttribute(
                                               node, "num_scan_inputs", 0));
    if (scan && i >= states) return Input(node, i);
    return HandsOn(node, body, i) ? Input(node, i) : Known();
  }

  // Branches of an If, and the bodies of a Loop and a Scan, read names from
  // around them.
  void VisitBodies(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      const onnx::GraphProto& body = attribute.g();
      for (int i = 0; i < body.input_size(); ++i) {
        known_[body.input(i).name()] = OfBodyInput(node, body, i);
      }
      for (const auto& inner : body.node()) Visit(inner);
    }
  }

  void Visit(const onnx::NodeProto& node) {
    const std::string& op = node.op_type();
    const bool constant = IsConstant(node);
    VisitBodies(node);
    Known known;
    // A table of which rows are read, also at positions known beforehand.
    if (IsOneOf(op, {"Gather", "GatherND"}) &&
        IntAttribute(node, "axis", 0) == 0 && IsTable(Input(node, 0))) {
      Find(Input(node, 0), OperandForm::kInput, op);
    }
    if (constant) {
      known = Constant(node);
    } else {
      FindInputs(node);
      known.result = ResultOf(node);
      known.one_output =
          known.result == Result::kProduct &&
          (Moves(op) ? Input(node, 0).one_output : HasOneOutput(node));
    }
    for (const auto& name : node.output()) {
      if (!name.empty()) known_[name] = known;
    }
  }

  bool IsTable(const Known& value) const {
    return value.constant && value.moved && value.sources.size() == 1 &&
           initializers_.find(*value.sources.begin())->second.type.rank() >= 2;
  }

  const std::map<std::string, Tensor>& initializers_;
  std::map<std::string, Known> known_;
  std::map<std::string, LayerOperand> found_;
};

}  // namespace

bool IsWeightInput(const onnx::NodeProto& node, int i) {
  const int first = FirstWeight(node.op_type());
  return first >= 0 && i >= first && !IsStateOfSequence(node.op_type(), i);
}

std::map<std::string, LayerOperand> FindLayerOperands(
    const onnx::GraphProto& graph,
    const std::map<std::string, Tensor>& initializers) {
  return Finder(graph, initializers).Take();
}

}  // namespace loadline::models::onnx_internal
