// One phase after the other: plan, load, train, read the state, free the
// device, remove channels. A step is evaluated after its checkpoint is saved; a
// run that goes on from that checkpoint therefore evaluates first. Tested by
// tests/end_to_end/recipe_test.cc and
// tests/tools/pipeline/train_phases_test.cc.
#include "tools/pipeline/train_phases.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/measure/resident_memory.h"
#include "executor/program/program.h"
#include "executor/train/checkpoint.h"
#include "executor/train/data.h"
#include "executor/train/data_digest.h"
#include "executor/train/evaluate.h"
#include "passes/compress/quantized_model.h"
#include "passes/compress/sparsity_schedule.h"
#include "planner/base/sha256.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"
#include "tools/cli/device_names.h"
#include "tools/cli/units.h"
#include "tools/pipeline/carry_state.h"
#include "tools/pipeline/check_export.h"
#include "tools/pipeline/check_phases.h"
#include "tools/pipeline/estimate_statistics.h"
#include "tools/pipeline/evaluated_run.h"
#include "tools/pipeline/files.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/mask_update.h"
#include "tools/pipeline/phase_notes.h"
#include "tools/pipeline/plan_phases.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/recipe_targets.h"
#include "tools/pipeline/run_forward.h"
#include "tools/pipeline/start_quantizers.h"

namespace loadline::tools {
namespace {

using passes::PhaseModel;
using passes::PruneSpec;
using passes::Recipe;
using passes::RecipePhase;

std::string HashOf(const Recipe& recipe, int64_t steps) {
  planner::Sha256 hash;
  hash.AddText(passes::RecipeText(recipe));
  hash.AddText(absl::StrCat(steps));
  return hash.HexDigest();
}

// Adam, AdamW and Adagrad divide by the root of a state that is zero for a
// masked weight.
absl::Status CheckOptimizer(const StepFlags& flags) {
  const std::string& optimizer = flags.optimizer.optimizer;
  if (optimizer == "adafactor") {
    return absl::InvalidArgumentError(
        "--optimizer adafactor and --recipe: its states are averages over "
        "channels, and a recipe clears and cuts states by channel");
  }
  if ((optimizer == "adamw" || optimizer == "adam" || optimizer == "adagrad") &&
      flags.optimizer.EffectiveEpsilon() == 0) {
    return absl::InvalidArgumentError(
        "--epsilon 0 and --recipe: masked weights need an epsilon above zero");
  }
  return absl::OkStatus();
}

// The step after which phase `p` has lost no more channels.
int64_t RestartStep(const std::vector<RecipePhase>& phases, size_t p) {
  while (p > 0 && phases[p - 1].removed.empty()) --p;
  return phases[p].first_step;
}

// The schedule again from `step` on, when channels were removed: a rate that
// has decayed is too low to train what is left (learning rate rewinding; Renda
// et al., 2020).
executor::Schedule RestartedAt(int64_t step, executor::Schedule schedule) {
  schedule.steps -= step;
  schedule.first_step = step;
  schedule.warmup_steps = std::min(schedule.warmup_steps, schedule.steps);
  return schedule;
}

class PhasedTraining {
 public:
  PhasedTraining(const PhasedRun& run, const std::atomic<bool>* stop)
      : run_(run), flags_(run.step), train_(run.train), stop_(stop) {}

  absl::StatusOr<PhasedResult> Run() {
    LOADLINE_RETURN_IF_ERROR(CheckOptimizer(flags_));
    LOADLINE_RETURN_IF_ERROR(ReadAll());
    const std::vector<RecipePhase>& phases = phases_ =
        passes::PhasesOf(recipe_, train_.steps);
    size_t first = 0;
    if (train_.resume) {
      LOADLINE_RETURN_IF_ERROR(ReadRemoved(phases));
      LOADLINE_RETURN_IF_ERROR(TakeBudgetOfFirstPhase(phases));
      first = result_.removed.size();
      LOADLINE_ASSIGN_OR_RETURN(
          model_,
          WithoutRemoved(std::move(model_), recipe_, phases, result_.removed));
    }
    if (run_.begins) {
      LOADLINE_RETURN_IF_ERROR(
          run_.begins(position_.step, EvaluatesFirst(phases[first])));
    }
    const auto trains = [](const RecipePhase& phase) {
      return phase.first_step < phase.end_step;
    };
    number_ = std::count_if(
        phases.begin(), phases.begin() + static_cast<ptrdiff_t>(first), trains);
    for (size_t p = first; p < phases.size(); ++p) {
      if (trains(phases[p])) ++number_;
      restart_step_ = RestartStep(phases, p);
      LOADLINE_RETURN_IF_ERROR(RunPhase(phases[p]));
      if (result_.train.interrupted) break;
    }
    if (!result_.train.interrupted) LOADLINE_RETURN_IF_ERROR(QuantizeAtEnd());
    result_.recipe = recipe_;
    result_.model = std::move(model_);
    result_.state = std::move(state_);
    return std::move(result_);
  }

 private:
  absl::Status ReadAll() {
    LOADLINE_ASSIGN_OR_RETURN(models::Imported imported, ImportToTrain(flags_));
    result_.file_names = passes::FileNames(imported.graph, imported.value_of);
    model_ = std::move(imported.graph);
    LOADLINE_ASSIGN_OR_RETURN(const models::Graph graph,
                              BuildStep(model_, flags_));
    LOADLINE_ASSIGN_OR_RETURN(data_, LoadDataFor(flags_.loss, graph));
    LOADLINE_RETURN_IF_ERROR(CheckEvaluationData(graph));
    const std::optional<int64_t> batch = executor::BatchOf(graph);
    if (!batch.has_value()) {
      return absl::InvalidArgumentError("the graph has no input with a batch");
    }
    per_epoch_ = std::max<int64_t>(1, data_.examples / *batch);
    const int64_t per_epoch = data_.examples / *batch;
    LOADLINE_ASSIGN_OR_RETURN(
        train_.steps, executor::StepsOfRun(run_.steps, run_.epochs, per_epoch));
    if (run_.schedule) {
      LOADLINE_ASSIGN_OR_RETURN(train_.schedule, run_.schedule(train_.steps));
    }
    LOADLINE_ASSIGN_OR_RETURN(
        recipe_,
        ReadRecipeFile(run_.recipe_path,
                       {.steps = train_.steps, .steps_per_epoch = per_epoch}));
    flags_ = FlagsOfRecipe(recipe_, std::move(flags_));
    recipe_sha256_ = HashOf(recipe_, train_.steps);
    executor::TrainOptions checked = train_;
    checked.resume = false;  // its graph is another phase's
    LOADLINE_RETURN_IF_ERROR(executor::CheckTrainable(graph, data_, checked));
    train_.data_digest = executor::DigestOfData(data_);
    LOADLINE_RETURN_IF_ERROR(CheckPhases());
    LOADLINE_ASSIGN_OR_RETURN(const auto device, run_.device());
    LOADLINE_ASSIGN_OR_RETURN(
        result_.targets,
        ResolveTargets(model_, recipe_, train_.steps, flags_, *device));
    LOADLINE_RETURN_IF_ERROR(DescribeBefore());
    LOADLINE_ASSIGN_OR_RETURN(result_.before.keep_everything_bytes,
                              KeepEverythingBytes(model_, flags_, *device));
    return absl::OkStatus();
  }

  // What the first evaluation would fail with, after an epoch.
  absl::Status CheckEvaluationData(const models::Graph& step) const {
    if (run_.eval_data.empty()) return absl::OkStatus();
    LossFlags flags = flags_.loss;
    flags.data = run_.eval_data;
    LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data,
                              LoadDataFor(flags, step));
    return InFile(flags.data, executor::CheckHasTargets(data, step));
  }

  // What a later phase, or the export, would fail with after hours.
  absl::Status CheckPhases() {
    LOADLINE_ASSIGN_OR_RETURN(const models::Graph last,
                              CheckAllPhases(model_, recipe_, flags_));
    if (!run_.exports) return absl::OkStatus();
    return CheckExport(flags_.model, model_, last, recipe_, result_.file_names);
  }

  absl::Status DescribeBefore() {
    LOADLINE_ASSIGN_OR_RETURN(
        const PhaseModel whole,
        passes::MakePhaseModel(model_, recipe_,
                               passes::PhasesOf(recipe_, train_.steps)[0]));
    result_.before = RecordOf(whole, {}, PlannedStep());
    return absl::OkStatus();
  }

  // A share of what the first phase needs, whichever phase the run resumes in.
  absl::Status TakeBudgetOfFirstPhase(const std::vector<RecipePhase>& phases) {
    if (flags_.plan.budget.empty()) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const auto budget,
                              ParseBudget(flags_.plan.budget));
    if (budget.kind == planner::Budget::Kind::kBytes) return absl::OkStatus();
    const size_t first = phases[0].first_step < phases[0].end_step ? 0 : 1;
    const auto removed = result_.removed.begin();
    const std::vector<passes::RemovedChannels> before(
        removed, removed + static_cast<ptrdiff_t>(first));
    LOADLINE_ASSIGN_OR_RETURN(models::Graph model,
                              WithoutRemoved(model_, recipe_, phases, before));
    LOADLINE_ASSIGN_OR_RETURN(
        const PhaseModel at_start,
        passes::MakePhaseModel(std::move(model), recipe_, phases[first]));
    LOADLINE_ASSIGN_OR_RETURN(const auto device, run_.device());
    LOADLINE_ASSIGN_OR_RETURN(const PlannedStep step,
                              PlanPhase(at_start, flags_, *device, stop_));
    return KeepBudgetOf(step, &flags_);
  }

  // What the checkpoint's phases before its own removed.
  absl::Status ReadRemoved(const std::vector<RecipePhase>& phases) {
    LOADLINE_ASSIGN_OR_RETURN(
        position_, executor::ReadCheckpointPosition(train_.checkpoint_path));
    LOADLINE_ASSIGN_OR_RETURN(result_.removed,
                              RemovedInNotes(position_.notes, recipe_sha256_,
                                             train_.checkpoint_path));
    evaluations_ = EvaluationHistory::FromNotes(position_.notes);
    WarnOfOtherData(train_.checkpoint_path, position_, flags_.loss.data,
                    train_.data_digest);
    const size_t least = phases[0].first_step < phases[0].end_step ? 0 : 1;
    if (result_.removed.size() < least ||
        result_.removed.size() >= phases.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("checkpoint ", train_.checkpoint_path, ": phase ",
                       result_.removed.size() + 1, " of ", phases.size()));
    }
    return absl::OkStatus();
  }

  absl::Status RunPhase(const RecipePhase& phase) {
    LOADLINE_ASSIGN_OR_RETURN(
        const PhaseModel at_start,
        passes::MakePhaseModel(std::move(model_), recipe_, phase));
    model_ = at_start.model;
    if (phase.first_step < phase.end_step) {
      LOADLINE_RETURN_IF_ERROR(TrainPhase(phase, at_start));
      if (result_.train.interrupted) return absl::OkStatus();
    } else {
      result_.step.graph = model_;
      state_ = InitialState(model_);
    }
    return phase.end_step == train_.steps ? absl::OkStatus()
                                          : RemoveAtEnd(phase, at_start);
  }

  absl::Status RemoveAtEnd(const RecipePhase& phase,
                           const PhaseModel& at_start) {
    StateValues values(state_);
    passes::RemovedChannels removed;
    for (size_t e : phase.removed) {
      LOADLINE_ASSIGN_OR_RETURN(
          const passes::RemovedChannels of_entry,
          ChannelsToRemove(at_start, *recipe_.entries[e].prune(),
                           at_start.found[e], result_.targets[e], train_.seed,
                           values));
      removed.insert(of_entry.begin(), of_entry.end());
      for (const std::string& group : at_start.found[e].left_out) {
        result_.left_out.push_back(group);
      }
    }
    LOADLINE_ASSIGN_OR_RETURN(passes::PrunedGraph pruned,
                              passes::RemoveChannels(at_start, removed));
    LOADLINE_ASSIGN_OR_RETURN(
        state_, SliceState(std::move(state_), result_.step.graph, pruned.kept));
    model_ = std::move(pruned.graph);
    result_.removed.push_back(std::move(removed));
    return absl::OkStatus();
  }

  // Masks of the entries that are due when `done` steps are done. What the
  // phase's end removes is chosen there.
  absl::Status UpdateMasksAt(int64_t done, const RecipePhase& phase,
                             const PhaseModel& at_start,
                             const OptimizerStates& states,
                             executor::Program& program) {
    ProgramValues values(program);
    for (size_t e : phase.masked) {
      const PruneSpec& spec = *recipe_.entries[e].prune();
      const bool removes =
          done == phase.end_step &&
          std::count(phase.removed.begin(), phase.removed.end(), e) > 0;
      if (removes || !passes::IsMaskUpdate(spec, done)) continue;
      LOADLINE_RETURN_IF_ERROR(MaskEntry(e, done, at_start, states, values));
    }
    return absl::OkStatus();
  }

  absl::Status MaskEntry(size_t e, int64_t step, const PhaseModel& at_start,
                         const OptimizerStates& states, ProgramValues& values) {
    const PruneSpec& spec = *recipe_.entries[e].prune();
    return UpdateMasks(at_start, spec, at_start.found[e],
                       passes::SparsityAt(spec, result_.targets[e], step),
                       train_.seed, states, values);
  }

  // Channels that went have moved others into other fours.
  absl::Status MaskFoursAgain(const RecipePhase& phase,
                              const PhaseModel& at_start,
                              const OptimizerStates& states,
                              executor::Program& program) {
    ProgramValues values(program);
    for (size_t e : phase.masked) {
      const PruneSpec& spec = *recipe_.entries[e].prune();
      if (spec.granularity != passes::PruneGranularity::k2Of4 ||
          spec.start_step > phase.first_step) {
        continue;
      }
      LOADLINE_RETURN_IF_ERROR(
          MaskEntry(e, phase.first_step, at_start, states, values));
    }
    return absl::OkStatus();
  }

  absl::Status TrainPhase(const RecipePhase& phase,
                          const PhaseModel& at_start) {
    spdlog::info("phase {}: steps {} to {}", number_, phase.first_step + 1,
                 phase.end_step);
    PhaseRecord record;
    record.carried_bytes = BytesOf(state_);
    LOADLINE_ASSIGN_OR_RETURN(auto device, run_.device());
    LOADLINE_ASSIGN_OR_RETURN(result_.step,
                              PlanPhase(at_start, flags_, *device, stop_));
    const PlannedStep& step = result_.step;
    if (result_.phases.empty()) {
      LOADLINE_RETURN_IF_ERROR(KeepBudgetOf(step, &flags_));
    }
    if (!train_.resume) {
      LOADLINE_RETURN_IF_ERROR(StartQuantizers(phase, at_start));
    }
    const int64_t carried_bytes = record.carried_bytes;
    record = RecordOf(at_start, phase, step);
    CountAsIn(result_.before, &record);
    record.carried_bytes = carried_bytes;
    record.number = number_;
    int64_t done = train_.resume ? position_.step : phase.first_step;
    do {
      const int64_t first = done;
      if (!train_.resume || !EvaluatesFirst(phase)) {
        done = NextEvaluation(done, phase);
      }
      LOADLINE_ASSIGN_OR_RETURN(
          executor::TrainResult part,
          TrainPart(phase, at_start, first, done, std::move(device)));
      const auto steps = static_cast<int64_t>(part.losses.size());
      record.steps_done += steps;
      record.measured_arena_bytes =
          std::max(record.measured_arena_bytes, part.arena_bytes);
      if (steps > 0) record.measured_step_ns = part.step_ns;
      Append(std::move(part));
      if (result_.train.interrupted) break;
      const bool reads_model = done < train_.steps || !run_.eval_data.empty();
      if (run_.goes_on && reads_model) {
        LOADLINE_RETURN_IF_ERROR(run_.goes_on(result_.train.rescue_path));
      }
      LOADLINE_RETURN_IF_ERROR(Evaluate(phase, number_, done));
    } while (done < phase.end_step && !result_.train.interrupted);
    result_.phases.push_back(std::move(record));
    return absl::OkStatus();
  }

  // A run that resumes in `phase` has trained its last step, but not evaluated
  // it. The first step of a phase is the last of the one before.
  bool EvaluatesFirst(const RecipePhase& phase) const {
    const int64_t done = position_.step;
    return !run_.eval_data.empty() && done > evaluations_.last_step &&
           done > phase.first_step && NextEvaluation(done - 1, phase) == done;
  }

  // Where training pauses: at an evaluation or at the end of `phase`.
  int64_t NextEvaluation(int64_t done, const RecipePhase& phase) const {
    if (run_.eval_data.empty()) return phase.end_step;
    const int64_t every = run_.eval_every > 0 ? run_.eval_every : per_epoch_;
    return std::min(phase.end_step, (done / every + 1) * every);
  }

  // Steps `first` + 1 to `end` of `phase`; a resumed run begins where its
  // checkpoint is. The state goes to the device and comes back. `device`: the
  // one that was planned for, or null to make it.
  absl::StatusOr<executor::TrainResult> TrainPart(
      const RecipePhase& phase, const PhaseModel& at_start, int64_t first,
      int64_t end, std::unique_ptr<executor::Device> device) {
    PlannedStep& step = result_.step;
    if (device == nullptr) {
      LOADLINE_ASSIGN_OR_RETURN(device, run_.device());
      device->SetAlgorithms(step.machine.algorithms);
    }
    LOADLINE_RETURN_IF_ERROR(SetContents(std::move(state_), &step.graph));
    state_.clear();
    LOADLINE_ASSIGN_OR_RETURN(const OptimizerStates states,
                              FindOptimizerStates(step.graph, at_start.masks));
    executor::LoadOptions load = {.poison = run_.poison};
    load.written = [&step](models::ValueId id) {
      models::Value& value = step.graph.value(id);
      if (value.kind != models::ValueKind::kConstant) value.initial.reset();
    };
    LOADLINE_ASSIGN_OR_RETURN(
        auto program,
        executor::Load(step.graph, step.problem, step.plan, *device, load));
    executor::ReleaseFreedMemory();
    executor::TrainOptions options = train_;
    options.first_step = options.resume ? 0 : first;
    options.pause_step = end == train_.steps ? 0 : end;
    if (restart_step_ > 0 && options.schedule.has_value()) {
      options.schedule = RestartedAt(restart_step_, *options.schedule);
    }
    options.notes = NotesOfPhase(recipe_sha256_, result_.removed);
    options.notes.merge(evaluations_.ToNotes());
    options.stop = stop_;
    options.between_steps = [&](int64_t done, executor::Program& running) {
      return UpdateMasksAt(done, phase, at_start, states, running);
    };
    if (!options.resume && first == phase.first_step) {
      LOADLINE_RETURN_IF_ERROR(
          first == 0 ? UpdateMasksAt(0, phase, at_start, states, *program)
                     : MaskFoursAgain(phase, at_start, states, *program));
    }
    LOADLINE_ASSIGN_OR_RETURN(executor::TrainResult part,
                              executor::Train(*program, data_, options));
    train_.resume = false;  // the next part goes on from this one
    LOADLINE_ASSIGN_OR_RETURN(state_, ReadState(*program));
    program.reset();  // before the device, which it uses
    device.reset();   // its bytes are free before the next ones are taken
    executor::ReleaseFreedMemory();
    return part;
  }

  // Within the bytes of the phase's plan, which are free meanwhile.
  // Interrupted: then the step counts as not evaluated.
  absl::Status Evaluate(const RecipePhase& phase, int64_t number,
                        int64_t done) {
    if (run_.eval_data.empty()) return absl::OkStatus();
    EvaluationFlags flags = {flags_.model, flags_.loss, flags_.plan};
    flags.loss.data = run_.eval_data;
    flags.warn = result_.evaluations.empty();
    const planner::Problem& problem = result_.step.problem;
    flags.plan.budget =
        absl::StrCat(result_.step.plan.budget_bytes +
                         ReservedInBudget(problem, flags.plan.device == kCuda),
                     "B");
    PhaseEvaluation evaluation = {.step = done, .phase = number};
    absl::StatusOr<executor::Evaluation> result = EvaluatePhase(
        flags, recipe_, phases_, result_.removed, phase, state_, stop_);
    if (absl::IsCancelled(result.status())) {
      result_.train.interrupted = true;
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(result.status());
    evaluation.result = *result;
    evaluations_.Add(done, result->loss);
    if (run_.evaluated) run_.evaluated(evaluation);
    result_.evaluations.push_back(std::move(evaluation));
    return absl::OkStatus();
  }

  // A resumed phase has what its quantizers began with in the checkpoint.
  absl::Status StartQuantizers(const RecipePhase& phase,
                               const PhaseModel& at_start) {
    if (phase.quantized.empty()) return absl::OkStatus();
    if (state_.empty()) state_ = InitialState(at_start.model);
    const ForwardRun forward = {.flags = flags_,
                                .machine = result_.step.machine,
                                .data = data_,
                                .seed = train_.seed,
                                .shuffle = train_.shuffle,
                                .cancel = stop_,
                                .device = run_.device};
    LOADLINE_RETURN_IF_ERROR(
        CalibrateQuantizers(at_start, recipe_, phase, forward, &state_));
    LOADLINE_RETURN_IF_ERROR(StartQuantizersIn(at_start, &state_));
    return EstimateStatistics(at_start, recipe_, phase, forward, &state_);
  }

  // Entries that start at the end quantize what was trained without them.
  absl::Status QuantizeAtEnd() {
    const RecipePhase phase = passes::ExportPhase(recipe_, train_.steps);
    if (phase.quantized.empty()) return absl::OkStatus();
    LOADLINE_ASSIGN_OR_RETURN(const PhaseModel at_end,
                              passes::MakePhaseModel(model_, recipe_, phase));
    LOADLINE_RETURN_IF_ERROR(StartQuantizers(phase, at_end));
    result_.quantizers = at_end.quantizers;
    result_.quantized_graph = at_end.step_model;
    const bool starts =
        std::any_of(phase.quantized.begin(), phase.quantized.end(),
                    [](const auto& entry) { return entry.starts; });
    // Else the last phase has trained, and evaluated, this model.
    return starts ? Evaluate(phase, /*number=*/0, train_.steps)
                  : absl::OkStatus();
  }

  void Append(executor::TrainResult part) {
    if (std::exchange(trained_, true)) {
      part.first_step = result_.train.first_step;
      part.arena_bytes = std::max(part.arena_bytes, result_.train.arena_bytes);
      part.device_bytes =
          std::max(part.device_bytes, result_.train.device_bytes);
      std::vector<float>& losses = result_.train.losses;
      losses.insert(losses.end(), part.losses.begin(), part.losses.end());
      part.losses = std::move(losses);
    }
    result_.train = std::move(part);
  }

  const PhasedRun& run_;
  StepFlags flags_;  // its budget becomes that of the first phase
  executor::TrainOptions train_;
  const std::atomic<bool>* stop_;
  executor::DataSet data_;
  Recipe recipe_;
  std::vector<RecipePhase> phases_;
  std::string recipe_sha256_;
  executor::RunPosition position_;  // of the checkpoint that it resumes
  EvaluationHistory evaluations_;
  int64_t number_ = 0;        // of the phase, counting those that train
  int64_t per_epoch_ = 1;     // steps
  bool trained_ = false;      // a part, in this call
  int64_t restart_step_ = 0;  // of the schedule of rates
  models::Graph model_;       // of the phase that is next
  RunState state_;            // between two phases
  PhasedResult result_;
};

}  // namespace

absl::StatusOr<PhasedResult> TrainPhases(const PhasedRun& run,
                                         const std::atomic<bool>* stop) {
  return PhasedTraining(run, stop).Run();
}

}  // namespace loadline::tools
