// Flags of a run that no plan depends on: learning rates, evaluation, metrics.
#ifndef LOADLINE_TOOLS_PIPELINE_TRAINING_FLAGS_H_
#define LOADLINE_TOOLS_PIPELINE_TRAINING_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/train/schedule.h"

namespace CLI {
class App;
}  // namespace CLI

namespace loadline::tools {

struct TrainingFlags {
  std::string schedule = "constant";
  int64_t warmup_steps = 0;
  double min_lr = 0;
  int64_t decay_every = 0;
  std::optional<double> decay_factor;  // 0.1
  std::string eval_data;
  int64_t eval_every = 0;  // 0: once for each pass over the data
  int64_t patience = 0;
  std::string best;      // model with the smallest loss on eval_data
  std::string metrics;   // file
  std::string average;   // model with the averaged weights
  std::string adapters;  // file for those of --lora
};

void AddTrainingFlags(CLI::App* app, TrainingFlags* flags);

// Flags that need others. `average_decay`: that of the averaged weights, or 0.
absl::Status CheckTrainingFlags(const TrainingFlags& flags,
                                double average_decay);

// The schedule of a run of `steps` steps; checked.
absl::StatusOr<executor::Schedule> ScheduleFor(const TrainingFlags& flags,
                                               double learning_rate,
                                               int64_t steps);

}  // namespace loadline::tools

#endif  // LOADLINE_TOOLS_PIPELINE_TRAINING_FLAGS_H_
