// Tables that PyTorch 2.15 printed for a rate of 0.3 over twelve steps.
#include "executor/train/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace loadline::executor {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<double> Rates(Schedule schedule, int64_t steps = 12) {
  schedule.learning_rate = 0.3;
  schedule.steps = 12;
  EXPECT_TRUE(CheckSchedule(schedule).ok()) << CheckSchedule(schedule);
  std::vector<double> rates;
  for (int64_t step = 0; step < steps; ++step) {
    rates.push_back(LearningRate(schedule, step));
  }
  return rates;
}

auto Are(const std::vector<double>& expected) {
  return Pointwise(DoubleNear(1e-12), expected);
}

TEST(LearningRate, FallsLinearlyAfterAWarmUp) {
  EXPECT_THAT(Rates({.kind = ScheduleKind::kLinear,
                     .warmup_steps = 4,
                     .final_rate = 0.03}),
              Are({0.075, 0.15, 0.225, 0.3, 0.3, 0.26625, 0.2325, 0.19875,
                   0.165, 0.13125, 0.0975, 0.06375}));
}

TEST(LearningRate, FallsAsACosine) {
  EXPECT_THAT(
      Rates({.kind = ScheduleKind::kCosine,
             .warmup_steps = 4,
             .final_rate = 0.03}),
      Are({0.075, 0.15, 0.225, 0.3, 0.3, 0.28972373688902375,
           0.2604594154601839, 0.21666226336928715, 0.165, 0.11333773663071289,
           0.0695405845398161, 0.04027626311097629}));
  EXPECT_THAT(
      Rates({.kind = ScheduleKind::kCosine}),
      Are({0.3, 0.2948888739433602, 0.27990381056766583, 0.2560660171779821,
           0.225, 0.18882285676537813, 0.15, 0.11117714323462193, 0.075,
           0.043933982822017895, 0.0200961894323342, 0.0051111260566397716}));
}

TEST(LearningRate, RisesAndFallsInOneCycle) {
  EXPECT_THAT(Rates({.kind = ScheduleKind::kOneCycle}, 11),
              Are({0.012, 0.10493689626587491, 0.2637855477366386,
                   0.29832463063527354, 0.2799038909524235, 0.24352369618492892,
                   0.194213699308531, 0.13879113080009253, 0.08491829946260977,
                   0.04004325905664918, 0.010370096227618567}));
}

TEST(LearningRate, FallsInSteps) {
  EXPECT_THAT(Rates({.kind = ScheduleKind::kStep, .step_every = 5}),
              Are({0.3, 0.3, 0.3, 0.3, 0.3, 0.03, 0.03, 0.03, 0.03, 0.03, 0.003,
                   0.003}));
}

TEST(LearningRate, StaysInShortRuns) {
  for (int64_t steps : {0, 1, 2, 3}) {
    const Schedule schedule = {
        .kind = ScheduleKind::kOneCycle, .learning_rate = 0.3, .steps = steps};
    for (int64_t step = 0; step < steps; ++step) {
      EXPECT_GE(LearningRate(schedule, step), 0);
      EXPECT_LE(LearningRate(schedule, step), 0.3);
    }
  }
}

TEST(LearningRate, BeginsAtTheFirstStepOfItsSchedule) {
  Schedule schedule = {.kind = ScheduleKind::kCosine,
                       .learning_rate = 0.3,
                       .steps = 10,
                       .warmup_steps = 2};
  const double rate = LearningRate(schedule, 7);
  schedule.first_step = 20;
  EXPECT_EQ(LearningRate(schedule, 27), rate);
}

TEST(CheckSchedule, RefusesNumbersOutsideTheirRange) {
  const auto refusal = [](const Schedule& schedule) {
    return CheckSchedule(schedule).ToString();
  };
  EXPECT_THAT(refusal({.steps = 3, .warmup_steps = 4}),
              HasSubstr("a warm-up of 4 steps in a run of 3"));
  EXPECT_THAT(refusal({.kind = ScheduleKind::kStep, .steps = 3}),
              HasSubstr("steps between decays"));
  EXPECT_THAT(
      refusal({.kind = ScheduleKind::kOneCycle, .steps = 3, .warmup_steps = 1}),
      HasSubstr("its own warm-up"));
  EXPECT_THAT(refusal({.learning_rate = -1}), HasSubstr("is -1"));
}

TEST(ScheduleKindFromName, KnowsItsNames) {
  EXPECT_EQ(*ScheduleKindFromName("one-cycle"), ScheduleKind::kOneCycle);
  EXPECT_THAT(ScheduleKindFromName("cosinus").status().ToString(),
              HasSubstr("constant, linear, cosine, one-cycle, step"));
}

}  // namespace
}  // namespace loadline::executor
