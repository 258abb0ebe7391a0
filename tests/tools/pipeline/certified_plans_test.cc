// Plans of all models of the zoo: what their files call a bound is certified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/problem/plan.h"
#include "planner/verify/verify.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

TEST(CertifiedPlans, VerifyOfEveryModelOfTheZoo) {
  for (const char* model :
       {"mlp", "gpt", "gpt-torchscript", "unet", "resnet18", "gpt12"}) {
    SCOPED_TRACE(model);
    StepFlags flags = MlpFlags();
    flags.model.model = ZooPath(std::string(model) + ".onnx");
    flags.plan.budget = "70%";
    flags.purpose.work_limit = 2000;  // any plan will do
    auto device = MakeDevice(kCpu);
    ASSERT_TRUE(device.ok());
    const auto step = PlanTrainingStep(flags, **device, nullptr);
    ASSERT_TRUE(step.ok()) << step.status();
    const absl::StatusOr<planner::Plan> read = planner::PlanFromJson(
        planner::PlanToJson(step->plan, step->problem), step->problem);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(read->certificate.has_value());
    EXPECT_EQ(planner::Verify(step->problem, *read), absl::OkStatus());
    planner::Plan claim = *read;
    claim.bounds.peak_bytes = claim.predicted.peak_bytes;
    ++claim.bounds.step_ns;
    EXPECT_THAT(std::string(planner::Verify(step->problem, claim).message()),
                testing::HasSubstr("certificate proves"));
  }
}

}  // namespace
}  // namespace loadline::tools
