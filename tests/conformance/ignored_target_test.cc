// Targets without a class: torch's ignore_index. On the CPU and on the emulated
// GPU, in contiguous and in strided lines, f32 and bf16.
#include "executor/device/ignored_target.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/conformance/cuda_emulated.h"
#include "tests/conformance/harness.h"

namespace loadline::conformance {
namespace {

using models::DType;
using models::Ints;

// The case with every third target ignored, from the second on.
CaseGraph WithIgnored(const OperatorCase& c, size_t target) {
  absl::StatusOr<CaseGraph> graph = MakeCaseGraph(c, 7);
  EXPECT_TRUE(graph.ok()) << graph.status();
  Array& targets = graph->inputs[target];
  for (size_t i = 1; i < targets.values.size(); i += 3) {
    targets.values[i] = executor::kIgnoredTarget;
  }
  return *std::move(graph);
}

void ExpectReference(const CaseGraph& graph, double tolerance) {
  const std::vector<Array> want = ReferenceOutputs(graph, graph.NodeInputs());
  const auto cpu = RunCase(graph, {});
  const auto cuda = RunEmulated(graph, {}, 0);
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  for (size_t i = 0; i < want.size(); ++i) {
    const models::TensorType& type =
        graph.graph.value(graph.the_node().outputs[i]).type;
    ExpectClose(ToArray(type, cpu->outputs[i].data()), want[i], tolerance);
    ExpectClose(ToArray(type, cuda->outputs[i].data()), want[i], tolerance);
  }
}

TEST(IgnoredTargets, DoNotCountInTheMean) {
  for (const Ints& logits : std::vector<Ints>{{8, 5}, {2, 5, 3, 4}}) {
    Ints target = logits;
    target.erase(target.begin() + 1);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      InputSpec x = F32(logits, -6, 6);
      x.type.dtype = dtype;
      const double tolerance = dtype == DType::kF32 ? 1e-5 : 1.0 / 256;
      const models::Attributes axis = {{"class_axis", int64_t{1}}};
      ExpectReference(
          WithIgnored({"SoftmaxCrossEntropy", "", {x, I64(target, 0, 4)}, axis},
                      1),
          tolerance);
      ExpectReference(
          WithIgnored({"SoftmaxCrossEntropyGrad",
                       "",
                       {F32({}), x, I64(target, 0, 4), F32(target, 3, 8)},
                       axis},
                      2),
          tolerance);
    }
  }
}

// F.cross_entropy([[1, 2], [3, 5], [0, 0]], [0, -100, 1]) in torch 2.15.
TEST(IgnoredTargets, GiveTorchsLoss) {
  absl::StatusOr<CaseGraph> graph =
      MakeCaseGraph({"SoftmaxCrossEntropy",
                     "",
                     {F32({3, 2}), I64({3}, 0, 1)},
                     {{"class_axis", int64_t{1}}}},
                    1);
  ASSERT_TRUE(graph.ok()) << graph.status();
  graph->inputs[0].values = {1, 2, 3, 5, 0, 0};
  graph->inputs[1].values = {0, executor::kIgnoredTarget, 1};
  const auto run = RunCase(*graph, {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NEAR(ToArray({DType::kF32, {}}, run->outputs[0].data()).values[0],
              1.0032044340, 1e-6);
}

}  // namespace
}  // namespace loadline::conformance
