// The learning rate of each step. It depends on the step's number alone, so a
// resumed run gets the same rates.
#ifndef LOADLINE_EXECUTOR_TRAIN_SCHEDULE_H_
#define LOADLINE_EXECUTOR_TRAIN_SCHEDULE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::executor {

enum class ScheduleKind { kConstant, kLinear, kCosine, kOneCycle, kStep };

// "constant", "linear", "cosine", "one-cycle" or "step"; InvalidArgument for
// anything else.
absl::StatusOr<ScheduleKind> ScheduleKindFromName(absl::string_view name);

// The formulas are those of torch.optim.lr_scheduler: ConstantLR, LinearLR,
// CosineAnnealingLR, OneCycleLR (with its defaults and without cycle_momentum)
// and StepLR, after a LinearLR from 1 / warmup_steps of the rate to all of it.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 0;  // the largest
  int64_t steps = 0;         // from its first to the run's last
  int64_t first_step = 0;    // of the run: the schedule begins here
  // Steps of the warm-up; the schedule begins after them. Not for one-cycle,
  // which has its own.
  int64_t warmup_steps = 0;
  double final_rate = 0;   // linear, cosine: reached after the last step
  int64_t step_every = 0;  // step: steps between decays
  double step_factor = 0.1;
};

// InvalidArgument: a number outside its range.
absl::Status CheckSchedule(const Schedule& schedule);

// The rate of a step, counted from 0. Requires a schedule that CheckSchedule
// accepts.
double LearningRate(const Schedule& schedule, int64_t step);

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_TRAIN_SCHEDULE_H_
