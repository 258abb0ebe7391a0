// How much a model loses with the channels of one group, without retraining.
#ifndef LOADLINE_TOOLS_PIPELINE_SENSITIVITY_H_
#define LOADLINE_TOOLS_PIPELINE_SENSITIVITY_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "executor/train/data.h"
#include "executor/train/evaluate.h"
#include "passes/compress/recipe.h"
#include "tools/pipeline/load_evaluation.h"

namespace loadline::tools {

struct SensitivityPoint {
  double sparsity = 0;  // of the group's channels
  executor::Evaluation evaluation;
};

struct GroupSensitivity {
  std::string group;
  int64_t width = 0;
  std::vector<std::string> makers;  // the nodes that a recipe has to name
  std::vector<SensitivityPoint> points;
};

struct Sensitivity {
  executor::Evaluation whole;  // with all channels
  std::vector<GroupSensitivity> groups;
};

// Masks the lowest-scoring channels of one group after the other at each of
// `sparsities`, rising, and evaluates the model on the whole batches of `data`.
// Scores are from weights alone: `criterion` is l1, l2, bn_scale or random.
// Leaves the program as it was. Errors: those of scoring and of Evaluator.
absl::StatusOr<Sensitivity> MeasureSensitivity(
    LoadedEvaluation& loaded, const executor::DataSet& data,
    passes::PruneCriterion criterion, const std::vector<double>& sparsities,
    const std::atomic<bool>* stop);

// The largest measured sparsity of the group with which accuracy falls by no
// more than `loss_of_accuracy`; without an accuracy, with which the loss rises
// by no more than that share. 0: none.
double SafeSparsity(const Sensitivity& all, const GroupSensitivity& group,
                    double loss_of_accuracy);

// A recipe, as YAML, that prunes every group by its safe sparsity.
std::string DraftRecipe(const Sensitivity& all, double loss_of_accuracy);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_SENSITIVITY_H_
