// Tested by tests/tools/verbs/verb_errors_test.cc and tests/end_to_end.
#include "tools/pipeline/training_flags.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "tools/cli/help.h"
#include "tools/cli/number_checks.h"

namespace loadline::tools {

void AddTrainingFlags(CLI::App* app, TrainingFlags* flags) {
  const auto file = [app](const char* name, std::string* path,
                          const char* text) {
    app->add_option(name, *path, text)
        ->type_name("FILE")
        ->take_last()
        ->group(kRareFlags);
  };
  app->add_option("--schedule", flags->schedule,
                  "Learning rate over the run: constant, linear, cosine, "
                  "one-cycle or step")
      ->type_name("NAME")
      ->capture_default_str()
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--warmup-steps", flags->warmup_steps,
                  "Steps in which the learning rate rises to --lr")
      ->check(CheckNonNegative)
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--min-lr", flags->min_lr,
                  "Learning rate at the end of linear and cosine")
      ->check(CheckNonNegative)
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--decay-every", flags->decay_every,
                  "Schedule step: steps between decays")
      ->check(CheckPositive)
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--decay-factor", flags->decay_factor,
                  "Schedule step: factor of each decay (default 0.1)")
      ->check(CheckNonNegative)
      ->take_last()
      ->group(kRareFlags);
  file("--eval-data", &flags->eval_data,
       "Data to evaluate on during the run, .npz");
  app->add_option("--eval-every", flags->eval_every,
                  "Steps between evaluations (default: an epoch)")
      ->check(CheckPositive)
      ->take_last()
      ->group(kRareFlags);
  app->add_option("--patience", flags->patience,
                  "End after so many evaluations without a smaller loss")
      ->check(CheckPositive)
      ->take_last()
      ->group(kRareFlags);
  file("--best", &flags->best,
       "Model with the smallest loss on --eval-data, .onnx");
  file("--metrics", &flags->metrics,
       "Loss and learning rate of each step, as JSON lines");
  file("--ema-output", &flags->average,
       "Model with the averaged weights of --ema, .onnx");
  file("--lora-output", &flags->adapters,
       "Adapters of --lora alone, .safetensors; -o has merged weights");
}

absl::Status CheckTrainingFlags(const TrainingFlags& flags,
                                double average_decay) {
  if (flags.eval_data.empty()) {
    for (const auto& [name, given] :
         {std::pair<const char*, bool>{"--eval-every", flags.eval_every > 0},
          {"--patience", flags.patience > 0},
          {"--best", !flags.best.empty()}}) {
      if (!given) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": needs --eval-data FILE"));
    }
  }
  if (!flags.average.empty() && average_decay == 0) {
    return absl::InvalidArgumentError("--ema-output: needs --ema DECAY");
  }
  if (flags.schedule != "step" &&
      (flags.decay_every > 0 || flags.decay_factor.has_value())) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.decay_every > 0 ? "--decay-every" : "--decay-factor",
                     ": needs --schedule step"));
  }
  if (flags.min_lr > 0 && flags.schedule != "linear" &&
      flags.schedule != "cosine") {
    return absl::InvalidArgumentError(
        "--min-lr: needs --schedule linear or cosine");
  }
  return absl::OkStatus();
}

absl::StatusOr<executor::Schedule> ScheduleFor(const TrainingFlags& flags,
                                               double learning_rate,
                                               int64_t steps) {
  executor::Schedule schedule;
  LOADLINE_ASSIGN_OR_RETURN(schedule.kind,
                            executor::ScheduleKindFromName(flags.schedule));
  schedule.learning_rate = learning_rate;
  schedule.steps = steps;
  schedule.warmup_steps = flags.warmup_steps;
  schedule.final_rate = flags.min_lr;
  schedule.step_every = flags.decay_every;
  schedule.step_factor = flags.decay_factor.value_or(0.1);
  if (flags.min_lr > learning_rate) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--min-lr ", flags.min_lr, " is above --lr ", learning_rate));
  }
  LOADLINE_RETURN_IF_ERROR(executor::CheckSchedule(schedule));
  return schedule;
}

}  // namespace loadline::tools
