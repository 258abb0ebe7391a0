#include "executor/train/check_finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

TEST(CheckFinite, NamesTheParameterThatHoldsNoNumber) {
  const Toy toy = MakeToy();
  const planner::Plan plan = KeepPlan(toy);
  CpuDevice device(ToyDevice());
  auto program = Load(toy.graph, toy.problem, plan, device);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(CheckFinite(**program).ok());
  const int64_t bytes = toy.options.width * int64_t{sizeof(float)};
  std::vector<std::byte> w3(bytes);
  ASSERT_TRUE((*program)->ReadPersistent("w3", absl::MakeSpan(w3)).ok());
  for (const float number : {std::numeric_limits<float>::max(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()}) {
    std::memcpy(w3.data() + bytes - sizeof(float), &number, sizeof(float));
    ASSERT_TRUE((*program)->WritePersistent("w3", w3).ok());
    const absl::Status status = CheckFinite(**program);
    if (std::isfinite(number)) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(status.message(), "'w3' holds an infinity or NaN");
    }
  }
}

}  // namespace
}  // namespace loadline::executor
