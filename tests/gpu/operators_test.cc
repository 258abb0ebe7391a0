// Every operator on the GPU: compared with the CPU's kernel in f32 and with the
// reference in bf16, within its operands, twice with the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/harness.h"
#include "tests/gpu/gpu_backend.h"

namespace loadline::conformance {
namespace {

// Additional tolerance of f32 results against the CPU's, because another order
// of sums differs by more than one rounding.
constexpr double kF32Tolerance = 2e-5;
constexpr double kBf16Tolerance = 1.0 / 256;

absl::StatusOr<RunResult> RunOnGpu(const CaseGraph& c) {
  RunOptions options;
  options.backend = &kGpu;
  return RunCase(c, options);
}

Array Output(const CaseGraph& c, const RunResult& run, size_t i) {
  return ToArray(c.graph.value(c.the_node().outputs[i]).type,
                 run.outputs[i].data());
}

// A case that is exact on the CPU must be exact here too.
double Tolerance(const OperatorCase& c, double of_type) {
  // The result is rounded once before the bias is added.
  if (c.op == "Conv") of_type *= 4;
  // The product may be rounded before the slope multiplies it.
  if (c.op == "GemmGeluGrad") of_type *= 2;
  return c.tolerance == 0 && c.op != "Cast" ? 0
                                            : std::max(c.tolerance, of_type);
}

// Cases of one operator. Each test can run in a process of its own
// (tools/dev/gpu_check), because a fault of one kernel makes the process
// unusable.
class GpuOperators : public testing::TestWithParam<std::string> {
 protected:
  // With the seed of its data, so that the data do not depend on other tests.
  static std::vector<std::pair<OperatorCase, uint64_t>> Cases() {
    std::vector<std::pair<OperatorCase, uint64_t>> cases;
    uint64_t seed = 1;
    for (const OperatorCase& c : OperatorCases()) {
      ++seed;
      if (c.op == GetParam()) cases.emplace_back(c, seed);
    }
    return cases;
  }
};

// Runs the case twice; the results must be bit-identical.
absl::StatusOr<RunResult> RunTwice(const CaseGraph& form) {
  auto got = RunOnGpu(form);
  if (!got.ok()) return got;
  const auto again = RunOnGpu(form);
  if (!again.ok()) return again;
  EXPECT_EQ(again->outputs, got->outputs);
  return got;
}

TEST_P(GpuOperators, AgreeWithTheCpu) {
  for (const auto& [c, seed] : Cases()) {
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto want = RunCase(*graph, {});
    ASSERT_TRUE(want.ok()) << want.status();
    const auto forms = WithEachAlgorithm(*graph, kGpu);
    ASSERT_TRUE(forms.ok()) << forms.status();
    for (const CaseGraph& form : *forms) {
      SCOPED_TRACE(AlgorithmOf(form));
      const auto got = RunTwice(form);
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok()) continue;
      for (size_t i = 0; i < want->outputs.size(); ++i) {
        ExpectClose(Output(form, *got, i), Output(*graph, *want, i),
                    Tolerance(c, kF32Tolerance));
      }
    }
  }
}

TEST_P(GpuOperators, AgreeWithTheReferenceInBf16) {
  for (const auto& [c, seed] : Cases()) {
    const auto graph = MakeCaseGraph(c, seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (const CaseGraph& bf16 : Bf16Forms(*graph)) {
      SCOPED_TRACE(c.Name());
      const auto forms = WithEachAlgorithm(bf16, kGpu);
      ASSERT_TRUE(forms.ok()) << forms.status();
      const std::vector<Array> want = ReferenceOutputs(bf16, bf16.NodeInputs());
      for (const CaseGraph& form : *forms) {
        SCOPED_TRACE(AlgorithmOf(form));
        const auto got = RunTwice(form);
        EXPECT_TRUE(got.ok()) << got.status();
        if (!got.ok()) continue;
        for (size_t i = 0; i < want.size(); ++i) {
          ExpectClose(Output(form, *got, i), want[i],
                      Tolerance(c, kBf16Tolerance));
        }
      }
    }
  }
}

std::vector<std::string> Operators() {
  std::set<std::string> operators;
  for (const OperatorCase& c : OperatorCases()) operators.insert(c.op);
  return {operators.begin(), operators.end()};
}

INSTANTIATE_TEST_SUITE_P(All, GpuOperators, testing::ValuesIn(Operators()),
                         [](const auto& info) { return info.param; });

// Model sizes, for which the library splits sums among blocks.
TEST(GpuGradients, JoinedHaveTheSameBitsAgainAtFullSize) {
  const std::vector<OperatorCase> cases = {
      {"GemmBiasGrad",
       "linear layer",
       {F32({8192, 768}), F32({8192, 768})},
       {{"transA", int64_t{1}}, {"dy", std::string("a")}}},
      {"GemmBiasGrad",
       "dy on the right",
       {F32({8192, 768}), F32({8192, 768})},
       {{"transA", int64_t{1}}, {"dy", std::string("b")}}},
      {"GemmGeluGrad",
       "linear layer",
       {F32({2048, 768}), F32({768, 3072}), F32({2048, 3072})},
       {{"approximate", std::string("tanh")}}}};
  for (const OperatorCase& c : cases) {
    const auto graph = MakeCaseGraph(c, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (const CaseGraph& bf16 : Bf16Forms(*graph)) {
      const auto forms = WithEachAlgorithm(bf16, kGpu);
      ASSERT_TRUE(forms.ok()) << forms.status();
      for (const CaseGraph& form : *forms) {
        SCOPED_TRACE(c.Name() + " " + AlgorithmOf(form));
        const auto got = RunOnGpu(form);
        ASSERT_TRUE(got.ok()) << got.status();
        for (int i = 0; i < 3; ++i) {
          const auto again = RunOnGpu(form);
          ASSERT_TRUE(again.ok()) << again.status();
          EXPECT_EQ(again->outputs, got->outputs);
        }
      }
    }
  }
}

}  // namespace
}  // namespace loadline::conformance
