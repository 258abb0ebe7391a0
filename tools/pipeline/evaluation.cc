// The last batch may be smaller and has a step of its own. Tested by
// tests/end_to_end and tests/tools/pipeline/evaluated_run_test.cc.
#include "tools/pipeline/evaluation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/program/program.h"
#include "models/onnx/declared_inputs.h"
#include "passes/training_pipeline.h"
#include "planner/base/status_macros.h"
#include "planner/solve/solve.h"
#include "spdlog/spdlog.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/loss_options.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

StepFlags StepOf(const EvaluationFlags& flags) {
  StepFlags step;
  step.plan = flags.plan;
  step.purpose.runs_here = true;
  return step;
}

bool IsTrained(const models::Value& value) {
  return value.kind == models::ValueKind::kParameter ||
         value.kind == models::ValueKind::kState;
}

// No input has an open axis for the examples.
absl::StatusOr<bool> FixesBatch(const ModelFlags& flags) {
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                            ImportOptionsFor(flags, /*training=*/false));
  LOADLINE_ASSIGN_OR_RETURN(const std::vector<models::DeclaredInput> inputs,
                            models::ReadDeclaredInputs(flags.model, options));
  return std::none_of(
      inputs.begin(), inputs.end(), [](const models::DeclaredInput& input) {
        return !input.axes.has_value() ||
               (!input.axes->empty() && !input.axes->front().size.has_value());
      });
}

// Gives `graph` the contents of `state`, where that has such a value.
void TakeContents(const RunState& state, models::Graph* graph) {
  for (models::Value& value : graph->values) {
    if (!IsTrained(value)) continue;
    const auto found = state.find(value.name);
    if (found == state.end() ||
        static_cast<int64_t>(found->second.size()) != value.type.bytes()) {
      continue;
    }
    value.initial = models::MakeTensor(value.type, found->second.data());
  }
}

}  // namespace

absl::StatusOr<models::Graph> EvaluationPlan::ModelAt(
    std::optional<int64_t> batch) const {
  const bool training = flags_.rewrite != nullptr;
  LOADLINE_ASSIGN_OR_RETURN(models::Imported model,
                            batch.has_value()
                                ? ImportModelAt(flags_.model, *batch, training)
                                : ImportModel(flags_.model, training));
  if (flags_.rewrite) {
    LOADLINE_ASSIGN_OR_RETURN(model.graph,
                              flags_.rewrite(std::move(model.graph)));
  }
  return std::move(model.graph);
}

absl::StatusOr<EvaluationPlan::Step> EvaluationPlan::MakeStep(
    std::optional<int64_t> batch) const {
  Step step;
  LOADLINE_ASSIGN_OR_RETURN(models::Graph model, ModelAt(batch));
  LOADLINE_ASSIGN_OR_RETURN(const passes::LossOptions loss,
                            LossFor(model, flags_.loss, flags_.model.model));
  if (flags_.warn && !batch.has_value()) WarnOfLoss(model, flags_.loss);
  LOADLINE_ASSIGN_OR_RETURN(
      step.graph, passes::BuildEvaluation(std::move(model), loss, {}));
  LOADLINE_ASSIGN_OR_RETURN(
      const planner::Machine machine,
      MachineFor(StepOf(flags_), step.graph, /*cancel=*/nullptr));
  step.algorithms = machine.algorithms;
  LOADLINE_ASSIGN_OR_RETURN(const auto device, MakeDevice(flags_.plan.device));
  LOADLINE_ASSIGN_OR_RETURN(
      step.problem, PoseStep(step.graph, flags_.model.model, machine, *device));
  LOADLINE_ASSIGN_OR_RETURN(const planner::Plan keep,
                            planner::KeepEverything(step.problem));
  LOADLINE_ASSIGN_OR_RETURN(
      step.plan, SolveFor(step.problem, StepOf(flags_), keep, nullptr));
  return step;
}

absl::Status EvaluationPlan::FindReduction(bool fixed, int64_t batch) {
  if (flags_.loss.loss != "model") {
    passes::LossOptions loss;
    LOADLINE_ASSIGN_OR_RETURN(loss.kind,
                              passes::LossKindFromName(flags_.loss.loss));
    LOADLINE_ASSIGN_OR_RETURN(reduction_,
                              passes::ReductionOfEvaluation({}, loss));
    return absl::OkStatus();
  }
  std::optional<int64_t> at;
  if (batch == 1 && !fixed) at = 2;  // one example does not say it
  LOADLINE_ASSIGN_OR_RETURN(models::Graph model, ModelAt(at));
  LOADLINE_ASSIGN_OR_RETURN(const passes::LossOptions loss,
                            LossFor(model, flags_.loss, flags_.model.model));
  LOADLINE_ASSIGN_OR_RETURN(
      reduction_, passes::ReductionOfEvaluation(std::move(model), loss));
  return absl::OkStatus();
}

bool EvaluationPlan::CanPad(const models::Graph& graph) const {
  switch (reduction_) {
    case passes::LossReduction::kMean:
    case passes::LossReduction::kSum:
      return true;
    case passes::LossReduction::kMeanOfTargets:
      return executor::IgnoresTargets(graph);
    case passes::LossReduction::kUnknown:
      break;
  }
  return false;
}

absl::Status EvaluationPlan::AddRest(bool fixed, int64_t rest, Step* whole) {
  if (!fixed) {
    LOADLINE_ASSIGN_OR_RETURN(Step last, MakeStep(rest));
    if (executor::BatchOf(last.graph) == rest) {
      steps_.emplace(rest, std::move(last));
      return absl::OkStatus();
    }
  }
  pads_ = CanPad(whole->graph);
  return absl::OkStatus();
}

void EvaluationPlan::Warn(int64_t batch, int64_t left_out) const {
  if (!flags_.warn) return;
  if (left_out > 0) {
    spdlog::warn(
        "{}: {} of {} examples left out: the file's batch is fixed to {}",
        flags_.loss.data, left_out, data_.examples, batch);
  }
  if (reduction_ == passes::LossReduction::kUnknown && data_.examples > batch) {
    spdlog::warn(
        "the model's own loss is not known to be a mean or a sum over the "
        "examples: it is averaged over batches of {}, and may depend on them",
        batch);
  }
}

absl::StatusOr<std::unique_ptr<EvaluationPlan>> EvaluationPlan::Make(
    const EvaluationFlags& flags) {
  std::unique_ptr<EvaluationPlan> made(new EvaluationPlan(flags));
  LOADLINE_ASSIGN_OR_RETURN(Step first, made->MakeStep(std::nullopt));
  LOADLINE_ASSIGN_OR_RETURN(made->data_, LoadDataFor(flags.loss, first.graph));
  const int64_t batch = executor::BatchOf(first.graph).value_or(0);
  const int64_t examples = made->data_.examples;
  const int64_t rest = batch > 0 ? examples % batch : 0;
  LOADLINE_RETURN_IF_ERROR(InFile(
      flags.loss.data, executor::CheckHasTargets(made->data_, first.graph)));
  LOADLINE_ASSIGN_OR_RETURN(const bool fixed, FixesBatch(flags.model));
  LOADLINE_RETURN_IF_ERROR(made->FindReduction(fixed, batch));
  if (rest > 0) {
    LOADLINE_RETURN_IF_ERROR(made->AddRest(fixed, rest, &first));
  }
  if (examples >= batch || made->pads_) {
    made->steps_.emplace(batch, std::move(first));
  }
  if (made->steps_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.loss.data, ": it holds ", examples,
                     " examples, less than one batch of ", batch,
                     ", which is fixed in the model file"));
  }
  const bool all = rest == 0 || made->pads_ || made->steps_.count(rest) > 0;
  made->Warn(batch, all ? 0 : rest);
  return made;
}

absl::StatusOr<executor::Evaluation> EvaluationPlan::Run(
    const RunState* state, const std::atomic<bool>* stop) {
  executor::Evaluator evaluator(data_,
                                reduction_ == passes::LossReduction::kSum);
  for (auto& [batch, step] : steps_) {
    executor::LoadOptions options;
    models::Graph& graph = step.graph;
    if (state != nullptr) {
      TakeContents(*state, &graph);
      options.written = [&graph, state](models::ValueId id) {
        models::Value& value = graph.value(id);
        if (state->count(value.name) > 0) value.initial.reset();
      };
    }
    LOADLINE_ASSIGN_OR_RETURN(const auto device,
                              MakeDevice(flags_.plan.device));
    device->SetAlgorithms(step.algorithms);
    LOADLINE_ASSIGN_OR_RETURN(
        const auto program,
        executor::Load(graph, step.problem, step.plan, *device, options));
    LOADLINE_RETURN_IF_ERROR(evaluator.Run(*program, stop));
    if (pads_) LOADLINE_RETURN_IF_ERROR(evaluator.RunRest(*program));
  }
  return evaluator.result();
}

void EvaluationPlan::DropContents(const models::Graph& training) {
  for (auto& [batch, step] : steps_) {
    for (models::Value& value : step.graph.values) {
      if (IsTrained(value) && training.Find(value.name).has_value()) {
        value.initial.reset();
      }
    }
  }
}

}  // namespace loadline::tools
