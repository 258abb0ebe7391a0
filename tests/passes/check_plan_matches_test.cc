#include "passes/check_plan_matches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "passes/make_problem.h"
#include "passes/structure.h"
#include "passes/training_pipeline.h"
#include "planner/solve/solve.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Graph;
using ::testing::HasSubstr;

Graph StepGraph(int64_t micro_batches = 1) {
  TrainingOptions options;
  options.loss.target = {models::DType::kI64, {4}};
  options.optimizer.momentum = 0.9;
  options.micro_batches = micro_batches;
  absl::StatusOr<Graph> step = BuildTrainingStep(SmallMlp(), options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

planner::Problem ProblemWithTimes(const Graph& graph) {
  MakeProblemOptions options;
  options.name = NameWithStructure("mlp", graph);
  options.cost = [](const Graph&, const models::Node&) {
    return NodeCost{1000, 64};
  };
  absl::StatusOr<planner::Problem> problem = MakeProblem(graph, options);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return *std::move(problem);
}

TEST(CheckPlanMatches, AcceptsAPlanOfThisGraphAtAnyPrices) {
  const Graph graph = StepGraph();
  const planner::Problem problem = ProblemWithTimes(graph);
  const absl::StatusOr<planner::Plan> plan = planner::KeepEverything(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::Status status = CheckPlanMatches(graph, problem, *plan);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CheckPlanMatches, RefusesAPlanThatDoesNotVerify) {
  const Graph graph = StepGraph();
  const planner::Problem problem = ProblemWithTimes(graph);
  absl::StatusOr<planner::Plan> plan = planner::KeepEverything(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  plan->arena_bytes -= 1;
  EXPECT_EQ(CheckPlanMatches(graph, problem, *plan).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CheckPlanMatches, NamesAnotherStructure) {
  const Graph whole = StepGraph();
  const Graph parts = StepGraph(2);
  const planner::Problem of_whole = ProblemWithTimes(whole);
  const planner::Problem of_parts = ProblemWithTimes(parts);
  EXPECT_EQ(of_parts.name, "mlp, 2 micro-batches");
  const auto plan_of_whole = planner::KeepEverything(of_whole);
  const auto plan_of_parts = planner::KeepEverything(of_parts);
  ASSERT_TRUE(plan_of_whole.ok() && plan_of_parts.ok());
  EXPECT_TRUE(CheckPlanMatches(parts, of_parts, *plan_of_parts).ok());
  EXPECT_THAT(
      CheckPlanMatches(whole, of_parts, *plan_of_parts).message(),
      HasSubstr("in 2 micro-batches, and this step is in one piece; give "
                "--micro-batches 2"));
  EXPECT_THAT(CheckPlanMatches(parts, of_whole, *plan_of_whole).message(),
              HasSubstr("give --micro-batches 1"));
}

// x f32[512,16] -> logits f32[512,256].
Graph WithHead(const std::vector<Split>& splits) {
  Builder b;
  b.Output(
      b.Op("MatMul", {b.Input("x", {512, 16}), b.Parameter("w", {16, 256})}));
  TrainingOptions options;
  options.loss.target = {models::DType::kI64, {512}};
  options.splits = splits;
  absl::StatusOr<Graph> step = BuildTrainingStep(b.graph, options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

TEST(CheckPlanMatches, NamesOtherSegments) {
  const Graph whole = WithHead({});
  const Graph split = WithHead({{"head", 3}});
  EXPECT_EQ(StructureOf(whole), "");
  EXPECT_EQ(StructureOf(split), "segments head=3");
  EXPECT_EQ(NameWithStructure("gpt", split), "gpt, segments head=3");
  EXPECT_TRUE(CheckNamedStructure("gpt, segments head=3", split).ok());
  EXPECT_TRUE(CheckNamedStructure("gpt", whole).ok());
  EXPECT_THAT(CheckNamedStructure("gpt, segments head=3", whole).message(),
              HasSubstr("a step in one piece with segments head=3, and this "
                        "step is in one piece; give --split head=3"));
  EXPECT_THAT(CheckNamedStructure("gpt", split).message(),
              HasSubstr("give no --split"));
  EXPECT_THAT(
      CheckNamedStructure("a, 2 micro-batches with own statistics", whole)
          .message(),
      HasSubstr("give --allow-micro-batch-statistics and --micro-batches 2"));
  EXPECT_THAT(
      CheckNamedStructure("a, b, 2 micro-batches, segments head=2 mlp.1=4",
                          whole)
          .message(),
      HasSubstr("give --micro-batches 2 and --split head=2 --split mlp.1=4"));
}

TEST(CheckPlanMatches, NamesTheFirstDifference) {
  const Graph graph = StepGraph();
  const planner::Problem problem = ProblemWithTimes(graph);
  const absl::StatusOr<planner::Plan> plan = planner::KeepEverything(problem);
  ASSERT_TRUE(plan.ok()) << plan.status();
  size_t update = 0;
  while (problem.nodes[update].recompute) ++update;

  struct Case {
    std::function<void(planner::Problem&)> change;
    std::string says;
  };
  const Case cases[] = {
      {[](auto& p) { p.values[0].bytes *= 2; },
       "value 0 ('x') is 256 bytes in the plan's problem and 128 bytes here"},
      {[](auto& p) { p.values[1].persistent = false; }, "not persistent"},
      {[](auto& p) { p.values[2].file_id = 77; }, "the id of value 2"},
      {[](auto& p) { p.values.pop_back(); }, "the number of values"},
      {[](auto& p) { std::swap(p.nodes[0].inputs[0], p.nodes[0].inputs[1]); },
       "the inputs of node"},
      {[](auto& p) { p.nodes[1].outputs = p.nodes[0].outputs; },
       "the outputs of node"},
      {[](auto& p) { p.nodes[1].file_id += 50; }, "the id of node 1"},
      {[](auto& p) { p.nodes.pop_back(); }, "the number of nodes"},
      {[](auto& p) { p.outputs.clear(); }, "the list of outputs"},
      {[](auto& p) {
         p.nodes[0].inplace = {{p.nodes[0].inputs[0], p.nodes[0].outputs[0]}};
       },
       "is allowed in the plan's problem and not allowed here"},
      {[&](auto& p) { p.nodes[update].recompute = true; }, "again"},
      {[&](auto& p) { p.nodes[update].inplace.clear(); },
       "is missing in the plan's problem"},
  };
  for (const Case& c : cases) {
    planner::Problem other = problem;
    c.change(other);
    const absl::Status status = CheckPlanMatches(graph, other, *plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << c.says;
    EXPECT_THAT(status.ToString(), HasSubstr(c.says));
    EXPECT_THAT(status.ToString(), HasSubstr("made for another model"));
  }
}

}  // namespace
}  // namespace loadline::passes
