// Every CUDA kernel, run by the emulator: against the reference, inside its
// buffers, with the same bits whatever thread runs first. Behind products and
// convolutions stand plain loops in the libraries' place.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "models/ops/operator.h"
#include "tests/conformance/harness.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/cuda_emulator/kernels.h"

namespace loadline::conformance {
namespace {

const Backend kEmulated = {cuda_emulator::PrepareKernel,
                           cuda_emulator::RunKernel};

// Half of the distance of two bf16 numbers is 2^-9 of their size, and one more
// for a bit lost before.
constexpr double kBf16Tolerance = 1.0 / 256;

double Bf16Tolerance(const OperatorCase& c) {
  // What only moves elements is exact in any type.
  if (c.tolerance == 0 && c.op != "Cast") return 0;
  // What a bias is added to has been rounded once before.
  if (c.op == "Conv") return 4 * kBf16Tolerance;
  return std::max(c.tolerance, kBf16Tolerance);
}

struct Form {
  std::string name;
  CaseGraph graph;
  double tolerance;
};

// By each algorithm.
void AddForms(const std::string& name, const CaseGraph& c, double tolerance,
              std::vector<Form>* forms) {
  auto cases = WithEachAlgorithm(c, kEmulated);
  ASSERT_TRUE(cases.ok()) << name << ": " << cases.status();
  for (CaseGraph& one : *cases) {
    const std::string algorithm = AlgorithmOf(one);
    forms->push_back({name + " " + algorithm, std::move(one), tolerance});
  }
}

// All forms of all cases.
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

absl::StatusOr<RunResult> RunEmulated(const CaseGraph& c, RunOptions options,
                                      uint64_t order) {
  options.backend = &kEmulated;
  cuda_emulator::SetOrder(order);
  auto result = RunCase(c, options);
  cuda_emulator::SetOrder(0);
  return result;
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
  const Names products = {"down", "up", ""};  // none where there is no sum
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

// Also where they lie; the first of several is named, whatever thread ran
// first.
TEST(CudaKernels, ReportWhatIsWrongInTheData) {
  struct Wrong {
    OperatorCase c;
    absl::StatusCode code;
    std::string message;
  };
  const models::Attributes axis = {{"axis", int64_t{0}}};
  const models::Attributes grad = {{"axis", int64_t{0}},
                                   {"shape", models::Ints{4, 3}}};
  const models::Attributes classes = {{"class_axis", int64_t{1}}};
  for (const Wrong& wrong : std::vector<Wrong>{
           {{"Gather", "", {F32({4, 3}), I64({500}, 4, 9)}, axis},
            absl::StatusCode::kOutOfRange,
            "index at position 0 is outside [0, 4)"},
           {{"GatherGrad", "", {F32({500, 3}), I64({500}, 4, 9)}, grad},
            absl::StatusCode::kOutOfRange,
            "index at position 0 is outside [0, 4)"},
           {{"SoftmaxCrossEntropy", "", {F32({2, 3}), I64({2}, 3, 9)}, classes},
            absl::StatusCode::kOutOfRange,
            "position 0 is not one of 3 classes"},
           {{"SoftmaxCrossEntropyGrad",
             "",
             {F32({}), F32({2, 3}), I32({2}, -9, -1), F32({2})},
             classes},
            absl::StatusCode::kOutOfRange,
            "position 0 is not one of 3 classes"},
           {{"Div", "", {I64({3}, 1, 9), I64({3}, 0, 0)}, {}},
            absl::StatusCode::kInvalidArgument,
            "integer division by zero"}}) {
    SCOPED_TRACE(wrong.c.op);
    const auto graph = MakeCaseGraph(wrong.c, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (uint64_t order : {0, 5}) {
      const auto run = RunEmulated(*graph, {}, order);
      EXPECT_EQ(run.status().code(), wrong.code);
      EXPECT_NE(run.status().message().find(wrong.message),
                absl::string_view::npos)
          << run.status();
    }
  }
}

TEST(Divider, DividesExactlyOnBothSidesOfItsShortWay) {
  const int64_t edge = int64_t{1} << 31;
  std::vector<int64_t> numbers = {edge - 1, edge, edge + 1, edge * 2,
                                  int64_t{1} << 40};
  std::mt19937_64 random(1);
  for (int bits = 1; bits < 34; ++bits) {
    const int64_t power = int64_t{1} << (bits - 1);
    for (int64_t near : {power - 1, power, power + 1}) numbers.push_back(near);
    for (int i = 0; i < 10; ++i) {
      numbers.push_back(static_cast<int64_t>(random() >> (64 - bits)));
    }
  }
  for (int64_t divisor : numbers) {
    if (divisor == 0) continue;
    for (int64_t n : numbers) {
      ASSERT_EQ(cuda_emulator::DivideOnDevice(n, divisor), n / divisor)
          << n << " / " << divisor;
    }
  }
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

TEST(CudaKernels, RefuseTypesAndOperatorsByTheirNames) {
  const auto halves = MakeCaseGraph({"Relu", "", {F32({3})}, {}}, 1);
  ASSERT_TRUE(halves.ok()) << halves.status();
  models::Graph f16 = halves->graph;
  for (models::Value& value : f16.values) {
    value.type.dtype = models::DType::kF16;
  }
  EXPECT_EQ(cuda_emulator::PrepareKernel(f16, f16.nodes[0]).status().message(),
            "no CUDA kernel for Relu of type f16 (node node)");
  models::Graph graph;
  models::Node node;
  node.name = "odd one";
  node.op = "Frobnicate";
  const auto kernel = cuda_emulator::PrepareKernel(graph, node);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(kernel.status().message().find("no CUDA kernel for operator Frob"),
            absl::string_view::npos);
}

// Optimizer cases of all sizes, several of each, f32 and bf16 gradients.
std::map<std::string, std::vector<CaseGraph>> UpdatesByGroup() {
  std::map<std::string, std::vector<CaseGraph>> groups;
  uint64_t seed = 1;
  for (const OperatorCase& c : OperatorCases()) {
    if (c.op != "Sgd" && c.op != "AdamW") continue;
    // "3 nesterov": a number of the case's own, and what it is.
    const size_t space = c.what.find(' ');
    const std::string kind =
        c.op + (space == std::string::npos ? "" : c.what.substr(space));
    for (int64_t n : {1, 3, 1024, 1025, 4099}) {
      OperatorCase sized = c;
      for (std::optional<InputSpec>& input : sized.inputs) {
        if (input.has_value()) input->type.dims = {n};
      }
      const auto graph = MakeCaseGraph(sized, ++seed);
      EXPECT_TRUE(graph.ok()) << graph.status();
      groups[kind].push_back(*graph);
      for (CaseGraph& bf16 : Bf16Forms(*graph)) {
        groups[kind + " bf16"].push_back(std::move(bf16));
      }
    }
  }
  return groups;
}

// One update's memory, and its kernel.
struct Update {
  explicit Update(const CaseGraph& c) {
    auto prepared = cuda_emulator::PrepareKernel(c.graph, c.the_node());
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    kernel = std::move(*prepared);
    for (const Array* input : c.NodeInputs()) {
      inputs.push_back(ToBytes(*input));
      in.push_back(inputs.back().data());
    }
    for (models::ValueId id : c.the_node().outputs) {
      outputs.emplace_back(c.graph.value(id).type.bytes());
    }
    for (auto& output : outputs) out.push_back(output.data());
  }
  executor::KernelArgs args() {
    return {.inputs = in, .outputs = out, .scalars = &scalars};
  }

  executor::StepScalars scalars = TestScalars();
  std::unique_ptr<executor::Kernel> kernel;
  std::deque<std::vector<std::byte>> inputs;
  std::deque<std::vector<std::byte>> outputs;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
};

TEST(CudaKernels, UpdatesInOneLaunchHaveTheBitsOfEachAlone) {
  const auto groups = UpdatesByGroup();
  EXPECT_EQ(groups.size(), 8u);  // two momenta, plain, AdamW; f32 and bf16
  for (const auto& [kind, cases] : groups) {
    SCOPED_TRACE(kind);
    std::vector<std::unique_ptr<Update>> updates;
    std::vector<executor::Kernel*> kernels;
    std::vector<executor::KernelArgs> args;
    for (const CaseGraph& c : cases) {
      updates.push_back(std::make_unique<Update>(c));
      kernels.push_back(updates.back()->kernel.get());
      args.push_back(updates.back()->args());
    }
    const absl::Status status = cuda_emulator::RunGroup(kernels, args);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < cases.size(); ++i) {
      Update alone(cases[i]);
      ASSERT_TRUE(cuda_emulator::RunKernel(*alone.kernel, alone.args()).ok());
      EXPECT_EQ(updates[i]->outputs, alone.outputs);
    }
  }
}

TEST(CudaKernels, UpdatesOfOtherKindsJoinNoGroup) {
  const auto groups = UpdatesByGroup();
  for (const auto& [kind, cases] : groups) {
    for (const auto& [other_kind, others] : groups) {
      Update a(cases[0]);
      Update b(others[1]);
      EXPECT_EQ(cuda_emulator::RunGroup({a.kernel.get(), b.kernel.get()},
                                        {a.args(), b.args()})
                    .ok(),
                kind == other_kind)
          << kind << ", " << other_kind;
    }
  }
}

}  // namespace
}  // namespace loadline::conformance
