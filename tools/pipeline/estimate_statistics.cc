// Tested by tests/tools/pipeline/estimate_statistics_test.cc, and for accuracy
// by tests/onnxruntime/quantized_models.cc.
#include "tools/pipeline/estimate_statistics.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "passes/compress/batch_statistics.h"
#include "passes/training_pipeline.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/start_quantizers.h"

namespace loadline::tools {
namespace {

using passes::QuantizeSpec;

bool HasCodebooks(const QuantizeSpec& spec) {
  return spec.targets.weight && spec.quantizer == passes::Quantizer::kKMeans;
}

bool FrozenBefore(const passes::Recipe& recipe,
                  const passes::RecipePhase& phase) {
  return std::any_of(
      recipe.entries.begin(), recipe.entries.end(), [&](const auto& entry) {
        const QuantizeSpec* spec = entry.quantize();
        return spec != nullptr && spec->freeze_bn_step.has_value() &&
               *spec->freeze_bn_step < phase.first_step;
      });
}

absl::StatusOr<models::Graph> StatisticsGraph(const passes::PhaseModel& model,
                                              const passes::Recipe& recipe,
                                              passes::RecipePhase phase) {
  phase.freeze_bn = false;
  std::vector<passes::QuantizedTensor> quantizers;
  LOADLINE_ASSIGN_OR_RETURN(
      models::Graph graph,
      passes::QuantizeModel(model.model, recipe, phase,
                            passes::QuantizeStage::kFrozen, &quantizers));
  passes::TakeBatchStatistics(graph);
  return passes::BuildCalibration(std::move(graph), {});
}

// Running sums of f32 tensors.
class Sums {
 public:
  void Add(const RunState& tensors) {
    ++count_;
    for (const auto& [name, bytes] : tensors) {
      std::vector<float> numbers(bytes.size() / sizeof(float));
      std::memcpy(numbers.data(), bytes.data(), bytes.size());
      std::vector<double>& sums = sums_[name];
      sums.resize(numbers.size());
      for (size_t i = 0; i < numbers.size(); ++i) sums[i] += numbers[i];
    }
  }

  // Replaces these tensors of `state`.
  void WriteMeans(RunState* state) const {
    for (const auto& [name, sums] : sums_) {
      std::vector<float> means;
      for (double sum : sums) means.push_back(static_cast<float>(sum / count_));
      std::vector<std::byte>& bytes = (*state)[name];
      bytes.resize(means.size() * sizeof(float));
      std::memcpy(bytes.data(), means.data(), bytes.size());
    }
  }

 private:
  double count_ = 0;
  std::map<std::string, std::vector<double>> sums_;
};

}  // namespace

absl::Status EstimateStatistics(const passes::PhaseModel& model,
                                const passes::Recipe& recipe,
                                const passes::RecipePhase& phase,
                                const ForwardRun& run, RunState* state) {
  const int64_t batches = CalibrationBatches(recipe, phase, HasCodebooks);
  if (batches == 0 || FrozenBefore(recipe, phase)) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(models::Graph graph,
                            StatisticsGraph(model, recipe, phase));
  if (graph.updates.empty()) return absl::OkStatus();  // no normalization
  spdlog::info("running statistics with codebooks over {} batches", batches);
  Sums sums;
  LOADLINE_RETURN_IF_ERROR(
      RunForward(std::move(graph), *state, batches, run,
                 [&sums](const RunState& updated) { sums.Add(updated); }));
  sums.WriteMeans(state);
  return absl::OkStatus();
}

}  // namespace loadline::tools
