// Figures of the whole device are shown only if the device is not the host.
#include "tools/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/device.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunReport : public testing::Test {
 protected:
  void SetUp() override {
    auto device = MakeDevice(kCpu);
    ASSERT_TRUE(device.ok());
    auto step = PlanTrainingStep(MlpFlags(), **device, nullptr);
    ASSERT_TRUE(step.ok()) << step.status();
    step_ = std::move(*step);
    step_.problem.machine->reserved_bytes = int64_t{300} << 20;
    result_.arena_bytes = step_.plan.arena_bytes;
  }

  std::string Table() {
    testing::internal::CaptureStdout();
    PrintRunTable(step_, {}, result_);
    return testing::internal::GetCapturedStdout();
  }
  nlohmann::json Json() {
    testing::internal::CaptureStdout();
    PrintRunJson(step_, {}, result_);
    return nlohmann::json::parse(testing::internal::GetCapturedStdout());
  }

  PlannedStep step_;
  executor::TrainResult result_;
};

TEST_F(RunReport, HasTheDriversBytesBesideArenaAndReserve) {
  result_.device_bytes = step_.plan.arena_bytes + (int64_t{306} << 20);
  EXPECT_THAT(Table(), HasSubstr("whole device"));
  const nlohmann::json json = Json();
  EXPECT_EQ(json["measured_device_bytes"], result_.device_bytes);
  EXPECT_EQ(json["reserved_bytes"], int64_t{300} << 20);
}

TEST_F(RunReport, SaysNothingOfADeviceThatIsTheHost) {
  EXPECT_THAT(Table(), Not(HasSubstr("whole device")));
  EXPECT_FALSE(Json().contains("measured_device_bytes"));
  EXPECT_FALSE(Json().contains("reserved_bytes"));
}

}  // namespace
}  // namespace loadline::tools
