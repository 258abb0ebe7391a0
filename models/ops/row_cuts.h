// Rules of Operator::row_cuts. Each returns the ways in which a node of its
// operators can run on parts of `rows` rows.
#ifndef LOADLINE_MODELS_OPS_ROW_CUTS_H_
#define LOADLINE_MODELS_OPS_ROW_CUTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/ops/check_types.h"
#include "models/ops/operator.h"

namespace loadline::models {

// The fewest leading dimensions whose product is a multiple of `rows`, so that
// each row is as many of them; -1 if there are none.
int RowDims(const TensorType& type, int64_t rows);

using RowCuts = std::vector<RowCut>;
using CutOutputs = absl::Span<const TensorType>;

// Each output element depends on the input elements at its place; inputs
// broadcast.
RowCuts CutPerElement(const Node& node, InputTypes inputs, CutOutputs outputs,
                      int64_t rows);
// All inputs and outputs have the rows; the axes of the attributes `axis`,
// `axes` and `perm` are not among them.
RowCuts CutAlongAxis(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows);
// Rows of the first `with_rows` inputs and of all outputs are examples: one
// dimension, which no attribute names. The other inputs are read whole.
template <int with_rows>
RowCuts CutExamples(const Node& node, InputTypes inputs, CutOutputs outputs,
                    int64_t rows);
RowCuts CutReshape(const Node& node, InputTypes inputs, CutOutputs outputs,
                   int64_t rows);
RowCuts CutTranspose(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows);
// Rows that stay, or a sum over all of them.
RowCuts CutReduce(const Node& node, InputTypes inputs, CutOutputs outputs,
                  int64_t rows);
// Rows of the left operand; examples of both; or the inner dimension.
RowCuts CutMatMul(const Node& node, InputTypes inputs, CutOutputs outputs,
                  int64_t rows);
// Gemm, GemmBiasGrad, GemmGeluGrad.
RowCuts CutGemm(const Node& node, InputTypes inputs, CutOutputs outputs,
                int64_t rows);
// The gradient of a convolution's weights.
RowCuts CutWeightGrad(const Node& node, InputTypes inputs, CutOutputs outputs,
                      int64_t rows);
RowCuts CutLayerNorm(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows);
RowCuts CutLayerNormGrad(const Node& node, InputTypes inputs,
                         CutOutputs outputs, int64_t rows);
// Attention and AttentionGrad without dropout: by heads, or by examples if
// heads are interleaved.
RowCuts CutAttention(const Node& node, InputTypes inputs, CutOutputs outputs,
                     int64_t rows);
// CrossEntropyRows; SoftmaxCrossEntropyGrad if it is given the count.
RowCuts CutCrossEntropy(const Node& node, InputTypes inputs, CutOutputs outputs,
                        int64_t rows);

template <int with_rows>
RowCuts CutExamples(const Node& node, InputTypes inputs, CutOutputs outputs,
                    int64_t rows) {
  RowCut cut;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool has_rows = i < size_t{with_rows};
    if (has_rows && (inputs[i] == nullptr || RowDims(*inputs[i], rows) != 1 ||
                     inputs[i]->dims[0] != inputs[0]->dims[0])) {
      return {};
    }
    cut.inputs.push_back(has_rows ? 1 : RowCut::kWhole);
  }
  for (const TensorType& output : outputs) {
    if (output.dims.empty() || output.dims[0] != inputs[0]->dims[0]) return {};
    cut.outputs.push_back(1);
  }
  cut.attributes = node.attributes;
  return {cut};
}

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_ROW_CUTS_H_
