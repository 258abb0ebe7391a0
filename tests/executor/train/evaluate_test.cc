// Evaluation over a whole data set.
#include "executor/train/evaluate.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/executor/support/toy.h"

namespace loadline::executor {
namespace {

TEST(Evaluate, MeansOverAllExamplesTheLastPartialBatchToo) {
  const Toy full = MakeToy({.batch = 4, .train = false});
  const Toy rest = MakeToy({.batch = 2, .train = false});
  const Toy single = MakeToy({.batch = 1, .train = false});
  const DataSet data = ToyData(full, 10);
  const planner::Plan full_plan = KeepPlan(full);
  const planner::Plan rest_plan = KeepPlan(rest);
  const planner::Plan single_plan = KeepPlan(single);
  CpuDevice a(ToyDevice()), b(ToyDevice()), c(ToyDevice());
  auto full_program = Load(full.graph, full.problem, full_plan, a);
  auto rest_program = Load(rest.graph, rest.problem, rest_plan, b);
  auto single_program = Load(single.graph, single.problem, single_plan, c);
  ASSERT_TRUE(full_program.ok()) << full_program.status();
  Evaluator both(data);
  ASSERT_TRUE(both.Run(**full_program).ok());
  EXPECT_EQ(both.left(), 2);
  ASSERT_TRUE(both.Run(**rest_program).ok());
  EXPECT_EQ(both.left(), 0);
  Evaluator one(data);
  ASSERT_TRUE(one.Run(**single_program).ok());
  const Evaluation got = both.result();
  EXPECT_EQ(got.examples, 10);
  EXPECT_NEAR(got.loss, one.result().loss, 1e-5 * one.result().loss);
  // The toy's count is 1 in every batch, of batch * width targets.
  EXPECT_DOUBLE_EQ(*got.accuracy, 3.0 / (10 * 64));
}

TEST(Evaluate, StopsBetweenBatchesWhenAsked) {
  const Toy toy = MakeToy({.batch = 4, .train = false});
  const planner::Plan plan = KeepPlan(toy);
  const DataSet data = ToyData(toy, 12);
  CpuDevice device(ToyDevice());
  auto program = Load(toy.graph, toy.problem, plan, device);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::atomic<bool> stop{true};
  Evaluator evaluator(data);
  EXPECT_EQ(evaluator.Run(**program, &stop).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(evaluator.left(), 8);
}

}  // namespace
}  // namespace loadline::executor
