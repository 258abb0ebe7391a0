// Every CUDA kernel, run by the emulator: against the reference, inside its
// buffers, and with the same bits in any order of threads. Plain loops take the
// place of the libraries' products and convolutions.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/operator.h"
#include "tests/conformance/cuda_emulated.h"
#include "tests/conformance/harness.h"
#include "tests/cuda_emulator/kernels.h"

namespace loadline::conformance {
namespace {

// A bf16 number has 8 bits, so it is rounded by at most 2^-8 of its size.
constexpr double kBf16Tolerance = 1.0 / 256;

double Bf16Tolerance(const OperatorCase& c) {
  // Operators that only move elements are exact in any type.
  if (c.tolerance == 0 && c.op != "Cast") return 0;
  // The result is rounded once before the bias is added.
  if (c.op == "Conv") return 4 * kBf16Tolerance;
  // The product is rounded where the slope is multiplied apart.
  if (c.op == "GemmGeluGrad") return 2 * kBf16Tolerance;
  return std::max(c.tolerance, kBf16Tolerance);
}

// A case in one type of elements, prepared with one algorithm.
struct Form {
  std::string name;
  CaseGraph graph;
  double tolerance;
};

// Adds `c` with each of the algorithms that its kernel offers.
void AddForms(const std::string& name, const CaseGraph& c, double tolerance,
              std::vector<Form>* forms) {
  auto cases = WithEachAlgorithm(c, kEmulated);
  ASSERT_TRUE(cases.ok()) << name << ": " << cases.status();
  for (CaseGraph& one : *cases) {
    const std::string algorithm = AlgorithmOf(one);
    forms->push_back({name + " " + algorithm, std::move(one), tolerance});
  }
}

// Every case, in f32 and bf16, with every algorithm.
const std::vector<Form>& Forms() {
  static const auto* all = [] {
    auto* forms = new std::vector<Form>;
    uint64_t seed = 1;
    for (const OperatorCase& c : OperatorCases()) {
      const auto graph = MakeCaseGraph(c, ++seed);
      EXPECT_TRUE(graph.ok()) << graph.status();
      for (const CaseGraph& bf16 : Bf16Forms(*graph)) {
        AddForms(c.Name() + " bf16", bf16, Bf16Tolerance(c), forms);
      }
      AddForms(c.Name(), *graph, c.tolerance, forms);
    }
    return forms;
  }();
  return *all;
}

TEST(CudaKernels, EveryOperatorThatRunsHasAKernel) {
  for (const models::Operator* op : models::AllOperators()) {
    const std::string name(op->name);
    EXPECT_EQ(cuda_emulator::HasKernel(name), !op->view) << name;
  }
}

// So that the tests below run every algorithm, in both layouts.
TEST(CudaKernels, OfferWhatTheLibrariesHave) {
  std::map<std::string, std::set<std::string>> offered;
  for (const Form& form : Forms()) {
    const models::Graph& graph = form.graph.graph;
    const std::string type(models::DTypeName(graph.values[0].type.dtype));
    offered[form.graph.the_node().op + " " + type].insert(
        AlgorithmOf(form.graph));
  }
  using Names = std::set<std::string>;
  const Names products = {"down", "up", ""};  // "" for an empty sum
  EXPECT_EQ(offered["MatMul f32"], products);
  EXPECT_EQ(offered["Gemm bf16"], (Names{"down", "up"}));
  const Names apart = {"apart down", "apart up"};
  const Names both = {"apart down", "apart up", "joined down", "joined up"};
  for (const char* op : {"GemmBiasGrad", "GemmGeluGrad"}) {
    EXPECT_EQ(offered[std::string(op) + " f32"], apart) << op;
    EXPECT_EQ(offered[std::string(op) + " bf16"], both) << op;
  }
  EXPECT_EQ(offered["Conv f32"], (Names{"nchw down", "nchw up"}));
  for (const char* op : {"Conv", "ConvInputGrad", "ConvWeightGrad"}) {
    EXPECT_EQ(offered[std::string(op) + " bf16"],
              (Names{"nchw down", "nchw up", "nhwc down", "nhwc up"}));
  }
  const Names none = {""};
  EXPECT_EQ(offered["Attention f32"], none);
  for (const char* op : {"Attention bf16", "AttentionGrad bf16"}) {
    EXPECT_EQ(offered[op], (Names{"", "cudnn up", "own"}));
  }
}

TEST(CudaKernels, AgreeWithTheReferenceInsideTheirBuffers) {
  for (const Form& form : Forms()) {
    SCOPED_TRACE(form.name);
    const auto run = RunEmulated(form.graph, {}, 0);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(run->intact);
    EXPECT_TRUE(run->inputs_unchanged);
    const std::vector<Array> want =
        ReferenceOutputs(form.graph, form.graph.NodeInputs());
    for (size_t i = 0; i < want.size(); ++i) {
      const models::ValueId id = form.graph.the_node().outputs[i];
      ExpectClose(
          ToArray(form.graph.graph.value(id).type, run->outputs[i].data()),
          want[i], form.tolerance);
    }
  }
}

TEST(CudaKernels, GiveTheSameBitsInAnyOrderOfThreadsAndAnywhere) {
  for (const Form& form : Forms()) {
    SCOPED_TRACE(form.name);
    const auto first = RunEmulated(form.graph, {}, 0);
    RunOptions elsewhere;
    elsewhere.shift = 64;
    const auto again = RunEmulated(form.graph, elsewhere, 3);
    ASSERT_TRUE(first.ok() && again.ok()) << first.status() << again.status();
    EXPECT_EQ(first->outputs, again->outputs);
    EXPECT_TRUE(again->intact);
  }
}

TEST(CudaKernels, GiveTheSameBitsInPlace) {
  int runs = 0;
  for (const Form& form : Forms()) {
    SCOPED_TRACE(form.name);
    RunOptions options;
    options.inplace = InplacePairs(form.graph);
    if (options.inplace.empty()) continue;
    const auto apart = RunEmulated(form.graph, {}, 0);
    const auto inplace = RunEmulated(form.graph, options, 4);
    ASSERT_TRUE(apart.ok() && inplace.ok());
    EXPECT_EQ(apart->outputs, inplace->outputs);
    EXPECT_TRUE(inplace->intact);
    EXPECT_TRUE(inplace->inputs_unchanged);
    ++runs;
  }
  EXPECT_GT(runs, 100);
}

TEST(CudaKernels, DrawTheDropoutOfTheCpu) {
  int runs = 0;
  for (const Form& form : Forms()) {
    if (form.graph.the_node().op != "Dropout") continue;
    if (form.graph.inputs[0].type.dtype != models::DType::kF32) continue;
    SCOPED_TRACE(form.name);
    const auto cpu = RunCase(form.graph, {});
    const auto emulated = RunEmulated(form.graph, {}, 0);
    ASSERT_TRUE(cpu.ok() && emulated.ok());
    EXPECT_EQ(cpu->outputs, emulated->outputs);
    ++runs;
  }
  EXPECT_GT(runs, 10);
}

TEST(CudaKernels, RefuseAnyOneValueOfATypeTheyDoNotTake) {
  for (const Form& form : Forms()) {
    SCOPED_TRACE(form.name);
    for (size_t i = 0; i < form.graph.graph.values.size(); ++i) {
      models::Graph graph = form.graph.graph;
      models::DType& dtype = graph.values[i].type.dtype;
      if (dtype != models::DType::kF32 && dtype != models::DType::kBF16) {
        continue;
      }
      dtype = models::DType::kF64;
      EXPECT_EQ(
          cuda_emulator::PrepareKernel(graph, graph.nodes[0]).status().code(),
          absl::StatusCode::kUnimplemented)
          << "value " << i;
    }
  }
}
}  // namespace
}  // namespace loadline::conformance
