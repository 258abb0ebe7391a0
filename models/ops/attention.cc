// Attention as one operator: softmax(scale q k' + mask) v, with one statistic
// per row instead of the matrix of probabilities. The gradient reads q, k, v, y
// and the statistic; exp(score - lse) gives the probability again (Dao, Fu,
// Ermon, Rudra, Re, "FlashAttention", NeurIPS 2022). It reads y because sum(dy
// y) over a row equals sum(dP P), as libraries on other devices do. Tested in
// tests/models/infer_test.cc and gradient_test.cc.
#include "models/ops/attention.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/ops/check_types.h"
#include "models/ops/families.h"
#include "models/ops/row_cuts.h"
#include "planner/base/status_macros.h"

namespace loadline::models {

std::vector<int64_t> AttentionShape::StatisticDims() const {
  std::vector<int64_t> dims = leading;
  dims.push_back(rows);
  return dims;
}

std::vector<int64_t> AttentionShape::ScoreDims() const {
  std::vector<int64_t> dims = StatisticDims();
  dims.push_back(columns);
  return dims;
}

double AttentionShape::VisibleScores(bool causal) const {
  const auto s = static_cast<double>(rows);
  const auto t = static_cast<double>(columns);
  const double all = s * t;
  // Row r attends to min(r + 1, columns) columns.
  const double seen = s <= t ? s * (s + 1) / 2 : all - t * (t - 1) / 2;
  return static_cast<double>(batch * heads) * (causal ? seen : all);
}

absl::StatusOr<AttentionShape> AttentionShapeOf(const Node& node,
                                                const TensorType& q,
                                                const TensorType& k,
                                                const TensorType& v) {
  AttentionShape shape;
  shape.interleaved = node.attributes.Int("interleaved", 0) != 0;
  const size_t rank = q.dims.size();
  if (shape.interleaved ? rank != 4 : rank < 2) {
    return Refuse("q is ", q.ToString(), ", not of ",
                  shape.interleaved ? "4" : "2 or more", " dimensions");
  }
  const size_t row_axis = shape.interleaved ? 1 : rank - 2;
  shape.rows = q.dims[row_axis];
  shape.width = q.dims[rank - 1];
  if (k.dims.size() == rank) shape.columns = k.dims[row_axis];
  if (v.dims.size() == rank) shape.value_width = v.dims[rank - 1];
  std::vector<int64_t> dims = q.dims;
  dims[row_axis] = shape.columns;
  LOADLINE_RETURN_IF_ERROR(RequireDims("k", k, dims));
  dims[rank - 1] = shape.value_width;
  LOADLINE_RETURN_IF_ERROR(RequireDims("v", v, dims));
  if (q.elements() == 0 || k.elements() == 0 || v.elements() == 0) {
    return Refuse("q is ", q.ToString(), ", k is ", k.ToString(), ", v is ",
                  v.ToString(), ": attention of nothing");
  }
  if (shape.interleaved) {
    shape.leading = {q.dims[0], q.dims[2]};
    shape.batch = q.dims[0];
    shape.heads = q.dims[2];
  } else {
    shape.leading.assign(q.dims.begin(), q.dims.end() - 2);
    shape.batch = std::accumulate(shape.leading.begin(), shape.leading.end(),
                                  int64_t{1}, std::multiplies<int64_t>());
  }
  return shape;
}

namespace {

constexpr int kMask = 3;      // of Attention
constexpr int kGradMask = 6;  // of AttentionGrad

bool Causal(const Node& node) { return node.attributes.Int("causal", 0) != 0; }

absl::Status CheckMask(const AttentionShape& shape, InputTypes inputs,
                       size_t i) {
  if (inputs.size() <= i || inputs[i] == nullptr) return absl::OkStatus();
  const std::vector<int64_t> scores = shape.ScoreDims();
  const absl::StatusOr<std::vector<int64_t>> dims =
      BroadcastDims(scores, inputs[i]->dims);
  if (dims.ok() && *dims == scores) return absl::OkStatus();
  return Refuse("mask is ", inputs[i]->ToString(),
                ", which does not broadcast to the scores' shape");
}

absl::Status CheckRatio(const Node& node) {
  const double ratio = node.attributes.Float("ratio", 0);
  if (ratio >= 0 && ratio < 1) return absl::OkStatus();
  return Refuse("attribute ratio is ", ratio, ", not in 0 to below 1");
}

// y's type: q's, with v's width.
TensorType OutputType(const TensorType& q, const TensorType& v) {
  TensorType y = q;
  y.dims.back() = v.dims.back();
  return y;
}

absl::StatusOr<OutputTypes> InferAttention(const Node& node,
                                           InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloatData(inputs, 3));
  LOADLINE_RETURN_IF_ERROR(CheckRatio(node));
  LOADLINE_ASSIGN_OR_RETURN(
      AttentionShape shape,
      AttentionShapeOf(node, *inputs[0], *inputs[1], *inputs[2]));
  LOADLINE_RETURN_IF_ERROR(CheckMask(shape, inputs, kMask));
  return OutputTypes{OutputType(*inputs[0], *inputs[2]),
                     {DType::kF32, shape.StatisticDims()}};
}

absl::StatusOr<OutputTypes> InferAttentionGrad(const Node& node,
                                               InputTypes inputs) {
  LOADLINE_RETURN_IF_ERROR(RequireFloatData(inputs, 5));
  LOADLINE_RETURN_IF_ERROR(CheckRatio(node));
  LOADLINE_ASSIGN_OR_RETURN(
      AttentionShape shape,
      AttentionShapeOf(node, *inputs[1], *inputs[2], *inputs[3]));
  const TensorType y = OutputType(*inputs[1], *inputs[3]);
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 0, y));
  LOADLINE_RETURN_IF_ERROR(RequireType(inputs, 4, y));
  LOADLINE_RETURN_IF_ERROR(
      RequireType(inputs, 5, {DType::kF32, shape.StatisticDims()}));
  LOADLINE_RETURN_IF_ERROR(CheckMask(shape, inputs, kGradMask));
  return OutputTypes{*inputs[1], *inputs[2], *inputs[3]};
}

absl::Status AttentionGradient(GradientContext& c) {
  if (c.output_gradient(1) != kNoValue) {
    return absl::UnimplementedError(absl::StrCat(
        "no gradient through the log-sum-exp of \"", c.forward().name, "\""));
  }
  if (c.output_gradient(0) == kNoValue) return absl::OkStatus();
  const bool masked = c.forward().inputs.size() > kMask;
  if (masked && c.wanted(kMask)) {
    return absl::UnimplementedError(absl::StrCat(
        "no gradient toward the mask of \"", c.forward().name, "\""));
  }
  std::vector<ValueId> inputs = {c.output_gradient(0), c.input(0),
                                 c.input(1),           c.input(2),
                                 c.output(0),          c.output(1)};
  if (masked) inputs.push_back(c.input(kMask));
  LOADLINE_ASSIGN_OR_RETURN(
      std::vector<ValueId> gradients,
      c.EmitAll("AttentionGrad", inputs, c.forward().attributes));
  for (int i = 0; i < kMask; ++i) {
    if (c.wanted(i)) c.SetInputGradient(i, gradients[i]);
  }
  return absl::OkStatus();
}

// Cost of `products` products over the elements of the scores, and of a
// softmax.
OperatorCost CostOfProducts(const Node& node, const AttentionShape& shape,
                            double of_width, double of_value_width) {
  OperatorCost cost;
  cost.flops = shape.VisibleScores(Causal(node)) *
               (2 * of_width * static_cast<double>(shape.width) +
                2 * of_value_width * static_cast<double>(shape.value_width) +
                14 + (node.attributes.Float("ratio", 0) > 0 ? 25 : 0));
  cost.matmul_like = true;
  return cost;
}

OperatorCost AttentionCost(const Node& node, InputTypes inputs,
                           absl::Span<const TensorType> outputs) {
  // Scores; y.
  OperatorCost cost = CostOfProducts(
      node, *AttentionShapeOf(node, *inputs[0], *inputs[1], *inputs[2]), 1, 1);
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

OperatorCost AttentionGradCost(const Node& node, InputTypes inputs,
                               absl::Span<const TensorType> outputs) {
  // Scores, dq, dk; probabilities' gradient, dv.
  OperatorCost cost = CostOfProducts(
      node, *AttentionShapeOf(node, *inputs[1], *inputs[2], *inputs[3]), 3, 2);
  cost.bytes = BytesReadAndWritten(inputs, outputs);
  return cost;
}

}  // namespace

std::vector<Operator> AttentionOperators() {
  Operator attention;
  attention.name = "Attention";
  attention.min_inputs = 3;
  attention.max_inputs = 4;
  attention.infer = InferAttention;
  attention.gradient = AttentionGradient;
  attention.cost = AttentionCost;
  attention.inplace = {{0, 0}};
  attention.row_cuts = CutAttention;
  attention.attributes = {
      {"scale", AttributeKind::kFloat, true}, {"causal", AttributeKind::kInt},
      {"interleaved", AttributeKind::kInt},   {"ratio", AttributeKind::kFloat},
      {"salt", AttributeKind::kInt},          {"offset", AttributeKind::kInt}};
  Operator grad = attention;
  grad.name = "AttentionGrad";
  grad.min_inputs = 6;
  grad.max_inputs = 7;
  grad.infer = InferAttentionGrad;
  grad.gradient = nullptr;
  grad.cost = AttentionGradCost;
  grad.inplace = {{1, 0}};
  return {attention, grad};
}

}  // namespace loadline::models
