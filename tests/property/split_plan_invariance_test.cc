// Law 2 for steps whose chains run in segments: every plan of one structure
// gives the same bits, in an arena where slices are views.
#include <gtest/gtest.h>

#include "executor/cpu/device.h"
#include "planner/solve/solve.h"
#include "tests/property/random_network.h"

namespace loadline {
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kWidth = 48;
constexpr int64_t kWide = 640;

models::ValueId Add(models::Graph& graph, const char* op,
                    std::vector<models::ValueId> inputs,
                    models::Attributes attributes = {}) {
  auto made = graph.AddNode(op, "n", std::move(inputs), std::move(attributes));
  EXPECT_TRUE(made.ok()) << made.status();
  return (*made)[0];
}

models::ValueId Parameter(models::Graph& graph, std::vector<int64_t> dims) {
  models::TensorType type{models::DType::kF32, std::move(dims)};
  std::vector<float> values(static_cast<size_t>(type.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 37) % 101) * 2e-3f - 0.1f;
  }
  return graph.AddParameter("p", models::MakeTensor(type, values.data()));
}

models::ValueId Linear(models::Graph& graph, models::ValueId x, int64_t from,
                       int64_t to) {
  return Add(graph, "Add",
             {Add(graph, "MatMul", {x, Parameter(graph, {from, to})}),
              Parameter(graph, {to})});
}

// Two wide blocks and a wide head.
models::Graph Model() {
  models::Graph graph;
  models::ValueId x =
      graph.AddInput("x", {models::DType::kF32, {kRows, kWidth}});
  for (int block = 0; block < 2; ++block) {
    const models::ValueId h =
        Add(graph, "Gelu", {Linear(graph, x, kWidth, kWide)});
    x = Add(graph, "Add", {x, Linear(graph, h, kWide, kWidth)});
  }
  graph.outputs = {Linear(graph, x, kWidth, kWide)};
  return graph;
}

TEST(SplitSteps, HaveTheSameBitsAtEveryBudget) {
  for (const std::vector<passes::Split>& splits :
       {std::vector<passes::Split>{{"head", 3}},
        std::vector<passes::Split>{{"head", 4}, {"mlp", 2}, {"mlp.1", 5}}}) {
    const auto step = MakeStep(Model(), splits);
    ASSERT_TRUE(step.ok()) << step.status();
    const auto keep = planner::KeepEverything(step->problem);
    ASSERT_TRUE(keep.ok()) << keep.status();
    planner::SolveOptions options;
    options.work_limit = 20'000;
    options.bound_work_limit = 0;
    const auto smallest = planner::SolveSmallest(step->problem, options);
    ASSERT_TRUE(smallest.ok()) << smallest.status();
    options.budget_bytes = (smallest->budget_bytes + keep->budget_bytes) / 2;
    const auto between = planner::Solve(step->problem, options);
    ASSERT_TRUE(between.ok()) << between.status();
    std::vector<std::vector<std::byte>> weights;
    for (const planner::Plan* plan : {&*keep, &*smallest, &*between}) {
      executor::CpuDevice device;
      const auto trained = TrainNetwork(*step, *plan, device, /*count=*/3);
      ASSERT_TRUE(trained.ok()) << trained.status();
      weights.push_back(*trained);
    }
    EXPECT_TRUE(weights[0] == weights[1]);
    EXPECT_TRUE(weights[0] == weights[2]);
  }
}

TEST(SplitSteps, NeedFewerBytes) {
  const auto whole = MakeStep(Model(), {});
  const auto split = MakeStep(Model(), {{"head", 4}});
  ASSERT_TRUE(whole.ok() && split.ok()) << whole.status() << split.status();
  const auto before = planner::KeepEverything(whole->problem);
  const auto after = planner::KeepEverything(split->problem);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_LE(after->budget_bytes, before->budget_bytes);
}

}  // namespace
}  // namespace loadline
