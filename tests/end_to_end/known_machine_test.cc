// A plan for a GPU that this machine lacks, from its data sheet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/problem/problem.h"
#include "planner/solve/solve.h"
#include "tests/end_to_end/run_command.h"

namespace loadline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int64_t StepNs(const std::string& machine) {
  const CommandResult plan =
      RunLoadline({"plan", Zoo("gpt.onnx"), "--data", Zoo("text-train.npz"),
                   "--machine", machine, "--json"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  return plan.json().value("predicted_step_ns", int64_t{0});
}

CommandResult OfMlp(const std::string& verb, std::vector<std::string> more) {
  std::vector<std::string> args = {verb, Zoo("mlp.onnx"), "--data",
                                   Zoo("digits-train.npz")};
  args.insert(args.end(), more.begin(), more.end());
  return RunLoadline(args);
}

TEST(KnownMachine, IsPlannedForByItsName) {
  const int64_t t4_ns = StepNs("t4");
  const int64_t h100_ns = StepNs("h100-sxm");
  EXPECT_GT(h100_ns, 0);
  EXPECT_GT(t4_ns, 2 * h100_ns);
}

// Below 61 % of the peak only optimizer state at home on the host makes room.
TEST(KnownMachine, HasPlansFarBelowThePeakWithHardlyAnySearch) {
  const CommandResult posed = RunLoadline(
      {"pose", Zoo("resnet18.onnx"), "--batch", "4", "--machine", "h100-sxm"});
  ASSERT_EQ(posed.exit_code, 0) << posed.err;
  const auto problem = planner::ProblemFromJson(posed.out);
  ASSERT_TRUE(problem.ok()) << problem.status();
  const auto all = planner::KeepEverything(*problem);
  ASSERT_TRUE(all.ok()) << all.status();
  for (const int64_t work : {2000, 200}) {
    for (const int percent : {75, 60, 50, 35}) {
      planner::SolveOptions options;
      options.budget_bytes = all->predicted.peak_bytes / 100 * percent;
      options.work_limit = work;
      options.bound_work_limit = 0;
      const auto plan = planner::Solve(*problem, options);
      EXPECT_TRUE(plan.ok())
          << percent << " % with " << work << ": " << plan.status();
    }
  }
}

TEST(KnownMachine, IsCalledNominalInAReport) {
  const CommandResult report = OfMlp("report", {"--machine", "l4", "--json"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(report.json()["machine"]["name"], "l4");
  EXPECT_EQ(report.json()["machine"]["nominal"], true);
  EXPECT_THAT(report.out, HasSubstr("nominal: from its data sheet"));
}

TEST(KnownMachine, IsCalledNominalBesideItsPlan) {
  const CommandResult plan = OfMlp("plan", {"--machine", "l4"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("are nominal, of the data sheet"));
}

TEST(KnownMachine, IsAFileToStartFrom) {
  const std::string path = TestFolder("known_machine_file") + "/mine.json";
  const CommandResult doctor = RunLoadline({"doctor", "rtx-4090", "-o", path});
  ASSERT_EQ(doctor.exit_code, 0) << doctor.err;
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("rtx-4090 (nominal"),
                                HasSubstr("kept in"), HasSubstr("mine.json")));
  EXPECT_EQ(StepNs(path), StepNs("rtx-4090"));
  const CommandResult shown = RunLoadline({"doctor", "rtx-4090", "--json"});
  EXPECT_EQ(shown.json()["nominal"], true);
}

// The GPU's kernels are not available to report their workspaces, and those of
// the CPU's convolutions are larger than everything else.
TEST(KnownMachine, CountsNoWorkspaces) {
  const auto workspaces = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"pose",   Zoo("resnet18.onnx"),
                                     "--data", Zoo("digits-train.npz"),
                                     "-o",     "-"};
    args.insert(args.end(), more.begin(), more.end());
    const CommandResult posed = RunLoadline(args);
    EXPECT_EQ(posed.exit_code, 0) << posed.err;
    const auto problem = posed.json();
    int64_t sum = 0;
    for (const auto& node : problem["nodes"]) {
      sum += node.value("workspace_bytes", int64_t{0});
    }
    return sum;
  };
  EXPECT_GT(workspaces({}), 0);
  EXPECT_EQ(workspaces({"--machine", "a10"}), 0);
}

TEST(KnownMachine, HasItsReserveTakenOffABudgetInBytes) {
  const auto budget_bytes = [](const std::string& budget) {
    const CommandResult plan =
        OfMlp("plan", {"--machine", "t4", "--budget", budget, "--json"});
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    return plan.json().value("budget_bytes", int64_t{0});
  };
  EXPECT_EQ(budget_bytes("1GiB"), int64_t{1024 - 550} << 20);
  const CommandResult none =
      OfMlp("plan", {"--machine", "t4", "--budget", "500MiB"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("550 MiB"));
}

TEST(KnownMachine, IsNotWhereStepsRun) {
  const std::string path = TestFolder("known_machine_run") + "/mine.json";
  ASSERT_EQ(RunLoadline({"doctor", "h200-sxm", "-o", path}).exit_code, 0);
  for (const std::string& machine : {std::string("h200-sxm"), path}) {
    for (const char* calibrate : {"--calibrate", "--no-calibrate"}) {
      const CommandResult run =
          OfMlp("run", {"--steps", "2", "--machine", machine, calibrate});
      EXPECT_EQ(run.exit_code, 2);
      EXPECT_THAT(run.err, AllOf(HasSubstr("--machine h200-sxm"),
                                 HasSubstr("leave --machine out")));
    }
  }
}

TEST(KnownMachine, IsNotWhereModelsAreEvaluated) {
  const CommandResult eval =
      RunLoadline({"eval", Zoo("mlp.onnx"), "--data", Zoo("digits-test.npz"),
                   "--machine", "h200-sxm"});
  EXPECT_EQ(eval.exit_code, 2) << eval.out;
  EXPECT_THAT(eval.err, HasSubstr("--machine h200-sxm"));
}

// Plans the MLP for `machine` and runs the plan on this CPU.
CommandResult RunHere(const std::string& machine) {
  const std::string folder = TestFolder("known_machine_plan");
  const std::string plan = folder + "/plan.json", problem = folder + "/p.json";
  EXPECT_EQ(
      OfMlp("plan", {"--machine", machine, "-o", plan, "--problem", problem})
          .exit_code,
      0);
  return OfMlp("run", {"--steps", "2", "--plan", plan, "--problem", problem});
}

// Other times make a plan slower, but it stays valid.
TEST(KnownMachine, AnotherMachinesPricesMakePlansThatRunHere) {
  const CommandResult run =
      RunHere(LOADLINE_SOURCE_DIR "/tests/tools/machine.json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// A nominal profile counts no workspaces. Which kernels of this CPU need some
// depends on its instructions.
TEST(KnownMachine, MakesPlansThatRunOnlyWhereKernelsNeedNoWorkspace) {
  const CommandResult posed = OfMlp(
      "pose", {"--machine", LOADLINE_SOURCE_DIR "/tests/tools/machine.json",
               "-o", "-"});
  ASSERT_EQ(posed.exit_code, 0) << posed.err;
  bool needed = false;
  const auto problem = posed.json();
  for (const auto& node : problem["nodes"]) {
    needed |= node.value("workspace_bytes", int64_t{0}) > 0;
  }
  const CommandResult run = RunHere("l4");
  EXPECT_EQ(run.exit_code, needed ? 2 : 0) << run.err;
  if (needed) {
    EXPECT_THAT(run.err, AllOf(HasSubstr("more workspace"),
                               HasSubstr("plan again with this --device")));
  }
}

TEST(KnownMachine, IsSpelledOutWhereThereIsNone) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"plan", Zoo("mlp.onnx"), "--machine", "h300"},
        {"doctor", "h300"}}) {
    const CommandResult run = RunLoadline(args);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, AllOf(HasSubstr("h300"), HasSubstr("h200-sxm")));
  }
  // An empty shell variable is no name, and must not mean this machine.
  const std::string long_name(300, 'x');
  EXPECT_EQ(RunLoadline({"doctor", ""}).exit_code, 2);
  for (const std::string& name : {std::string(), long_name}) {
    EXPECT_EQ(
        RunLoadline({"plan", Zoo("mlp.onnx"), "--machine", name}).exit_code, 2);
  }
}

}  // namespace
}  // namespace loadline
