// A bound above the plan's own figures is an error, by however little.
#include "planner/solve/check_bounds.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace loadline::planner {
namespace {

Plan Reaching(int64_t peak_bytes, int64_t step_ns) {
  Plan plan;
  plan.budget_bytes = 200;
  plan.predicted.peak_bytes = 100;
  plan.predicted.step_ns = 5'000'000'000;
  plan.bounds = {peak_bytes, step_ns};
  return plan;
}

TEST(CheckBounds, RefusesABoundThatThePlanRefutes) {
  EXPECT_EQ(CheckBounds(Reaching(100, 5'000'000'000), false), absl::OkStatus());
  EXPECT_EQ(CheckBounds(Reaching(0, 0), false), absl::OkStatus());
  const auto refused = [](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  };
  EXPECT_EQ(
      refused(CheckBounds(Reaching(90, 5'000'000'001), false)),
      "a bug of the planner: it says that no plan takes less than 90 "
      "bytes and 5000000001 ns within 200 bytes, and has one of 100 bytes "
      "and 5000000000 ns");
  EXPECT_THAT(refused(CheckBounds(Reaching(101, 0), false)),
              testing::HasSubstr("less than 101 bytes"));
  EXPECT_THAT(refused(CheckBounds(Reaching(0, 0), true)),
              testing::HasSubstr("no plan exists within 200 bytes"));
}

}  // namespace
}  // namespace loadline::planner
