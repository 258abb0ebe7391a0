// Figures of the whole device are shown only if the device is not the host.
#include "tools/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/device.h"

namespace loadline::tools {
namespace {

using ::testing::ContainsRegex;
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
    PrintRunTable(step_, {}, result_, resident_);
    return testing::internal::GetCapturedStdout();
  }
  nlohmann::json Json() {
    testing::internal::CaptureStdout();
    PrintRunJson(step_, {}, result_, resident_);
    return nlohmann::json::parse(testing::internal::GetCapturedStdout());
  }

  PlannedStep step_;
  executor::TrainResult result_;
  ResidentMemory resident_;
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

TEST_F(RunReport, HasWhatTheProcessTakesBesideTheArena) {
  EXPECT_THAT(Table(), Not(HasSubstr("resident")));
  EXPECT_FALSE(Json().contains("measured_resident_bytes"));
  resident_ = {.base_bytes = int64_t{100} << 20,
               .peak_bytes = int64_t{107} << 20};
  step_.plan.arena_bytes = int64_t{7} << 20;
  step_.keep_everything.arena_bytes = int64_t{20} << 20;
  EXPECT_THAT(Table(), ContainsRegex("resident +107 MiB +107 MiB +\\+0.0 %"));
  EXPECT_THAT(Table(), HasSubstr("100 MiB before"));
  EXPECT_THAT(Table(), HasSubstr("120 MiB"));
  EXPECT_THAT(Table(), Not(HasSubstr("emulated")));
  const nlohmann::json json = Json();
  EXPECT_EQ(json["measured_resident_bytes"], resident_.peak_bytes);
  EXPECT_EQ(json["resident_base_bytes"], resident_.base_bytes);
}

// Where a small arena needs a long search.
TEST_F(RunReport, PredictsNoLessThanPlanningHasTaken) {
  resident_ = {.base_bytes = int64_t{100} << 20,
               .planning_bytes = int64_t{140} << 20,
               .peak_bytes = int64_t{140} << 20};
  step_.plan.arena_bytes = int64_t{7} << 20;
  EXPECT_THAT(Table(), ContainsRegex("resident +140 MiB +140 MiB +\\+0.0 %"));
  EXPECT_EQ(Json()["resident_planning_bytes"], resident_.planning_bytes);
}

// Its copies are in the same machine's memory.
TEST_F(RunReport, CountsTheHostStoreOfAnEmulatedDevice) {
  resident_ = {.base_bytes = int64_t{100} << 20,
               .store_bytes = int64_t{50} << 20,
               .peak_bytes = int64_t{157} << 20};
  step_.plan.arena_bytes = int64_t{7} << 20;
  EXPECT_THAT(Table(), ContainsRegex("resident +157 MiB +157 MiB +\\+0.0 %"));
  EXPECT_THAT(Table(), HasSubstr("50.0 MiB of copies"));
}

}  // namespace
}  // namespace loadline::tools
