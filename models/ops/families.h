// The operator families: each file of this folder passes its entries to
// table.cc through one of these functions.
#ifndef LOADLINE_MODELS_OPS_FAMILIES_H_
#define LOADLINE_MODELS_OPS_FAMILIES_H_

#include <vector>

#include "models/ops/operator.h"

namespace loadline::models {

std::vector<Operator> PointwiseOperators();
std::vector<Operator> CurveOperators();
std::vector<Operator> BinaryOperators();
std::vector<Operator> ReduceOperators();
std::vector<Operator> AlongAxisOperators();
std::vector<Operator> ShapeOperators();
std::vector<Operator> SliceOperators();
std::vector<Operator> RowOperators();
std::vector<Operator> GatherOperators();
std::vector<Operator> MatMulOperators();
std::vector<Operator> ConvOperators();
std::vector<Operator> BatchNormOperators();
std::vector<Operator> LayerNormOperators();
std::vector<Operator> SoftmaxOperators();
std::vector<Operator> AttentionOperators();
std::vector<Operator> PoolOperators();
std::vector<Operator> DropoutOperators();
std::vector<Operator> CodecOperators();
std::vector<Operator> LossOperators();
std::vector<Operator> GradientNormOperators();
std::vector<Operator> OptimizerOperators();
std::vector<Operator> AdafactorOperators();
std::vector<Operator> QuantizeOperators();

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_FAMILIES_H_
