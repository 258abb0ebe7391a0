#include "passes/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/ops/operator.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Graph;
using models::Node;
using ::testing::HasSubstr;

absl::StatusOr<int64_t> Workspace512(const Graph&, const Node&) { return 512; }

planner::Machine Nominal() {
  planner::Machine machine;
  machine.name = "test";
  machine.rates.emplace();
  machine.rates->matmul_flop_per_s["f32"] = 1e9;  // 1 flop per ns
  machine.rates->memory_bytes_per_s = 1e9;        // 1 byte per ns
  machine.rates->launch_ns = 100;
  return machine;
}

// %0 = MatMul(f32[2,8], f32[8,4]), %1 = Relu
Graph ProductAndRelu() {
  Builder b;
  const models::ValueId product =
      b.Op("MatMul", {b.Input("x", {2, 8}), b.Parameter("w", {8, 4})});
  b.Output(b.Op("Relu", {product}));
  return b.graph;
}

TEST(CostFromMachine, TakesTheLargerSideOfTheRoofline) {
  const Graph graph = ProductAndRelu();
  planner::Machine machine = Nominal();
  {
    const CostFunction cost = CostFromMachine(machine, Workspace512);
    const absl::StatusOr<NodeCost> relu = cost(graph, graph.nodes[1]);
    ASSERT_TRUE(relu.ok()) << relu.status();
    // 8 floats read and 8 written: 64 bytes, whatever the flops.
    EXPECT_EQ(relu->time_ns, 100 + 64);
    EXPECT_EQ(relu->workspace_bytes, 512);
    // Bytes (16 + 32 + 8) · 4 = 224 beat 2·2·8·4 = 128 flops.
    EXPECT_EQ(cost(graph, graph.nodes[0])->time_ns, 100 + 224);
  }
  machine.rates->matmul_flop_per_s["f32"] = 1e8;  // 10 ns a flop
  const CostFunction cost = CostFromMachine(machine, Workspace512);
  EXPECT_EQ(cost(graph, graph.nodes[0])->time_ns, 100 + 1280);
}

TEST(CostFromMachine, PrefersWhatWasMeasured) {
  const Graph graph = ProductAndRelu();
  planner::Machine machine = Nominal();
  machine.ops[models::OperatorKey(graph, graph.nodes[1])] = 7;
  const CostFunction cost = CostFromMachine(machine, Workspace512);
  EXPECT_EQ(cost(graph, graph.nodes[1])->time_ns, 7);
  EXPECT_EQ(cost(graph, graph.nodes[0])->time_ns, 324);
}

TEST(CostFromMachine, SaysWhatTheProfileLacks) {
  const Graph graph = ProductAndRelu();
  planner::Machine machine = Nominal();
  machine.rates->matmul_flop_per_s.clear();
  EXPECT_THAT(CostFromMachine(machine, Workspace512)(graph, graph.nodes[0])
                  .status()
                  .ToString(),
              HasSubstr("rates.matmul_flop_per_s.f32"));
  machine.rates.reset();
  const absl::Status status =
      CostFromMachine(machine, Workspace512)(graph, graph.nodes[1]).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.ToString(),
              HasSubstr("'test' has no measured time for Relu 'n1'"));
}

TEST(CostFromMachine, HandsOnTheWorkspaceError) {
  const Graph graph = ProductAndRelu();
  const CostFunction cost = CostFromMachine(
      Nominal(), [](const Graph&, const Node&) -> absl::StatusOr<int64_t> {
        return absl::UnimplementedError("no kernel");
      });
  EXPECT_EQ(cost(graph, graph.nodes[0]).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace loadline::passes
