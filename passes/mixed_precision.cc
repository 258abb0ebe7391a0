// One pass over the nodes in order. Listed operators take bf16, operators that
// only move elements and most curves take either type, all others take f32.
// Each value has at most one cast, and casting a cast uses the original value,
// so no two casts follow each other. Operators missing from the list are still
// correct, only larger.
//
// PyTorch's autocast computes powers, sums, exponentials and the like in f32,
// and what elementwise operators compute from them stays f32: the variance and
// the root of a normalization that is written out. Such values are *wide* here.
// A number that bf16 would round makes the operator f32 too, since PyTorch does
// not round it. What elementwise operators compute from the model's inputs and
// constants alone, such as the angles of encoded positions, is f32 up to where
// it meets another value. With kAutocast it stays so, and more values are wide
// (mixed_precision.h).
//
// A product with a table that bf16 would round (the weights of a Resize, the
// sines of a DFT) is computed in f32, and its result counts as bf16 if its
// operand was. Tested in tests/passes/mixed_precision_test.cc.
#include "passes/mixed_precision.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/ops/curves.h"
#include "models/ops/operator.h"
#include "planner/base/status_macros.h"

namespace loadline::passes {
namespace {

using models::DType;
using models::Graph;
using models::kNoValue;
using models::Node;
using models::Phase;
using models::TensorType;
using models::ValueId;

// Operators that compute in bf16, and how many of their leading inputs are
// bf16. The others (scales, biases, statistics) stay f32.
const std::map<absl::string_view, size_t>& LowPrecisionInputs() {
  static const auto& table =
      *new std::map<absl::string_view, size_t>{{"MatMul", 2},
                                               {"Gemm", 3},
                                               {"Conv", 3},
                                               {"Attention", 3},
                                               {"Relu", 1},
                                               {"Sigmoid", 1},
                                               {"Tanh", 1},
                                               {"Gelu", 1},
                                               {"Neg", 1},
                                               {"Add", 2},
                                               {"Sub", 2},
                                               {"Mul", 2},
                                               {"Dropout", 1},
                                               {"SoftmaxCrossEntropy", 1},
                                               {"LayerNormalization", 1},
                                               {"BatchNormTraining", 1}};
  return table;
}

bool MovesElements(absl::string_view op) {
  static constexpr absl::string_view kMovers[] = {"Reshape", "Transpose",
                                                  "Split", "Slice", "Expand"};
  return std::find(std::begin(kMovers), std::end(kMovers), op) !=
         std::end(kMovers);
}

// Operators that autocast computes in f32, and passes f32 on.
bool IsWideSource(absl::string_view op) {
  static constexpr absl::string_view kSources[] = {
      "Pow", "ReduceSum", "Exp", "Log", "Reciprocal", "Softplus"};
  return std::find(std::begin(kSources), std::end(kSources), op) !=
         std::end(kSources);
}

// Operators whose results are f32 if an operand is.
bool PassesWideOn(absl::string_view op) {
  static constexpr absl::string_view kOps[] = {
      "Add",  "Sub",        "Mul",   "Div",   "Neg",     "Sqrt",
      "Max",  "Min",        "Abs",   "Tanh",  "Sigmoid", "Relu",
      "Gelu", "ReduceMean", "Where", "Concat"};
  return MovesElements(op) || models::FindCurve(op) != nullptr ||
         std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

class Caster {
 public:
  Caster(Graph& graph, bool autocast) : graph_(graph), autocast_(autocast) {}

  absl::Status Run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    wide_.assign(graph_.values.size(), false);
    is_product_.assign(graph_.values.size(), false);
    counts_as_low_.assign(graph_.values.size(), false);
    for (const models::Value& value : graph_.values) {
      given_.push_back(value.kind == models::ValueKind::kInput ||
                       value.kind == models::ValueKind::kConstant);
    }
    for (Node& node : nodes) {
      const bool wide = IsWide(node);
      const bool given = IsGiven(node);
      const bool product = node.op == "MatMul" || node.op == "Conv";
      const bool low = !wide && CountsAsLow(node);
      for (ValueId id : node.outputs) {
        wide_[Index(id)] = wide;
        is_product_[Index(id)] = product;
        counts_as_low_[Index(id)] = low;
        given_[Index(id)] = given;
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        LOADLINE_ASSIGN_OR_RETURN(
            node.inputs[i], As(node.inputs[i], Wanted(node, i), node.phase));
      }
      LOADLINE_RETURN_IF_ERROR(Append(std::move(node)));
    }
    for (ValueId& id : graph_.outputs) {
      LOADLINE_ASSIGN_OR_RETURN(id, As(id, DType::kF32, Phase::kForward));
    }
    return absl::OkStatus();
  }

 private:
  DType TypeOf(ValueId id) const { return graph_.value(id).type.dtype; }

  // Whether the value is bf16, or would be but for a table.
  bool IsLow(ValueId id) const {
    return id != kNoValue &&
           (TypeOf(id) == DType::kBF16 ||
            (Index(id) < counts_as_low_.size() && counts_as_low_[Index(id)]));
  }

  bool AnyLow(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return IsLow(id); });
  }

  bool CountsAsLow(const Node& node) const {
    return (IsProductWithFineTable(node) || MovesElements(node.op)) &&
           AnyLow(node);
  }

  // Values that exist before the pass; a cast is as wide as its original.
  bool IsWideValue(ValueId id) const {
    return id != kNoValue && Index(id) < wide_.size() && wide_[Index(id)];
  }

  // Whether the node takes and gives f32 where it is wide.
  bool KeepsWide(const Node& node) const {
    return PassesWideOn(node.op) || IsProductWithFineTable(node) ||
           (autocast_ &&
            (node.op == "LayerNormalization" || node.op == "Dropout"));
  }

  bool IsWide(const Node& node) const {
    if (IsWideSource(node.op)) return true;
    if (autocast_ &&
        (node.op == "LayerNormalization" || HasFloatOperand(node))) {
      return true;
    }
    return KeepsWide(node) &&
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [this](ValueId id) { return IsWideValue(id); });
  }

  // Whether the node looks rows of a parameter up, or is elementwise on one
  // that is no bias of a product, or on what comes from inputs: autocast casts
  // these for products only. A single number widens nothing.
  bool HasFloatOperand(const Node& node) const {
    const bool sums = node.op == "Add" || node.op == "Sub" || node.op == "Mul";
    if (!sums && node.op != "Gather") return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const models::Value& value = graph_.value(id);
      if (value.type.dtype != DType::kF32) return false;
      const bool trained = value.kind == models::ValueKind::kParameter;
      const bool frozen = value.kind == models::ValueKind::kConstant;
      const bool is_bias =
          node.op == "Add" && (trained || frozen) && value.type.rank() == 1 &&
          is_product_[Index(node.inputs[node.inputs[0] == id ? 1 : 0])];
      if (is_bias) return false;
      return trained || (given_[Index(id)] && value.type.rank() > 0);
    });
  }

  // Whether the node's results come from inputs and constants alone.
  bool IsGiven(const Node& node) const {
    return (PassesWideOn(node.op) || node.op == "Cast" ||
            IsProductWithFineTable(node)) &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [this](auto id) {
             return id == kNoValue || given_[Index(id)];
           });
  }

  // Whether an input is one number that bf16 does not have.
  bool HasFineNumber(const Node& node) const {
    if (node.op != "Add" && node.op != "Sub" && node.op != "Mul") return false;
    return std::any_of(
        node.inputs.begin(), node.inputs.end(), [this](ValueId id) {
          return graph_.value(id).type.elements() == 1 && HasFineElement(id);
        });
  }

  bool IsProductWithFineTable(const Node& node) const {
    return node.op == "MatMul" && node.attributes.Flag("exact") &&
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [this](ValueId id) { return HasFineElement(id); });
  }

  // Whether the value is a constant and has a number that bf16 does not have.
  bool HasFineElement(ValueId id) const {
    const models::Value& value = graph_.value(id);
    if (value.kind != models::ValueKind::kConstant ||
        value.type.dtype != DType::kF32 || value.initial->data == nullptr) {
      return false;
    }
    const absl::Span<const float> elements = value.initial->as<float>();
    // bf16 has the upper half of the bits.
    return std::any_of(elements.begin(), elements.end(), [](float x) {
      return (std::bit_cast<uint32_t>(x) & 0xffffu) != 0;
    });
  }

  // Whether every float input is bf16, or counts as it.
  bool AllLow(const Node& node) const {
    return std::none_of(
        node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
          return id != kNoValue && TypeOf(id) == DType::kF32 && !IsLow(id);
        });
  }

  // The type in which a node takes this input, if it is a float.
  DType Wanted(const Node& node, size_t input) const {
    // A loss that is written out: autocast computes all of them in f32.
    if (node.phase == Phase::kLoss && node.op != "SoftmaxCrossEntropy") {
      return DType::kF32;
    }
    if (given_[Index(node.outputs[0])]) return DType::kF32;
    if (node.op == "Concat") {
      return AllLow(node) ? DType::kBF16 : DType::kF32;
    }
    if (MovesElements(node.op)) return TypeOf(node.inputs[input]);
    const models::CurveFacts* curve = models::FindCurve(node.op);
    if (curve != nullptr && !curve->wide) {
      return AnyLow(node) ? DType::kBF16 : DType::kF32;
    }
    if (KeepsWide(node) && IsWideValue(node.outputs[0])) return DType::kF32;
    if (HasFineNumber(node) || IsProductWithFineTable(node)) {
      return DType::kF32;
    }
    const auto found = LowPrecisionInputs().find(node.op);
    if (found == LowPrecisionInputs().end() || input >= found->second) {
      return DType::kF32;
    }
    return node.op == "Gemm" && !IsPlain(node) ? DType::kF32 : DType::kBF16;
  }

  // Whether a Gemm rounds only once: neither scales nor adds more than a row.
  bool IsPlain(const Node& gemm) const {
    if (gemm.attributes.Float("alpha", 1) != 1 ||
        gemm.attributes.Float("beta", 1) != 1) {
      return false;
    }
    if (gemm.inputs.size() < 3 || gemm.inputs[2] == kNoValue) return true;
    const TensorType& c = graph_.value(gemm.inputs[2]).type;
    const int64_t columns = graph_.value(gemm.outputs[0]).type.dims.back();
    return c.rank() > 0 && c.dims.back() == columns && c.elements() == columns;
  }

  absl::StatusOr<ValueId> As(ValueId id, DType wanted, Phase phase) {
    if (id == kNoValue || TypeOf(id) == wanted ||
        (TypeOf(id) != DType::kF32 && TypeOf(id) != DType::kBF16)) {
      return id;
    }
    const auto known = other_.find(id);
    if (known != other_.end()) return known->second;
    const std::string to(models::DTypeName(wanted));
    LOADLINE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> cast,
        graph_.AddNode("Cast", absl::StrCat(graph_.value(id).name, ".", to),
                       {id}, {{"to", to}}, phase));
    other_[id] = cast[0];
    other_[cast[0]] = id;
    return cast[0];
  }

  // Appends the node; its outputs' types are inferred from its inputs.
  absl::Status Append(Node node) {
    std::vector<const TensorType*> inputs;
    for (ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? nullptr : &graph_.value(id).type);
    }
    LOADLINE_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                              models::InferTypes(node, inputs));
    for (size_t i = 0; i < types.size(); ++i) {
      graph_.value(node.outputs[i]).type = types[i];
    }
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  Graph& graph_;
  const bool autocast_;
  std::vector<bool> wide_;
  std::vector<bool> is_product_;
  std::vector<bool> counts_as_low_;
  std::vector<bool> given_;
  std::map<ValueId, ValueId> other_;  // the same value in the other type
};

}  // namespace

absl::StatusOr<Precision> PrecisionFromName(absl::string_view name) {
  if (name == "fp32") return Precision::kF32;
  if (name == "bf16") return Precision::kBF16;
  if (name == "autocast") return Precision::kAutocast;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown precision '", name, "'; precisions: fp32, bf16, autocast"));
}

absl::Status MixedPrecision(Graph& graph, Precision precision) {
  return Caster(graph, precision == Precision::kAutocast).Run();
}

}  // namespace loadline::passes
