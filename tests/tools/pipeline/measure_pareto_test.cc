#include "tools/pipeline/measure_pareto.h"

#include <gtest/gtest.h>

#include <utility>

#include "tools/pipeline/measure_plan.h"

namespace loadline::tools {
namespace {

planner::Machine Round(int64_t op_ns, double bytes_per_s) {
  planner::Machine machine;
  machine.ops["Relu"] = op_ns;
  machine.d2h.bytes_per_s = bytes_per_s;
  machine.h2d.bytes_per_s = 2 * bytes_per_s;
  machine.d2h.latency_ns = machine.h2d.latency_ns = op_ns / 10;
  return machine;
}

TEST(Together, IsTheMeanOfTheMiddleRoundsWithAllSteps) {
  std::vector<Measured> rounds(5);
  for (int i = 0; i < 5; ++i) {
    rounds[i].steps = 4;
    rounds[i].step_ns = 10 * i;
    rounds[i].arena_bytes = i;
  }
  rounds[0].step_ns = 1000;  // an outlier: 1000, 10, 20, 30, 40
  const Measured all = Together(std::move(rounds));
  EXPECT_EQ(all.step_ns, 30);     // of 20, 30, 40
  EXPECT_EQ(all.arena_bytes, 3);  // the round of 30
  EXPECT_EQ(all.steps, 20);
}

TEST(MiddleOf, TakesEachPriceByItself) {
  const planner::Machine machine = MiddleOf(
      {Round(100, 1e9), Round(9000, 1e6), Round(200, 2e9), Round(300, 4e9)});
  EXPECT_EQ(machine.ops.at("Relu"), 250);  // of 200 and 300
  EXPECT_EQ(machine.d2h.latency_ns, 25);
  EXPECT_EQ(machine.h2d.latency_ns, 25);
  // Of the times 1/2e9 and 1/1e9 are the middle two.
  EXPECT_NEAR(machine.d2h.bytes_per_s, 1e9 / 0.75, 1e3);
  EXPECT_NEAR(machine.h2d.bytes_per_s, 2e9 / 0.75, 1e3);
}

TEST(MiddleOf, LeavesAMachineThatCannotCopySo) {
  const planner::Machine machine = MiddleOf({Round(100, 0), Round(200, 0)});
  EXPECT_EQ(machine.d2h.bytes_per_s, 0);
  EXPECT_FALSE(machine.CanCopy());
}

}  // namespace
}  // namespace loadline::tools
