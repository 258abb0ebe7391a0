// A rule looks for the leading dimensions that are the rows, and moves the axes
// in the attributes: in a part all of these dimensions are one. Where several
// readings are possible, as in a square matrix, all are returned. Tested in
// tests/models/row_cuts_test.cc and, against whole operators, in
// tests/conformance/split_operators_conformance_test.cc.
#include "models/ops/row_cuts.h"

#include <algorithm>

namespace loadline::models {
namespace {

// An axis of a value whose first `lead` dimensions become one.
int64_t Moved(int64_t axis, int lead) { return axis - (lead - 1); }

bool SameRows(const TensorType& a, const TensorType& b, int lead) {
  return lead > 0 && a.rank() >= lead && b.rank() >= lead &&
         std::equal(a.dims.begin(), a.dims.begin() + lead, b.dims.begin());
}

// Marks every input and output as having `lead` dimensions of rows, as `of`
// does; false if one has other rows.
bool AllHaveRows(InputTypes inputs, CutOutputs outputs, const TensorType& of,
                 int lead, RowCut* cut) {
  for (const TensorType* input : inputs) {
    if (input == nullptr || !SameRows(*input, of, lead)) return false;
    cut->inputs.push_back(lead);
  }
  for (const TensorType& output : outputs) {
    if (!SameRows(output, of, lead)) return false;
    cut->outputs.push_back(lead);
  }
  return true;
}

}  // namespace

int RowDims(const TensorType& type, int64_t rows) {
  int64_t product = 1;
  for (size_t i = 0; i < type.dims.size(); ++i) {
    product *= type.dims[i];
    if (product == 0) break;
    if (product % rows == 0) return static_cast<int>(i) + 1;
  }
  return -1;
}

RowCuts CutPerElement(const Node& node, InputTypes inputs, CutOutputs outputs,
                      int64_t rows) {
  const TensorType& y = outputs[0];
  const int lead = RowDims(y, rows);
  if (lead < 0) return {};
  RowCut cut;
  cut.attributes = node.attributes;
  cut.outputs = {lead};
  for (const TensorType* x : inputs) {
    if (x == nullptr) return {};
    if (x->rank() <= y.rank() - lead) {
      cut.inputs.push_back(RowCut::kWhole);
    } else if (x->rank() == y.rank() && SameRows(*x, y, lead)) {
      cut.inputs.push_back(lead);
    } else {
      return {};
    }
  }
  return {cut};
}

RowCuts CutAlongAxis(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows) {
  if (inputs.empty() || inputs[0] == nullptr) return {};
  const int lead = RowDims(*inputs[0], rows);
  RowCut cut;
  if (lead < 0 || !AllHaveRows(inputs, outputs, *inputs[0], lead, &cut)) {
    return {};
  }
  cut.attributes = node.attributes;
  if (node.attributes.Has("axis")) {
    const int64_t axis = node.attributes.Int("axis", 0);
    if (axis < lead) return {};
    cut.attributes.Set("axis", Moved(axis, lead));
  }
  if (node.attributes.Has("axes")) {
    Ints axes = node.attributes.IntList("axes");
    for (int64_t& axis : axes) {
      if (axis < lead) return {};
      axis = Moved(axis, lead);
    }
    cut.attributes.Set("axes", axes);
  }
  return {cut};
}

RowCuts CutReshape(const Node& node, InputTypes inputs, CutOutputs outputs,
                   int64_t rows) {
  const int from = RowDims(*inputs[0], rows);
  const int to = RowDims(outputs[0], rows);
  if (from < 0 || to < 0) return {};
  return {RowCut{{from}, {to}, node.attributes}};
}

RowCuts CutTranspose(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows) {
  const int lead = RowDims(*inputs[0], rows);
  if (lead < 0) return {};
  const Ints perm = node.attributes.IntList("perm");
  Ints moved = {0};
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at < lead) {
      if (perm[i] != at) return {};
    } else {
      moved.push_back(Moved(perm[i], lead));
    }
  }
  RowCut cut{{lead}, {lead}, node.attributes};
  if (!SameRows(*inputs[0], outputs[0], lead)) return {};
  cut.attributes.Set("perm", moved);
  return {cut};
}

RowCuts CutReduce(const Node& node, InputTypes inputs, CutOutputs outputs,
                  int64_t rows) {
  const int lead = RowDims(*inputs[0], rows);
  if (lead < 0 || !node.attributes.Has("axes")) return {};
  int among_rows = 0;
  Ints rest;
  for (int64_t axis : node.attributes.IntList("axes")) {
    if (axis < lead) {
      ++among_rows;
    } else {
      rest.push_back(Moved(axis, lead));
    }
  }
  RowCut cut{{lead}, {lead}, node.attributes};
  if (among_rows == 0) {
    if (!SameRows(*inputs[0], outputs[0], lead)) return {};
  } else {
    if (among_rows != lead || node.op != "ReduceSum" ||
        node.attributes.Flag("keepdims") || !node.attributes.Has("keepdims")) {
      return {};
    }
    rest.insert(rest.begin(), 0);
    cut.outputs = {RowCut::kAdded};
  }
  cut.attributes.Set("axes", rest);
  return {cut};
}

RowCuts CutMatMul(const Node& node, InputTypes inputs, CutOutputs outputs,
                  int64_t rows) {
  const TensorType& a = *inputs[0];
  const TensorType& b = *inputs[1];
  if (a.rank() < 2 || b.rank() < 2) return {};
  const bool trans_a = node.attributes.Flag("trans_a");
  RowCuts cuts;
  const int lead = RowDims(a, rows);
  if (!trans_a && b.rank() == 2 && lead > 0 && lead < a.rank()) {
    cuts.push_back({{lead, RowCut::kWhole}, {lead}, node.attributes});
  }
  if (a.rank() == b.rank() && lead > 0 && lead <= a.rank() - 2 &&
      SameRows(a, b, lead)) {
    cuts.push_back({{lead, lead}, {lead}, node.attributes});
  }
  if (a.rank() == 2 && b.rank() == 2 && trans_a &&
      !node.attributes.Flag("trans_b") && a.dims[0] % rows == 0) {
    cuts.push_back({{1, 1}, {RowCut::kAdded}, node.attributes});
  }
  (void)outputs;
  return cuts;
}

RowCuts CutGemm(const Node& node, InputTypes inputs, CutOutputs outputs,
                int64_t rows) {
  const TensorType& a = *inputs[0];
  const bool trans_a = node.attributes.Flag("transA");
  RowCuts cuts;
  if (RowDims(a, rows) != 1) return cuts;
  if (!trans_a && outputs.size() == 1) {
    RowCut cut{{1, RowCut::kWhole}, {1}, node.attributes};
    if (inputs.size() > 2) {
      const TensorType* c = inputs[2];
      const bool has_rows =
          c != nullptr && c->rank() == 2 && SameRows(*c, a, 1);
      cut.inputs.push_back(has_rows ? 1 : RowCut::kWhole);
    }
    cuts.push_back(cut);
  }
  if (trans_a && !node.attributes.Flag("transB") && inputs.size() == 2) {
    cuts.push_back({{1, 1},
                    std::vector<int>(outputs.size(), RowCut::kAdded),
                    node.attributes});
  }
  return cuts;
}

RowCuts CutWeightGrad(const Node& node, InputTypes inputs, CutOutputs,
                      int64_t rows) {
  if (RowDims(*inputs[0], rows) != 1) return {};
  return {RowCut{{1, 1}, {RowCut::kAdded}, node.attributes}};
}

RowCuts CutLayerNorm(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows) {
  const int lead = RowDims(*inputs[0], rows);
  const int64_t axis = node.attributes.Int("axis", 0);
  if (lead < 0 || lead > axis) return {};
  RowCut cut;
  cut.inputs.assign(inputs.size(), RowCut::kWhole);
  cut.inputs[0] = lead;
  cut.outputs.assign(outputs.size(), lead);
  cut.attributes = node.attributes;
  cut.attributes.Set("axis", Moved(axis, lead));
  return {cut};
}

RowCuts CutLayerNormGrad(const Node& node, InputTypes inputs, CutOutputs,
                         int64_t rows) {
  const int lead = RowDims(*inputs[1], rows);
  const int64_t axis = node.attributes.Int("axis", 0);
  if (lead < 0 || lead > axis) return {};
  RowCut cut{{lead, lead, RowCut::kWhole, lead, lead},
             {lead, RowCut::kAdded, RowCut::kAdded},
             node.attributes};
  cut.attributes.Set("axis", Moved(axis, lead));
  return {cut};
}

RowCuts CutAttention(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows) {
  if (node.attributes.Float("ratio", 0) > 0) return {};
  const bool gradient = node.op == "AttentionGrad";
  const TensorType& q = *inputs[gradient ? 1 : 0];
  const int lead = RowDims(q, rows);
  if (lead < 0 || lead > q.rank() - 2 ||
      (lead > 1 && node.attributes.Flag("interleaved"))) {
    return {};
  }
  RowCut cut;
  cut.attributes = node.attributes;
  cut.outputs.assign(outputs.size(), lead);
  cut.inputs.assign(inputs.size(), lead);
  const size_t mask = gradient ? 6 : 3;
  for (size_t i = 0; i < mask; ++i) {
    if (inputs[i] == nullptr || !SameRows(*inputs[i], q, lead)) return {};
  }
  for (const TensorType& output : outputs) {
    if (!SameRows(output, q, lead)) return {};
  }
  if (inputs.size() > mask && inputs[mask] != nullptr) {
    // The mask broadcasts to the scores, which have q's rank.
    const TensorType& m = *inputs[mask];
    if (m.rank() <= q.rank() - lead) {
      cut.inputs[mask] = RowCut::kWhole;
    } else if (m.rank() != q.rank() || !SameRows(m, q, lead)) {
      return {};
    }
  }
  return {cut};
}

RowCuts CutCrossEntropy(const Node& node, InputTypes inputs, CutOutputs outputs,
                        int64_t rows) {
  const bool gradient = node.op == "SoftmaxCrossEntropyGrad";
  // Without a count, or with weights of classes, which CrossEntropyMean lacks.
  if (gradient && inputs.size() != 5) return {};
  const int logits = gradient ? 1 : 0;
  const int lead = RowDims(*inputs[logits], rows);
  const int64_t axis = node.attributes.Int("class_axis", 0);
  if (lead < 0 || lead > axis) return {};
  RowCut cut;
  if (gradient) {
    cut.inputs = {RowCut::kWhole, lead, lead, lead, RowCut::kWhole};
  } else {
    cut.inputs = {lead, lead};
  }
  cut.outputs.assign(outputs.size(), lead);
  cut.attributes = node.attributes;
  cut.attributes.Set("class_axis", Moved(axis, lead));
  return {cut};
}

std::vector<RowCut> RowCutsOf(const Graph& graph, const Node& node,
                              int64_t rows) {
  const Operator* op = FindOperator(node.op);
  if (op == nullptr || op->row_cuts == nullptr || !op->recompute) return {};
  std::vector<const TensorType*> inputs;
  for (ValueId id : node.inputs) {
    inputs.push_back(id == kNoValue ? nullptr : &graph.value(id).type);
  }
  std::vector<TensorType> outputs;
  for (ValueId id : node.outputs) outputs.push_back(graph.value(id).type);
  return op->row_cuts(node, inputs, outputs, rows);
}

}  // namespace loadline::models
