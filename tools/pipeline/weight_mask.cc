// Tested by tests/tools/pipeline/mask_update_test.cc.
#include "tools/pipeline/weight_mask.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/compress/add_masks.h"
#include "passes/compress/choose_weights.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

using passes::PruneCriterion;

absl::StatusOr<std::vector<float>> ScoresOf(const models::Value& weight,
                                            PruneCriterion criterion,
                                            PersistentValues& values) {
  if (passes::NeedsGradients(criterion)) {
    return values.Read(
        passes::ScoreName(weight.name, passes::kWholeTensor, criterion));
  }
  if (criterion != PruneCriterion::kL1 && criterion != PruneCriterion::kL2) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", weight.name,
                     "': single weights are scored by l1, l2, taylor, fisher "
                     "or movement"));
  }
  LOADLINE_ASSIGN_OR_RETURN(std::vector<float> scores,
                            values.Read(weight.name));
  // Both orders are that of |w|; sums over blocks differ.
  for (float& score : scores) {
    score = criterion == PruneCriterion::kL1 ? std::abs(score) : score * score;
  }
  return scores;
}

}  // namespace

absl::Status UpdateWeightMask(const models::Value& weight, int64_t reduced_axis,
                              const passes::PruneSpec& spec, double sparsity,
                              const OptimizerStates& states,
                              PersistentValues& values) {
  const std::string mask_name =
      passes::MaskName(weight.name, passes::kWholeTensor);
  if (!values.Has(mask_name)) return absl::OkStatus();  // nothing trains it
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<float> scores,
                            ScoresOf(weight, spec.criterion, values));
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<float> before,
                            values.Read(mask_name));
  const std::vector<float> mask = passes::ChooseWeights(
      weight.type, spec.granularity, reduced_axis, sparsity, scores, before);
  LOADLINE_RETURN_IF_ERROR(values.Write(mask_name, mask));
  std::vector<std::string> names = {weight.name};
  const auto found = states.find(weight.name);
  if (found != states.end()) {
    names.insert(names.end(), found->second.begin(), found->second.end());
  }
  for (const std::string& name : names) {
    LOADLINE_RETURN_IF_ERROR(values.Clear(
        name, weight.type.elements(),
        [&mask](int64_t e) { return mask[static_cast<size_t>(e)] == 0; }));
  }
  if (!passes::NeedsGradients(spec.criterion)) return absl::OkStatus();
  return values.Write(
      passes::ScoreName(weight.name, passes::kWholeTensor, spec.criterion),
      std::vector<float>(scores.size(), 0.0f));
}

}  // namespace loadline::tools
