// Tested by tests/passes/compress/sparsity_schedule_test.cc.
#include "passes/compress/sparsity_schedule.h"

namespace loadline::passes {

double SparsityAt(const PruneSpec& spec, double target, int64_t step) {
  if (step < spec.start_step) return 0;
  if (step >= spec.end_step || spec.schedule == SparsityCurve::kOneShot) {
    return target;
  }
  const int64_t since = step - spec.start_step;
  const auto at_update =
      static_cast<double>(since - since % spec.update_frequency);
  const double t =
      at_update / static_cast<double>(spec.end_step - spec.start_step);
  const double to_go = spec.initial_sparsity - target;
  if (spec.schedule == SparsityCurve::kLinear) return target + to_go * (1 - t);
  return target + to_go * (1 - t) * (1 - t) * (1 - t);
}

bool IsMaskUpdate(const PruneSpec& spec, int64_t step) {
  if (step == spec.start_step || step == spec.end_step) return true;
  if (step < spec.start_step || step > spec.end_step) return false;
  return spec.schedule != SparsityCurve::kOneShot &&
         (step - spec.start_step) % spec.update_frequency == 0;
}

}  // namespace loadline::passes
