// A plan for a GPU that is not here, from what its data sheet says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

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

TEST(KnownMachine, IsPlannedForByItsName) {
  const int64_t t4_ns = StepNs("t4");
  const int64_t h100_ns = StepNs("h100-sxm");
  EXPECT_GT(h100_ns, 0);
  EXPECT_GT(t4_ns, 2 * h100_ns);
}

TEST(KnownMachine, IsCalledNominalInAReport) {
  const CommandResult report =
      RunLoadline({"report", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--machine", "l4", "--json"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  EXPECT_EQ(report.json()["machine"]["name"], "l4");
  EXPECT_EQ(report.json()["machine"]["nominal"], true);
  EXPECT_THAT(report.out, HasSubstr("nominal: from its data sheet"));
}

TEST(KnownMachine, IsCalledNominalBesideItsPlan) {
  const CommandResult plan =
      RunLoadline({"plan", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--machine", "l4"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("Times are nominal"));
}

TEST(KnownMachine, IsAFileToStartFrom) {
  const std::string path = TestFolder("known_machine_file") + "/mine.json";
  const CommandResult doctor = RunLoadline({"doctor", "rtx-4090", "-o", path});
  ASSERT_EQ(doctor.exit_code, 0) << doctor.err;
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("rtx-4090 (nominal"),
                                HasSubstr("kept in"), HasSubstr("mine.json")));
  EXPECT_EQ(StepNs(path), StepNs("rtx-4090"));
  const CommandResult shown = RunLoadline({"doctor", "rtx-4090", "--json"});
  EXPECT_EQ(shown.json()["extra"]["nominal"], true);
}

TEST(KnownMachine, IsNotMeasuredHere) {
  const CommandResult run =
      RunLoadline({"run", Zoo("mlp.onnx"), "--data", Zoo("digits-train.npz"),
                   "--steps", "2", "--machine", "h200-sxm"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--machine h200-sxm"),
                             HasSubstr("leave --machine out")));
}

TEST(KnownMachine, IsSpelledOutWhereThereIsNone) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"plan", Zoo("mlp.onnx"), "--machine", "h300"},
        {"doctor", "h300"}}) {
    const CommandResult run = RunLoadline(args);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, AllOf(HasSubstr("h300"), HasSubstr("h200-sxm")));
  }
}

}  // namespace
}  // namespace loadline
