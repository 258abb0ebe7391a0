// Tested by tests/tools/verbs and tests/end_to_end.
#include "tools/verbs/run_flags.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/train/checkpoint.h"
#include "planner/base/status_macros.h"
#include "tools/cli/flags.h"
#include "tools/cli/help.h"
#include "tools/cli/number_checks.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/output_paths.h"
#include "tools/pipeline/phase_notes.h"
#include "tools/pipeline/structures.h"

namespace loadline::tools {
namespace {

// Flags that would be ignored without another one.
absl::Status CheckNeeded(const RunFlags& flags) {
  const bool no_checkpoint = flags.checkpoint.empty();
  struct Need {
    const char* flag;
    bool lacks;
    const char* needed;
  };
  for (const Need& need :
       {Need{"--resume", flags.resume && no_checkpoint, "--checkpoint FILE"},
        Need{"--overwrite", flags.overwrite && no_checkpoint,
             "--checkpoint FILE"},
        Need{"--checkpoint-every", flags.checkpoint_every > 0 && no_checkpoint,
             "--checkpoint FILE"},
        Need{"--replan-after", flags.replan_after.has_value() && !flags.replan,
             "--replan"},
        Need{"--problem", !flags.problem_in.empty() && flags.plan_in.empty(),
             "--plan FILE"}}) {
    if (!need.lacks) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(need.flag, ": needs ", need.needed));
  }
  return absl::OkStatus();
}

// A checkpoint may be days of work.
absl::Status CheckCheckpoint(const RunFlags& flags) {
  if (flags.resume && flags.overwrite) {
    return absl::InvalidArgumentError(
        "--resume and --overwrite: give one of them");
  }
  std::error_code error;
  if (!flags.resume && !flags.overwrite &&
      std::filesystem::is_regular_file(flags.checkpoint, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--checkpoint ", flags.checkpoint,
        ": exists; continue from it with --resume, replace it with "
        "--overwrite, or name another file"));
  }
  if (!flags.resume || !flags.recipe.empty()) return absl::OkStatus();
  // A file that is no checkpoint is an error where it is read.
  const auto notes = executor::ReadCheckpointNotes(flags.checkpoint);
  return notes.ok() ? CheckHasNoRecipe(*notes, flags.checkpoint)
                    : absl::OkStatus();
}

// Each phase of a recipe has a plan of its own.
absl::Status CheckRecipeFlags(const RunFlags& flags) {
  const std::string choice = AutoFlag(flags.step.plan);
  for (const auto& [name, given] :
       {std::pair<const char*, bool>{"--plan", !flags.plan_in.empty()},
        {"--replan", flags.replan},
        {"--trace", !flags.trace.empty()},
        {"--patience", flags.training.patience > 0},
        {"--best", !flags.training.best.empty()},
        {"--ema-output", !flags.training.average.empty()},
        {"--ema", flags.step.optimizer.ema > 0},
        {"--lora", !flags.step.optimizer.lora.empty()},
        {choice.c_str(), IsAuto(flags.step.plan)}}) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " and --recipe: give one of them"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NamedPath> WrittenFiles(const RunFlags& flags) {
  return {{"-o", flags.out},
          {"--checkpoint", flags.checkpoint},
          {"--trace", flags.trace},
          {"--metrics", flags.training.metrics},
          {"--ema-output", flags.training.average},
          {"--lora-output", flags.training.adapters}};
}

absl::Status CheckRunFlags(const RunFlags& flags) {
  if (flags.step.loss.data.empty()) {
    return NeedsData("run");
  }
  if (flags.steps > 0 && flags.epochs > 0) {
    return absl::InvalidArgumentError("--steps and --epochs: give one of them");
  }
  LOADLINE_RETURN_IF_ERROR(CheckNeeded(flags));
  if (flags.replan && !flags.plan_in.empty()) {
    return absl::InvalidArgumentError(
        "--replan and --plan: give one of them; --plan says which plan to run");
  }
  if (!flags.recipe.empty()) LOADLINE_RETURN_IF_ERROR(CheckRecipeFlags(flags));
  if (flags.replan && !flags.training.eval_data.empty()) {
    return absl::InvalidArgumentError(
        "--replan and --eval-data: give one of them");
  }
  LOADLINE_RETURN_IF_ERROR(
      CheckTrainingFlags(flags.training, flags.step.optimizer.ema));
  if (!flags.training.adapters.empty() && flags.step.optimizer.lora.empty()) {
    return absl::InvalidArgumentError("--lora-output: needs --lora rank=N");
  }
  if (IsAuto(flags.step.plan) && (flags.replan || !flags.plan_in.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        AutoFlag(flags.step.plan), " and ",
        flags.replan ? "--replan" : "--plan", ": give the numbers instead"));
  }
  std::vector<NamedPath> inputs = InputPaths(flags.step);
  inputs.push_back({"--recipe", flags.recipe});
  AddDataPaths("--eval-data", flags.training.eval_data, &inputs);
  inputs.push_back({"--plan", flags.plan_in});
  inputs.push_back({"--problem", flags.problem_in});
  std::vector<NamedPath> outputs = WrittenFiles(flags);
  outputs.push_back({"--best", flags.training.best});
  outputs.push_back({"--host-store", flags.host_store, true});
  for (const NamedPath& output : outputs) {
    if (output.path != "-") continue;
    return absl::InvalidArgumentError(
        absl::StrCat(output.flag,
                     " -: run writes no file to stdout, which has its "
                     "figures; name a file (./- is one named -)"));
  }
  LOADLINE_RETURN_IF_ERROR(CheckOutputPaths(inputs, outputs));
  return CheckCheckpoint(flags);
}

void AddRunFlags(CLI::App* app, RunFlags* flags) {
  app->add_option("--steps", flags->steps, "Steps in all")
      ->check(CheckPositive)
      ->take_last();
  app->add_option("--epochs", flags->epochs,
                  "Instead of --steps: passes over the data (default 1)")
      ->check(CheckPositive)
      ->take_last();
  app->add_option("--seed", flags->seed, "Seed of shuffling and dropout")
      ->check(CheckSeed)
      ->take_last();
  app->add_flag("--no-shuffle", flags->no_shuffle, "Take the examples in order")
      ->group(kRareFlags);
  AddOutputFlag(app, &flags->out, "Trained model, .onnx");
  app->add_option("--checkpoint", flags->checkpoint,
                  "Checkpoint file, .safetensors")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--checkpoint-every", flags->checkpoint_every,
                  "Steps between checkpoints (default: at the end)")
      ->check(CheckNonNegative)
      ->take_last();
  app->add_flag("--resume", flags->resume, "Continue from the checkpoint");
  app->add_flag("--overwrite", flags->overwrite,
                "Replace a checkpoint that exists")
      ->group(kRareFlags);
  app->add_option("--host-store", flags->host_store,
                  "On a CPU: new file, or folder, for what is copied out "
                  "(default: $TMPDIR or /var/tmp)")
      ->type_name("FILE")
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--log-every", flags->log_every,
                  "Steps between lines of progress off a terminal")
      ->check(CheckPositive)
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--trace", flags->trace,
                  "Chrome trace of the last step, .json")
      ->type_name("FILE")
      ->take_last()
      ->group(kRareFlags);
  app->add_flag("--replan", flags->replan,
                "Plan again with the times of the first steps");
  app->add_option("--replan-after", flags->replan_after,
                  "How many steps these are (default 5)")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 40))
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--recipe", flags->recipe,
                  "Compress while training: a recipe, .yaml or .json")
      ->type_name("FILE")
      ->take_last();
  app->add_option("--plan", flags->plan_in, "Run this plan")
      ->type_name("FILE")
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--problem", flags->problem_in,
                  "The problem that --plan was made for")
      ->type_name("FILE")
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--stress", flags->stress,
                  "Look for bugs: random delays from this seed, freed bytes "
                  "overwritten, canaries behind workspaces")
      ->check(CheckSeed)
      ->type_name("SEED")
      ->take_last()
      ->group(kRareFlags);
  AddTrainingFlags(app, &flags->training);
  AddJsonFlag(app, &flags->json);
}

}  // namespace loadline::tools
