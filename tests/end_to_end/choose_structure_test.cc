// `--split auto` and `--micro-batches auto` through the command.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "planner/solve/solve.h"
#include "tests/end_to_end/run_command.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/plan_request.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/structure_candidates.h"
#include "tools/pipeline/structures.h"

namespace loadline {
namespace {

std::vector<std::string> Plan(const std::vector<std::string>& more) {
  std::vector<std::string> args = {
      "plan", Zoo("gpt.onnx"), "--batch", "8", "--machine", "l4", "--json"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(ChooseStructure, SlowIsNotSlowerThanTheWholeStep) {
  const std::string budget = "40%";
  const CommandResult whole =
      RunLoadline(Plan({"--budget", budget, "--no-split"}));
  const CommandResult chosen =
      RunLoadline(Plan({"--budget", budget, "--split", "auto"}));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_LE(chosen.json()["predicted_step_ns"].get<int64_t>(),
            whole.json()["predicted_step_ns"].get<int64_t>());
}

TEST(EstimateNs, IsNearWhatASearchOfTheStructureFinds) {
  executor::CpuDevice device;
  tools::StepFlags flags;
  flags.model.model = Zoo("mlp.onnx");
  flags.model.batch = 32;
  flags.plan.machine = "l4";
  flags.purpose.work_limit = 5'000;
  int compared = 0;
  for (const int percent : {90, 70}) {
    flags.plan.budget = absl::StrCat(percent, "%");
    flags.plan.micro_batches = "auto";
    const auto model = tools::ImportModel(flags.model, /*training=*/true);
    ASSERT_TRUE(model.ok()) << model.status();
    auto candidates = tools::StructureCandidates::Create(model->graph, flags,
                                                         device, nullptr, {});
    ASSERT_TRUE(candidates.ok()) << candidates.status();
    ASSERT_TRUE(candidates->PoseUpTo(1e18).ok());
    ASSERT_TRUE(candidates->LearnOverheads(nullptr).ok());
    for (tools::Candidate& candidate : candidates->all()) {
      auto request =
          tools::ReadPlanRequest(candidate.flags.plan, candidate.flags.purpose);
      ASSERT_TRUE(request.ok()) << request.status();
      // The estimate is of searches, not of plans that copy nearly everything.
      request->options.allow_smallest_start = false;
      const auto plan =
          tools::SolveFor(candidate.step.problem, *request,
                          candidate.step.keep_everything, nullptr);
      if (!plan.ok()) continue;
      const double ratio = candidates->EstimateNs(candidate) /
                           static_cast<double>(plan->predicted.step_ns);
      EXPECT_GT(ratio, 0.75) << candidate.structure.micro_batches;
      EXPECT_LT(ratio, 1.25) << candidate.structure.micro_batches;
      ++compared;
    }
  }
  EXPECT_GE(compared, 8);
}

tools::StepFlags AutoFlags(const std::string& budget) {
  tools::StepFlags flags;
  flags.model.model = Zoo("mlp.onnx");
  flags.model.batch = 16;
  flags.plan.calibrate = false;
  flags.plan.budget = budget;
  flags.plan.micro_batches = "auto";
  flags.purpose.work_limit = 5'000;
  return flags;
}

TEST(ChooseStructure, RefusesWithTheLowestBoundOfAllStructures) {
  executor::CpuDevice device;
  tools::StepFlags flags = AutoFlags("1KiB");
  const auto chosen = tools::PlanTrainingStep(flags, device, nullptr);
  const auto facts = planner::InfeasibilityOf(chosen.status());
  ASSERT_TRUE(facts.has_value()) << chosen.status();
  for (const int64_t parts : {1, 2, 4, 8, 16}) {
    const auto fixed = tools::PlanTrainingStep(
        tools::WithMicroBatches(flags, parts), device, nullptr);
    const auto of_fixed = planner::InfeasibilityOf(fixed.status());
    ASSERT_TRUE(of_fixed.has_value()) << fixed.status();
    EXPECT_LE(facts->proven_bound_bytes, of_fixed->proven_bound_bytes) << parts;
  }
}

TEST(ChooseStructure, ReturnsThePlanThatItHasWhenItIsStopped) {
  executor::CpuDevice device;
  const std::atomic<bool> stop = true;
  const auto stopped =
      tools::PlanTrainingStep(AutoFlags("100%"), device, &stop);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  // No other structure was even posed.
  ASSERT_GT(stopped->tried.size(), 1u);
  for (size_t i = 1; i < stopped->tried.size(); ++i) {
    EXPECT_EQ(stopped->tried[i].outcome, "not searched") << i;
  }
  tools::StepFlags flags = AutoFlags("100%");
  flags.plan.time_limit = "1ns";
  const auto late = tools::PlanTrainingStep(flags, device, nullptr);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->tried.size(), stopped->tried.size());
}

}  // namespace
}  // namespace loadline
