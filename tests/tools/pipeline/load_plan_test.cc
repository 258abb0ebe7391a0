// A plan of another device or problem is refused with advice.
#include "tools/pipeline/load_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/device/stress_device.h"
#include "executor/program/program.h"
#include "planner/problem/problem.h"
#include "tests/tools/support/fresh_folder.h"
#include "tests/tools/support/model_flags.h"
#include "tools/cli/device_names.h"
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
  const absl::Status status = TakePlan(plan_, problem_, {}, &step_);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(LoadOn(*cpu_).ok());
  EXPECT_LT(step_.plan.budget_bytes, step_.keep_everything.budget_bytes);
}

TEST_F(ForeignPlan, OfAnotherDeviceSaysWhichMachineAndWhatToDo) {
  WritePlanFor(*cpu_);
  const auto wanting = Wanting();
  ASSERT_TRUE(TakePlan(plan_, problem_, {}, &step_).ok());
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
  const absl::Status status = TakePlan(plan_, "", {}, &step_);
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
  const absl::Status status = TakePlan(path, "", {}, &*step);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path), HasSubstr("4 micro-batches"),
                    HasSubstr("--micro-batches 4")));
}

// A plan for the fewest bytes, which `made` permits, and a step to run it in.
class PlanOfFewBytes {
 public:
  explicit PlanOfFewBytes(const PlanFlags& made) {
    auto device = MakeDevice(kEmulated);
    EXPECT_TRUE(device.ok());
    StepFlags flags = MlpFlags();
    flags.plan = made;
    flags.plan.machine = FixedMachinePath();
    flags.plan.device = kEmulated;
    flags.plan.budget = "smallest";
    flags.purpose.work_limit = 2000;
    auto step = PlanTrainingStep(flags, **device, nullptr);
    EXPECT_TRUE(step.ok()) << step.status();
    step_ = *std::move(step);
    path_ = FreshFolder() + "/plan.json";
    Write();
  }

  const PlannedStep& step() const { return step_; }

  // The search finds no recomputation worth its time in so small a model.
  void RunANodeAgain() {
    std::vector<planner::Step>& steps = step_.plan.steps;
    steps.push_back(*std::find_if(
        steps.begin(), steps.end(), [](const planner::Step& step) {
          return step.kind == planner::StepKind::kNode;
        }));
    Write();
  }

  absl::Status Take(const PlanFlags& flags) {
    PlannedStep step = step_;
    step.plan = {};
    return TakePlan(path_, "", flags, &step);
  }

 private:
  void Write() {
    EXPECT_TRUE(
        WriteFile(path_, planner::PlanToJson(step_.plan, step_.problem)).ok());
  }

  PlannedStep step_;
  std::string path_;
};

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(TakePlan, AboveTheBudgetNamesBothNumbers) {
  PlanOfFewBytes plan({.no_recompute = true, .no_offload = true});
  const int64_t bytes = plan.step().plan.arena_bytes;
  PlanFlags flags;
  for (const int64_t fits : {bytes, bytes + 1}) {
    flags.budget = absl::StrCat(fits, "B");
    EXPECT_TRUE(plan.Take(flags).ok()) << plan.Take(flags);
  }
  flags.budget = absl::StrCat(bytes - 1, "B");
  EXPECT_THAT(MessageOf(plan.Take(flags)),
              AllOf(HasSubstr(absl::StrCat(bytes)),
                    HasSubstr(absl::StrCat(bytes - 1)), HasSubstr("--budget")));
  flags.budget = "1%";
  EXPECT_THAT(MessageOf(plan.Take(flags)), HasSubstr("--budget 1%"));
  flags.budget = "smallest";
  EXPECT_THAT(std::string(plan.Take(flags).message()),
              HasSubstr("--budget smallest and --plan"));
}

TEST(TakePlan, DoesNothingThatTheFlagsForbid) {
  PlanOfFewBytes copies({.no_recompute = true});
  EXPECT_TRUE(copies.Take({}).ok());
  EXPECT_TRUE(copies.Take({.no_recompute = true}).ok());
  EXPECT_THAT(MessageOf(copies.Take({.no_offload = true})),
              AllOf(HasSubstr("copies"), HasSubstr("--no-offload")));
  PlanOfFewBytes again({.no_recompute = true, .no_offload = true});
  EXPECT_TRUE(again.Take({.no_recompute = true, .no_offload = true}).ok());
  again.RunANodeAgain();
  EXPECT_THAT(MessageOf(again.Take({.no_recompute = true})),
              AllOf(HasSubstr("recomputations"), HasSubstr("--no-recompute")));
}

}  // namespace
}  // namespace loadline::tools
