// Every operator's kernel against its reference, and the rules that all kernels
// follow: writes only its own bytes, no heap, the same bits every time.
#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "executor/cpu/kernels.h"
#include "gtest/gtest.h"
#include "models/ops/operator.h"
#include "models/storage.h"
#include "tests/conformance/harness.h"

namespace loadline::conformance {
namespace {

using models::DType;

std::vector<OperatorCase> CpuCases() {
  std::vector<OperatorCase> cases = OperatorCases();
  for (OperatorCase& low : LowPrecisionCases()) cases.push_back(std::move(low));
  return cases;
}

// oneDNN allocates blocks on the heap while it runs; see
// executor/cpu/onednn.h.
bool RunsOneDnn(const std::string& op) {
  static const std::set<std::string> ops = {
      "Conv", "ConvInputGrad", "ConvWeightGrad", "MatMul",
      "Gemm", "GemmBiasGrad",  "GemmGeluGrad",   "GemmSum"};
  return ops.count(op) > 0;
}

// Limit of the heap bytes that one call of oneDNN holds at once, on any
// processor and for tensors of any size: packed blocks of operands, per thread.
int64_t MostOneDnnHeapBytes() {
  const int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  return (threads + 1) << 20;
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
    options.repeats = 2;  // thread pools are created on first use
    const auto run = RunCase(*graph, options);
    ASSERT_TRUE(run.ok()) << run.status();
    if (RunsOneDnn(c.op)) {
      EXPECT_LE(run->heap.peak_bytes, MostOneDnnHeapBytes());
    } else {
      EXPECT_EQ(run->heap.allocations, 0);
    }
  }
}

// With 32 examples the operands take 3 to 13 MB.
TEST(CpuKernels, HoldNoMoreHeapForLargerTensors) {
  if (!HeapIsCounted()) GTEST_SKIP() << "this build does not count the heap";
  const auto cases = [](DType dtype, int64_t n) {
    const auto data = [dtype](models::Ints dims) {
      InputSpec spec = F32(std::move(dims), -1, 1);
      spec.type.dtype = dtype;
      return spec;
    };
    const models::Ints pads = {1, 1, 1, 1};
    return std::vector<OperatorCase>{
        {"MatMul", "rows", {data({n * 64, 256}), data({256, 384})}, {}},
        {"MatMul", "sums", {data({64, n * 256}), data({n * 256, 384})}, {}},
        {"Gemm",
         "",
         {data({n * 64, 256}), data({n * 64, 384})},
         {{"transA", int64_t{1}}}},
        {"Conv",
         "",
         {data({n, 32, 28, 28}), data({64, 32, 3, 3})},
         {{"pads", pads}}},
        {"ConvInputGrad",
         "",
         {data({n, 64, 28, 28}), data({64, 32, 3, 3})},
         {{"pads", pads}, {"shape", models::Ints{n, 32, 28, 28}}}},
        {"ConvWeightGrad",
         "",
         {data({n, 64, 28, 28}), data({n, 32, 28, 28})},
         {{"pads", pads}, {"shape", models::Ints{64, 32, 3, 3}}}},
    };
  };
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (const OperatorCase& c : cases(dtype, 32)) {
      SCOPED_TRACE(absl::StrCat(c.Name(), " ", models::DTypeName(dtype)));
      const auto graph = MakeCaseGraph(c, 1);
      ASSERT_TRUE(graph.ok()) << graph.status();
      RunOptions options;
      options.repeats = 2;
      const auto run = RunCase(*graph, options);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_LE(run->heap.peak_bytes, MostOneDnnHeapBytes());
    }
  }
}

// oneDNN pads channels to multiples of 8 or 16, and a width of two would need
// as much as one of sixteen.
TEST(CpuKernels, NeedWorkspaceInProportionToNarrowConvolutions) {
  // Of the kernel's workspace and of its large tensors.
  const auto bytes_of = [](const std::string& op, int64_t channels) {
    const InputSpec x = F32({32, channels, 16, 16}, -1, 1);
    const InputSpec y = F32({32, 2 * channels, 16, 16}, -1, 1);
    const models::Ints weights = {2 * channels, channels, 3, 3};
    const InputSpec w = F32(weights, -1, 1);
    models::Attributes attributes = {{"pads", models::Ints{1, 1, 1, 1}}};
    OperatorCase c = {op, "", {x, w}, attributes};
    if (op == "ConvInputGrad") {
      attributes.Set("shape", x.type.dims);
      c = {op, "", {y, w}, attributes};
    } else if (op == "ConvWeightGrad") {
      attributes.Set("shape", weights);
      c = {op, "", {y, x}, attributes};
    }
    const auto graph = MakeCaseGraph(c, 1);
    EXPECT_TRUE(graph.ok()) << graph.status();
    const auto run = RunCase(*graph, {});
    EXPECT_TRUE(run.ok()) << run.status();
    return std::pair(run->workspace_bytes, x.type.bytes() + y.type.bytes());
  };
  for (const char* op : {"Conv", "ConvInputGrad", "ConvWeightGrad"}) {
    for (const int64_t channels : {1, 2, 4, 8}) {
      const auto [workspace, tensors] = bytes_of(op, channels);
      const int64_t for_weights = int64_t{64} << 10;  // and their partial sums
      EXPECT_LE(workspace, 1.5 * static_cast<double>(tensors) + for_weights)
          << op << " of " << channels << " channels";
    }
  }
}

// Of oneDNN, for images smaller than the kernel on a processor without AVX-512:
// four times the weights for each thread.
TEST(CpuKernels, NeedWorkspaceInProportionToConvolutionsOfSmallImages) {
  struct Shape {
    int64_t batch, in, out, size, stride;
  };
  for (const Shape& s : std::vector<Shape>{{32, 128, 96, 1, 1},
                                           {32, 96, 64, 2, 1},
                                           {16, 64, 128, 2, 2},
                                           {1, 160, 160, 1, 1}}) {
    const int64_t out_size = (s.size - 1) / s.stride + 1;
    const InputSpec x = F32({s.batch, s.in, s.size, s.size}, -1, 1);
    const InputSpec y = F32({s.batch, s.out, out_size, out_size}, -1, 1);
    const models::Ints weights = {s.out, s.in, 3, 3};
    models::Attributes attributes = {{"pads", models::Ints{1, 1, 1, 1}}};
    attributes.Set("strides", models::Ints{s.stride, s.stride});
    attributes.Set("shape", weights);
    const OperatorCase c = {"ConvWeightGrad", "", {y, x}, attributes};
    const auto graph = MakeCaseGraph(c, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto run = RunCase(*graph, {});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_LE(run->workspace_bytes,
              2 * (x.type.bytes() + y.type.bytes() + F32(weights).type.bytes()))
        << s.size << " x " << s.size;
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
