// The trace of a step, as a file for Perfetto.
#include "executor/program/trace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

TEST(ChromeTrace, HoldsEveryStepOnItsLaneMeasuredAndPredicted) {
  const Toy toy = MakeToy();
  const planner::Plan plan = OffloadPlan(toy);
  CpuDevice device(ToyDevice());
  auto program = Load(toy.graph, toy.problem, plan, device, {.trace = true});
  ASSERT_TRUE(program.ok());
  const DataSet data = ToyData(toy, 4);
  const std::vector<const std::byte*> inputs = {data.columns[0].data.data(),
                                                data.columns[1].data.data()};
  ASSERT_TRUE((*program)->Run({}, inputs).ok());
  ASSERT_EQ(device.trace().size(), plan.steps.size());
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    EXPECT_GT(device.trace()[s].end_ns, 0);
    for (planner::StepId wait : plan.steps[s].wait) {
      EXPECT_LE(device.trace()[planner::Index(wait)].end_ns,
                device.trace()[s].start_ns);
    }
  }
  const std::string json =
      ChromeTrace(toy.problem, plan, device.trace(),
                  std::vector<TraceSpan>(plan.steps.size(), {1000, 3500}));
  size_t events = 0;
  for (size_t at = json.find("\"ph\":\"X\""); at != std::string::npos;
       at = json.find("\"ph\":\"X\"", at + 1)) {
    ++events;
  }
  EXPECT_EQ(events, 2 * plan.steps.size());
  EXPECT_NE(json.find("\"pid\":2,\"tid\":0,\"ts\":1.0,\"dur\":2.5"),
            std::string::npos);
  EXPECT_NE(json.find("\"name\":\"ToyMul-0\""), std::string::npos);
}

}  // namespace
}  // namespace loadline::executor
