// A plan of another device or problem is refused with advice.
#include "tools/pipeline/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/device/stress_device.h"
#include "executor/program/program.h"
#include "planner/problem/problem.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/files.h"

namespace loadline::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Convolutions need workspace on every processor.
StepFlags ConvolutionFlags() {
  StepFlags flags = MlpFlags();
  flags.model.model = ZooPath("resnet18.onnx");
  flags.purpose.work_limit = 2000;  // any plan will do
  return flags;
}

class ForeignPlan : public testing::Test {
 protected:
  void SetUp() override {
    auto device = MakeDevice(kCpu);
    ASSERT_TRUE(device.ok());
    cpu_ = std::move(*device);
    auto step = PlanTrainingStep(ConvolutionFlags(), *cpu_, nullptr);
    ASSERT_TRUE(step.ok()) << step.status();
    step_ = std::move(*step);
  }

  // Writes files of a plan for `device` with other times.
  void WritePlanFor(executor::Device& device) {
    StepFlags flags = ConvolutionFlags();
    flags.plan.budget = "80%";
    auto other = PlanTrainingStep(flags, device, nullptr);
    ASSERT_TRUE(other.ok()) << other.status();
    const std::string folder = FreshFolder();
    plan_ = folder + "/plan.json";
    problem_ = folder + "/problem.json";
    ASSERT_TRUE(
        WriteFile(problem_, planner::ProblemToJson(other->problem)).ok());
    ASSERT_TRUE(
        WriteFile(plan_, planner::PlanToJson(other->plan, other->problem))
            .ok());
  }

  absl::Status LoadOn(executor::Device& device) {
    return executor::Load(step_.graph, step_.problem, step_.plan, device)
        .status();
  }

  std::unique_ptr<executor::Device> cpu_;
  PlannedStep step_;
  std::string plan_;
  std::string problem_;
};

// Under stress, kernels need more workspace, as a GPU's kernels may.
std::unique_ptr<executor::Device> Wanting() {
  auto cpu = MakeDevice(kCpu);
  EXPECT_TRUE(cpu.ok());
  return std::make_unique<executor::StressDevice>(std::move(*cpu),
                                                  executor::StressOptions{});
}

TEST_F(ForeignPlan, IsTakenWhereWorkspacesSuffice) {
  const auto wanting = Wanting();
  WritePlanFor(*wanting);
  const absl::Status status = TakePlan(plan_, problem_, 0, &step_);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(LoadOn(*cpu_).ok());
  EXPECT_LT(step_.plan.budget_bytes, step_.keep_everything.budget_bytes);
}

TEST_F(ForeignPlan, OfAnotherDeviceSaysWhichMachineAndWhatToDo) {
  WritePlanFor(*cpu_);
  const auto wanting = Wanting();
  ASSERT_TRUE(TakePlan(plan_, problem_, 0, &step_).ok());
  const absl::Status status = LoadOn(*wanting);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(wanting->has_arena());
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(step_.problem.machine->name), HasSubstr("--device cpu"),
            HasSubstr("more workspace"), HasSubstr("plan again")));
}

TEST_F(ForeignPlan, OfAnotherProblemAsksForIt) {
  const auto wanting = Wanting();
  WritePlanFor(*wanting);
  const absl::Status status = TakePlan(plan_, "", 0, &step_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(plan_), HasSubstr("give --problem")));
}

TEST(TakePlan, OfOtherMicroBatchesSaysWhichAndWhatToGive) {
  auto device = MakeDevice(kCpu);
  ASSERT_TRUE(device.ok());
  StepFlags flags = MlpFlags();
  flags.plan.calibrate = false;
  auto step = PlanTrainingStep(flags, **device, nullptr);
  ASSERT_TRUE(step.ok()) << step.status();
  flags.plan.micro_batches = "4";
  const auto other = PlanTrainingStep(flags, **device, nullptr);
  ASSERT_TRUE(other.ok()) << other.status();
  const std::string path = FreshFolder() + "/plan.json";
  ASSERT_TRUE(
      WriteFile(path, planner::PlanToJson(other->plan, other->problem)).ok());
  const absl::Status status = TakePlan(path, "", 0, &*step);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path), HasSubstr("4 micro-batches"),
                    HasSubstr("--micro-batches 4")));
}

}  // namespace
}  // namespace loadline::tools
