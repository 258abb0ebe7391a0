// What a training step keeps of parameters that are not trained.
#include <gtest/gtest.h>

#include "executor/cpu/device.h"
#include "models/graph.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

PlannedStep Mlp(const std::vector<std::string>& freeze) {
  StepFlags flags;
  flags.model.model = "models/zoo/mlp.onnx";
  flags.model.freeze = freeze;
  flags.plan.machine = "tests/tools/machine.json";
  executor::CpuDevice device;
  auto step = PoseTrainingStep(flags, device, nullptr);
  EXPECT_TRUE(step.ok()) << step.status();
  return step.ok() ? *std::move(step) : PlannedStep{};
}

int64_t BytesOf(const models::Graph& step, models::ValueKind kind) {
  int64_t bytes = 0;
  for (const models::Value& value : step.values) {
    if (value.kind == kind) bytes += value.type.bytes();
  }
  return bytes;
}

TEST(FrozenWeights, HaveNoGradientAndNoOptimizerState) {
  const PlannedStep all = Mlp({});
  const PlannedStep head = Mlp({"fc1.*", "fc2.*"});
  // fc3 has 10 rows of 128 weights, and 10 biases.
  const int64_t kHeadBytes = 4 * (10 * 128 + 10);
  using models::ValueKind;
  EXPECT_EQ(BytesOf(head.graph, ValueKind::kParameter), kHeadBytes);
  // Two moments each.
  EXPECT_EQ(BytesOf(head.graph, ValueKind::kState), 2 * kHeadBytes);
  EXPECT_EQ(head.graph.updates.size(), 6u);
  EXPECT_LT(head.graph.nodes.size(), all.graph.nodes.size());
  EXPECT_LT(head.keep_everything.predicted.peak_bytes,
            all.keep_everything.predicted.peak_bytes / 2);
}

}  // namespace
}  // namespace loadline::tools
