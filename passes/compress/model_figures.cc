// Tested by tests/passes/compress/phase_model_test.cc.
#include "passes/compress/model_figures.h"

#include <cmath>

#include "models/ops/operator.h"

namespace loadline::passes {

ModelFigures FiguresOf(const models::Graph& model) {
  ModelFigures figures;
  for (const models::Value& value : model.values) {
    const bool fixed = value.kind == models::ValueKind::kConstant &&
                       value.type.dtype == models::DType::kF32 &&
                       value.type.rank() >= 2;
    if (value.kind == models::ValueKind::kParameter || fixed) {
      figures.parameters += value.type.elements();
    }
  }
  for (const models::Node& node : model.nodes) {
    const models::OperatorCost cost = models::CostOf(model, node);
    if (cost.matmul_like) figures.macs += std::llround(cost.flops / 2);
  }
  return figures;
}

}  // namespace loadline::passes
