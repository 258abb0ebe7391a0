// Updates in parts: the weights of whole updates, bit for bit, in fewer bytes.
#include "passes/cut_updates.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "executor/cpu/device.h"
#include "executor/program/program.h"
#include "passes/make_problem.h"
#include "passes/training_pipeline.h"
#include "planner/solve/solve.h"

namespace loadline {
namespace {

// 64 rows are whole blocks of states in 8 bits, and one row is none.
constexpr int64_t kRows = 517, kWidth = 36, kBatch = 4;
constexpr int64_t kTableBytes = kRows * kWidth * 4;

std::vector<float> Numbers(int64_t count, uint32_t seed) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    numbers.push_back(static_cast<float>(seed >> 8) / (1 << 24) - 0.5f);
  }
  return numbers;
}

models::Tensor Parameter(const std::vector<int64_t>& dims, uint32_t seed) {
  const models::TensorType type{models::DType::kF32, dims};
  return models::MakeTensor(type, Numbers(type.elements(), seed).data());
}

// The step of a large product and a small one.
models::Graph Step(passes::OptimizerKind optimizer, int64_t state_bits) {
  models::Graph graph;
  const auto x = graph.AddInput("x", {models::DType::kF32, {kBatch, kRows}});
  const auto w = graph.AddParameter("w", Parameter({kRows, kWidth}, 1));
  const auto v = graph.AddParameter("v", Parameter({kWidth, 5}, 2));
  const auto h = graph.AddNode("MatMul", "h", {x, w});
  EXPECT_TRUE(h.ok()) << h.status();
  const auto y = graph.AddNode("MatMul", "y", {(*h)[0], v});
  EXPECT_TRUE(y.ok()) << y.status();
  graph.outputs = {(*y)[0]};
  passes::TrainingOptions options;
  options.loss.target = {models::DType::kI64, {kBatch}};
  options.optimizer.kind = optimizer;
  options.optimizer.state_bits = state_bits;
  options.optimizer.momentum = 0.9;
  options.optimizer.clip_norm = 0.5;
  auto step = passes::BuildTrainingStep(std::move(graph), options, {});
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

planner::Problem ProblemOf(const models::Graph& step,
                           executor::Device& device) {
  passes::MakeProblemOptions options;
  options.machine.emplace();
  options.machine->name = "test";
  options.machine->device_bytes = int64_t{1} << 30;
  options.machine->host_bytes = int64_t{1} << 30;
  options.machine->d2h = options.machine->h2d = {.bytes_per_s = 1e9};
  options.cost =
      [&](const models::Graph& graph,
          const models::Node& node) -> absl::StatusOr<passes::NodeCost> {
    const auto kernel = device.Prepare(graph, node);
    if (!kernel.ok()) return kernel.status();
    return passes::NodeCost{.time_ns = 1000,
                            .workspace_bytes = (*kernel)->workspace_bytes()};
  };
  auto problem = passes::MakeProblem(step, options);
  EXPECT_TRUE(problem.ok()) << problem.status();
  return *std::move(problem);
}

// The weights after five steps.
std::vector<std::byte> Train(const models::Graph& step,
                             const planner::Problem& problem,
                             const planner::Plan& plan) {
  executor::CpuDevice device;
  const auto program = executor::Load(step, problem, plan, device, {});
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  const std::vector<float> x = Numbers(kBatch * kRows, 3);
  const std::vector<int64_t> target = {0, 4, 2, 1};
  for (int64_t i = 1; i <= 5; ++i) {
    const absl::Status ran =
        (*program)->Run({.learning_rate = 0.01f, .step = i},
                        {{reinterpret_cast<const std::byte*>(x.data()),
                          reinterpret_cast<const std::byte*>(target.data())}});
    EXPECT_TRUE(ran.ok()) << ran;
  }
  std::vector<std::byte> weights(kTableBytes);
  EXPECT_TRUE((*program)->ReadPersistent("w", absl::MakeSpan(weights)).ok());
  return weights;
}

struct Case {
  passes::OptimizerKind optimizer;
  int64_t state_bits = 32;
};

class CutUpdates : public testing::TestWithParam<Case> {};

TEST_P(CutUpdates, HaveTheBitsOfWholeOnesUnderEveryPlan) {
  executor::CpuDevice device;
  const auto [optimizer, state_bits] = GetParam();
  const models::Graph whole = Step(optimizer, state_bits);
  models::Graph cut = whole;
  ASSERT_TRUE(passes::CutUpdates(cut, 250 * state_bits).ok());
  ASSERT_EQ(cut.nodes.size(), whole.nodes.size() + 7);
  const planner::Problem whole_problem = ProblemOf(whole, device);
  const planner::Problem problem = ProblemOf(cut, device);
  const auto kept = planner::KeepEverything(whole_problem);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const auto expected = Train(whole, whole_problem, *kept);
  const auto kept_cut = planner::KeepEverything(problem);
  ASSERT_TRUE(kept_cut.ok()) << kept_cut.status();
  EXPECT_EQ(Train(cut, problem, *kept_cut), expected);

  const planner::SolveOptions options = {.work_limit = 100'000};
  const auto least = planner::SolveSmallest(whole_problem, options);
  const auto least_cut = planner::SolveSmallest(problem, options);
  ASSERT_TRUE(least.ok()) << least.status();
  ASSERT_TRUE(least_cut.ok()) << least_cut.status();
  EXPECT_EQ(Train(cut, problem, *least_cut), expected);
  // States in 8 bits are too few of these bytes to tell.
  if (state_bits == 8) return;
  // Seven of eight parts of each state are on the host.
  const int64_t states = optimizer == passes::OptimizerKind::kAdamW ? 2 : 1;
  EXPECT_LE(least_cut->arena_bytes,
            least->arena_bytes - kTableBytes * states * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, CutUpdates,
                         testing::Values(Case{passes::OptimizerKind::kSgd},
                                         Case{passes::OptimizerKind::kAdamW},
                                         Case{passes::OptimizerKind::kAdagrad},
                                         Case{passes::OptimizerKind::kLion},
                                         Case{passes::OptimizerKind::kSgd, 8},
                                         Case{passes::OptimizerKind::kAdam, 8},
                                         Case{passes::OptimizerKind::kAdamW,
                                              8}));

}  // namespace
}  // namespace loadline
