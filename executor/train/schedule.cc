// Closed forms, not recurrences: a step's rate needs no other step's. Tested in
// tests/executor/train/schedule_test.cc against tables that PyTorch printed.
#include "executor/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// OneCycleLR's pct_start, div_factor and final_div_factor.
constexpr double kRisingShare = 0.3;
constexpr double kFirstDivisor = 25;
constexpr double kLastDivisor = 1e4;

struct Name {
  ScheduleKind kind;
  const char* text;
};
constexpr Name kNames[] = {{ScheduleKind::kConstant, "constant"},
                           {ScheduleKind::kLinear, "linear"},
                           {ScheduleKind::kCosine, "cosine"},
                           {ScheduleKind::kOneCycle, "one-cycle"},
                           {ScheduleKind::kStep, "step"}};

// Half a cosine from `from` to `to` while `share` goes from 0 to 1.
double Cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

double OneCycle(const Schedule& s, int64_t step) {
  const double first = s.learning_rate / kFirstDivisor;
  const double top =
      std::max(kRisingShare * static_cast<double>(s.steps) - 1, 0.0);
  const double last = static_cast<double>(s.steps - 1);
  const auto at = static_cast<double>(step);
  if (at <= top && top > 0) return Cosine(first, s.learning_rate, at / top);
  if (last <= top) return s.learning_rate;
  return Cosine(s.learning_rate, first / kLastDivisor,
                (at - top) / (last - top));
}

absl::Status CheckRate(absl::string_view what, double rate) {
  if (std::isfinite(rate) && rate >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", rate, "; it must be 0 or more"));
}

}  // namespace

absl::StatusOr<ScheduleKind> ScheduleKindFromName(absl::string_view name) {
  for (const Name& known : kNames) {
    if (name == known.text) return known.kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown schedule '", name,
                   "'; schedules: constant, linear, cosine, one-cycle, step"));
}

absl::Status CheckSchedule(const Schedule& s) {
  LOADLINE_RETURN_IF_ERROR(CheckRate("the learning rate", s.learning_rate));
  LOADLINE_RETURN_IF_ERROR(CheckRate("the last learning rate", s.final_rate));
  LOADLINE_RETURN_IF_ERROR(CheckRate("the factor of a step", s.step_factor));
  if (s.warmup_steps < 0 || s.warmup_steps > std::max<int64_t>(s.steps, 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a warm-up of ", s.warmup_steps, " steps in a run of ",
                     s.steps, " steps"));
  }
  if (s.kind == ScheduleKind::kOneCycle && s.warmup_steps > 0) {
    return absl::InvalidArgumentError(
        "a one-cycle schedule has its own warm-up");
  }
  if (s.kind == ScheduleKind::kStep && s.step_every < 1) {
    return absl::InvalidArgumentError(
        "a step schedule needs the number of steps between decays");
  }
  return absl::OkStatus();
}

double LearningRate(const Schedule& s, int64_t step) {
  step -= s.first_step;
  if (s.kind == ScheduleKind::kOneCycle) return OneCycle(s, step);
  if (step < s.warmup_steps) {
    return s.learning_rate * static_cast<double>(step + 1) /
           static_cast<double>(s.warmup_steps);
  }
  const int64_t done = step - s.warmup_steps;
  const double share =
      static_cast<double>(done) /
      static_cast<double>(std::max<int64_t>(s.steps - s.warmup_steps, 1));
  switch (s.kind) {
    case ScheduleKind::kLinear:
      return s.learning_rate + (s.final_rate - s.learning_rate) * share;
    case ScheduleKind::kCosine:
      return Cosine(s.learning_rate, s.final_rate, share);
    case ScheduleKind::kStep:
      return s.learning_rate *
             std::pow(s.step_factor, static_cast<double>(done / s.step_every));
    default:
      return s.learning_rate;
  }
}

}  // namespace loadline::executor
