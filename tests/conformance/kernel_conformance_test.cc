// Every operator's kernel against its reference, and what every kernel owes
// its caller: its bytes only, no heap, the same bits every time.
#include <set>

#include "executor/cpu/kernels.h"
#include "gtest/gtest.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "tests/conformance/harness.h"

namespace loadline::conformance {
namespace {

std::vector<OperatorCase> CpuCases() {
  std::vector<OperatorCase> cases = OperatorCases();
  for (OperatorCase& low : LowPrecisionCases()) cases.push_back(std::move(low));
  return cases;
}

// oneDNN's execute keeps its own small books on the heap; see
// executor/cpu/onednn.h.
bool RunsOneDnn(const std::string& op) {
  static const std::set<std::string> ops = {
      "Conv", "ConvInputGrad", "ConvWeightGrad", "MatMul",
      "Gemm", "GemmBiasGrad",  "GemmGeluGrad"};
  return ops.count(op) > 0;
}
int64_t OneDnnHeapBytes(const OperatorCase& c) {
  // Grouped convolutions of few channels take more, products without AVX-512
  // 100 KiB.
  if (c.attributes.Int("group", 1) > 1) return 1 << 20;
  return __builtin_cpu_supports("avx512f") != 0 ? 32 << 10 : 128 << 10;
}

TEST(CpuKernels, EveryOperatorThatRunsHasAKernelAndACase) {
  std::set<std::string> with_case;
  for (const OperatorCase& c : OperatorCases()) with_case.insert(c.op);
  for (const models::Operator* op : models::AllOperators()) {
    const std::string name(op->name);
    if (op->view) {
      EXPECT_FALSE(executor::HasCpuKernel(name)) << name;
      continue;
    }
    EXPECT_TRUE(executor::HasCpuKernel(name)) << name;
    EXPECT_EQ(with_case.count(name), 1u) << name;
  }
}

TEST(CpuKernels, AgreeWithTheReference) {
  uint64_t seed = 1;
  for (const OperatorCase& c : CpuCases()) {
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, ++seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto run = RunCase(*graph, {});
    ASSERT_TRUE(run.ok()) << run.status();
    const std::vector<Array> want =
        ReferenceOutputs(*graph, graph->NodeInputs());
    for (size_t i = 0; i < want.size(); ++i) {
      const models::ValueId id = graph->the_node().outputs[i];
      ExpectClose(ToArray(graph->graph.value(id).type, run->outputs[i].data()),
                  want[i], c.tolerance);
    }
  }
}

TEST(CpuKernels, TouchNothingOutsideTheirBuffers) {
  uint64_t seed = 1;
  for (const OperatorCase& c : CpuCases()) {
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, ++seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto run = RunCase(*graph, {});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(run->intact);
    EXPECT_TRUE(run->inputs_unchanged);
  }
}

TEST(CpuKernels, GiveTheSameBitsAgainAndAnywhere) {
  uint64_t seed = 1;
  for (const OperatorCase& c : CpuCases()) {
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, ++seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    RunOptions options;
    const auto first = RunCase(*graph, options);
    options.repeats = 3;
    options.shift = 64;
    const auto again = RunCase(*graph, options);
    ASSERT_TRUE(first.ok() && again.ok()) << first.status() << again.status();
    EXPECT_EQ(first->outputs, again->outputs);
  }
}

TEST(CpuKernels, GiveTheSameBitsInPlace) {
  uint64_t seed = 1;
  int runs = 0;
  for (const OperatorCase& c : CpuCases()) {
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, ++seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    RunOptions options;
    options.inplace = InplacePairs(*graph);
    if (options.inplace.empty()) continue;
    const auto apart = RunCase(*graph, {});
    const auto inplace = RunCase(*graph, options);
    ASSERT_TRUE(apart.ok() && inplace.ok());
    EXPECT_EQ(apart->outputs, inplace->outputs);
    EXPECT_TRUE(inplace->intact);
    EXPECT_TRUE(inplace->inputs_unchanged);
    ++runs;
  }
  EXPECT_GT(runs, 50);
}

TEST(CpuKernels, AllocateNothingWhileTheyRun) {
  if (!HeapIsCounted()) GTEST_SKIP() << "this build does not count the heap";
  uint64_t seed = 1;
  for (const OperatorCase& c : CpuCases()) {
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, ++seed);
    ASSERT_TRUE(graph.ok()) << graph.status();
    RunOptions options;
    options.repeats = 2;  // thread pools are made on first use
    const auto run = RunCase(*graph, options);
    ASSERT_TRUE(run.ok()) << run.status();
    if (RunsOneDnn(c.op)) {
      EXPECT_LE(run->allocated_bytes, OneDnnHeapBytes(c));
    } else {
      EXPECT_EQ(run->allocations, 0);
    }
  }
}

TEST(CpuKernels, RefuseIndicesAndTargetsOutOfRange) {
  const std::vector<OperatorCase> cases = {
      {"Gather", "", {F32({4, 3}), I64({2}, 4, 9)}, {{"axis", int64_t{0}}}},
      {"GatherGrad",
       "",
       {F32({2, 3}), I64({2}, 4, 9)},
       {{"axis", int64_t{0}}, {"shape", models::Ints{4, 3}}}},
      {"SoftmaxCrossEntropy",
       "",
       {F32({2, 3}), I64({2}, 3, 9)},
       {{"class_axis", int64_t{1}}}},
      {"SoftmaxCrossEntropy",
       "negative",
       {F32({2, 3}), I64({2}, -9, -1)},
       {{"class_axis", int64_t{1}}}},
  };
  for (const OperatorCase& c : cases) {
    SCOPED_TRACE(c.Name());
    const auto graph = MakeCaseGraph(c, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto run = RunCase(*graph, {});
    EXPECT_EQ(run.status().code(), absl::StatusCode::kOutOfRange);
  }
}

TEST(CpuKernels, RefuseIntegerDivisionByZero) {
  const OperatorCase c = {"Div", "", {I64({3}, 1, 9), I64({3}, 0, 0)}, {}};
  const auto graph = MakeCaseGraph(c, 1);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(RunCase(*graph, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PrepareCpuKernel, NamesAnOperatorItDoesNotKnow) {
  models::Graph graph;
  models::Node node;
  node.name = "odd one";
  node.op = "Frobnicate";
  const auto kernel = executor::PrepareCpuKernel(graph, node);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(kernel.status().message().find("Frobnicate"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace loadline::conformance
