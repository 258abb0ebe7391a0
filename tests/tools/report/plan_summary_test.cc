// The table and the verdict of a plan with known figures.
#include "tools/report/plan_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace loadline::tools {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// Two values: the first is recomputed, the second copied.
planner::Problem TwoValues() {
  planner::Problem problem;
  problem.name = "step";
  problem.values.resize(2);
  problem.values[0].bytes = 6 * kMiB;
  problem.values[1].bytes = 2 * kMiB;
  return problem;
}

planner::Plan KeepAll() {
  planner::Plan plan;
  plan.budget_bytes = 200 * kMiB;
  plan.arena_bytes = 200 * kMiB;
  plan.predicted.peak_bytes = 200 * kMiB;
  plan.predicted.step_ns = 100'000'000;
  return plan;
}

planner::Plan Traded() {
  planner::Plan plan;
  plan.budget_bytes = 110 * kMiB;
  plan.arena_bytes = 105 * kMiB;
  plan.host_bytes = 2 * kMiB;
  plan.predicted.peak_bytes = 100 * kMiB;
  plan.predicted.step_ns = 125'000'000;
  plan.predicted.recompute_ns = 20'000'000;
  plan.predicted.stall_ns = 5'000'000;
  plan.predicted.d2h_bytes = 2 * kMiB;
  plan.predicted.h2d_bytes = 2 * kMiB - 8192;
  plan.bounds.peak_bytes = 90 * kMiB;
  plan.bounds.step_ns = 110'000'000;
  plan.certificate.emplace();
  plan.decisions = {{planner::ValueId(0), planner::Action::kRecompute, ""},
                    {planner::ValueId(1), planner::Action::kOffload, ""}};
  return plan;
}

TEST(PlanTable, SaysWhatWasTradedForWhat) {
  const std::string table = PlanTable(TwoValues(), KeepAll(), Traded());
  EXPECT_THAT(table, HasSubstr("100 MiB  (50.0 %)"));
  EXPECT_THAT(table, HasSubstr("105 MiB of a budget of 110 MiB"));
  EXPECT_THAT(table, HasSubstr("125 ms  (+25.0 %)"));
  EXPECT_THAT(table, HasSubstr("1 value of 6.00 MiB, 20.0 ms again"));
  EXPECT_THAT(table, HasSubstr("1 value; 2.00 MiB out, 1.99 MiB in"));
  EXPECT_THAT(table, HasSubstr("peak >= 90.0 MiB, step >= 110 ms"));
}

TEST(PlanTable, IsNoWiderThanATerminal) {
  planner::Problem problem;
  problem.values.resize(2468);
  planner::Plan plan = Traded();
  plan.decisions.clear();
  for (int32_t i = 0; i < 2468; ++i) {
    problem.values[static_cast<size_t>(i)].bytes = 7 * kMiB;
    plan.decisions.push_back(
        {planner::ValueId(i),
         i % 2 == 0 ? planner::Action::kRecompute : planner::Action::kOffload,
         ""});
  }
  const std::string table = PlanTable(problem, KeepAll(), plan);
  size_t begin = 0;
  while (begin < table.size()) {
    const size_t line = table.find('\n', begin);
    EXPECT_LE(line - begin, 80) << table.substr(begin, line - begin);
    begin = line + 1;
  }
}

TEST(Verdict, NamesTheSlowdownAndTheBound) {
  EXPECT_EQ(Verdict(TwoValues(), KeepAll(), Traded()),
            "Fits in 110 MiB with 5.00 MiB to spare and makes a step 25.0 % "
            "slower. A step within this budget takes at least 110 ms (proven); "
            "this plan takes 125 ms.");
}

TEST(Verdict, SaysWhenNoPlanIsFaster) {
  planner::Plan plan = Traded();
  plan.bounds.step_ns = plan.predicted.step_ns;
  EXPECT_EQ(Verdict(TwoValues(), KeepAll(), plan),
            "Fits in 110 MiB with 5.00 MiB to spare and makes a step 25.0 % "
            "slower; no plan within this budget is faster (proven).");
}

TEST(Verdict, SaysWhenNothingIsLost) {
  planner::Plan plan = Traded();
  plan.predicted.step_ns = KeepAll().predicted.step_ns;
  EXPECT_EQ(Verdict(TwoValues(), KeepAll(), plan),
            "Fits in 110 MiB with 5.00 MiB to spare and is predicted to cost "
            "no time.");
}

TEST(Verdict, SaysWhatIsToBeKnownOfTheMachine) {
  planner::Problem problem = TwoValues();
  problem.machine = planner::Machine();
  problem.machine->name = "small";
  problem.machine->device_bytes = 110 * kMiB;
  problem.machine->reserved_bytes = 5 * kMiB;
  const std::string fits = Verdict(problem, KeepAll(), Traded());
  EXPECT_EQ(fits, Verdict(TwoValues(), KeepAll(), Traded()));
  ++problem.machine->reserved_bytes;
  EXPECT_EQ(Verdict(problem, KeepAll(), Traded()),
            fits +
                " But small has no more than 110 MiB, and 110 MiB would be "
                "taken.");
  problem.machine->device_bytes = 0;  // unknown
  problem.machine->nominal = true;
  EXPECT_EQ(Verdict(problem, KeepAll(), Traded()),
            fits +
                " Times are nominal, of the data sheet of small: nobody has "
                "measured it.");
}

TEST(PlanSummaryJson, HoldsTheSameFigures) {
  const auto json = PlanSummaryJson(TwoValues(), KeepAll(), Traded());
  EXPECT_EQ(json["arena_bytes"], 105 * kMiB);
  EXPECT_EQ(json["predicted_step_ns"], 125'000'000);
  EXPECT_EQ(json["recomputed_values"], 1);
  EXPECT_EQ(json["offloaded_values"], 1);
  EXPECT_EQ(json["keep_everything_step_ns"], 100'000'000);
  EXPECT_EQ(json["verdict"], Verdict(TwoValues(), KeepAll(), Traded()));
}

TEST(PlanTable, SaysWhatIsStoredCompressed) {
  planner::Problem problem = TwoValues();
  problem.values[1].stash = {{"bits", kMiB / 4, 1, 1, true, 0},
                             {"group4", kMiB / 2, 1, 1, false, 1e-4}};
  planner::Plan plan = Traded();
  plan.buffers.resize(1);
  plan.buffers[0].value = planner::ValueId(1);
  planner::Step encode;
  encode.kind = planner::StepKind::kEncode;
  encode.codec = "bits";
  encode.from = planner::BufferId(0);
  plan.steps.push_back(encode);
  EXPECT_THAT(PlanTable(problem, KeepAll(), plan),
              HasSubstr("1 value; 1.75 MiB saved\n"));
  plan.steps[0].codec = "group4";
  EXPECT_THAT(PlanTable(problem, KeepAll(), plan),
              HasSubstr("1.50 MiB saved, 1.0 % of the allowed error\n"));
  const auto json = PlanSummaryJson(problem, KeepAll(), plan);
  EXPECT_EQ(json["compressed_values"], 1);
  EXPECT_EQ(json["compression_saved_bytes"], kMiB * 3 / 2);
  EXPECT_DOUBLE_EQ(json["error_share"], 0.01);
  EXPECT_FALSE(
      PlanSummaryJson(problem, KeepAll(), Traded()).contains("error_share"));
}

}  // namespace
}  // namespace loadline::tools
