// Cases in bf16: every case of an operator that supports it, with its data in
// bf16. Data are rounded to bf16 before kernel and reference get them. A result
// is rounded once more, by half a unit in the last of 8 bits: at most 2^-8 of
// its size. That is the tolerance, relative to 1 + the size.
#include <cstddef>
#include <map>

#include "models/ops/curves.h"
#include "tests/conformance/operator_cases.h"

namespace loadline::conformance {
namespace {

using models::DType;

constexpr double kTolerance = 1.0 / 256;

// Operators, and how many of their inputs are data; scales, statistics and
// masks stay f32.
const std::map<std::string, size_t> kDataInputs = {
    {"Relu", 1},
    {"Gelu", 1},
    {"Tanh", 1},
    {"Sigmoid", 1},
    {"Neg", 1},
    {"ReluGrad", 2},
    {"GeluGrad", 2},
    {"TanhGrad", 2},
    {"SigmoidGrad", 2},
    {"Add", 2},
    {"Sub", 2},
    {"Mul", 2},
    {"MatMul", 2},
    {"Gemm", 3},
    {"GemmBiasGrad", 2},
    {"GemmGeluGrad", 3},
    {"GemmSum", 2},
    {"Conv", 3},
    {"ConvInputGrad", 2},
    {"ConvWeightGrad", 2},
    {"Dropout", 1},
    {"ReduceSum", 1},
    {"ReduceMean", 1},
    {"Transpose", 1},
    {"Concat", 3},
    {"Split", 1},
    {"Slice", 1},
    {"SliceGrad", 1},
    {"Expand", 1},
    {"LayerNormalization", 1},
    {"LayerNormGrad", 2},
    {"BatchNormTraining", 1},
    {"BatchNormGrad", 2},
    {"Attention", 3},
    {"AttentionGrad", 5},
    {"SoftmaxCrossEntropy", 1},
    {"SoftmaxCrossEntropyGrad", 2},
    {"CrossEntropyRows", 1},
    {"Cast", 1}};

size_t DataInputs(const std::string& op) {
  if (const models::CurveFacts* curve = models::FindCurve(op)) {
    return curve->name == op ? 1 : 2;
  }
  const auto found = kDataInputs.find(op);
  return found == kDataInputs.end() ? 0 : found->second;
}

// Whether all inputs other than targets are floats.
bool FloatsOnly(const OperatorCase& c) {
  const bool targets =
      c.op.starts_with("SoftmaxCrossEntropy") || c.op == "CrossEntropyRows";
  for (const std::optional<InputSpec>& input : c.inputs) {
    if (input.has_value() && input->type.dtype != DType::kF32 && !targets) {
      return false;
    }
  }
  return true;
}

// On the CPU the product is rounded before the Gelu's slope multiplies it.
bool RoundsTwice(const std::string& op) { return op == "GemmGeluGrad"; }

// A Gemm that scales oneDNN's result would round it twice.
bool Scales(const OperatorCase& c) {
  return c.op == "Gemm" &&
         (c.inputs.size() > 2 || c.attributes.Float("alpha", 1) != 1);
}

}  // namespace

std::vector<OperatorCase> LowPrecisionCases() {
  std::vector<OperatorCase> cases;
  for (OperatorCase& low : OperatorCases()) {
    const size_t data = DataInputs(low.op);
    if (data == 0 || !FloatsOnly(low) || Scales(low)) continue;
    // Input 0 of this operator is the loss's gradient, not data.
    const size_t first = low.op == "SoftmaxCrossEntropyGrad" ? 1 : 0;
    for (size_t k = first; k < low.inputs.size() && k < data; ++k) {
      if (low.inputs[k].has_value()) low.inputs[k]->type.dtype = DType::kBF16;
    }
    low.what += " bf16";
    low.tolerance = RoundsTwice(low.op) ? 2 * kTolerance : kTolerance;
    cases.push_back(std::move(low));
  }
  for (const char* from : {"f32", "bf16"}) {
    for (const char* to : {"f32", "bf16"}) {
      InputSpec x = F32({3, 127, 131}, -9, 9);
      x.type.dtype = *models::DTypeFromName(from);
      cases.push_back({"Cast",
                       std::string(from) + " to " + to,
                       {x},
                       {{"to", std::string(to)}},
                       kTolerance});
    }
  }
  return cases;
}

}  // namespace loadline::conformance
