// Optimizer updates of many tensors in one launch, by the emulator.
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness.h"
#include "tests/cuda_emulator/kernels.h"

namespace loadline::conformance {
namespace {

// Optimizer cases of all sizes, several each, with f32 and bf16 gradients.
std::map<std::string, std::vector<CaseGraph>> UpdatesByGroup() {
  std::map<std::string, std::vector<CaseGraph>> groups;
  uint64_t seed = 1;
  for (const OperatorCase& c : OperatorCases()) {
    if (c.op != "Sgd" && c.op != "AdamW" && c.op != "Adam" &&
        c.op != "Adagrad" && c.op != "Lion") {
      continue;
    }
    if (c.what.find(" own") != std::string::npos || c.attributes.Has("start") ||
        c.what.rfind("8 bits", 0) == 0) {
      continue;
    }
    // `what` is "3 nesterov": the number of the case, and its kind.
    const size_t space = c.what.find(' ');
    const std::string kind =
        c.op + (space == std::string::npos ? "" : c.what.substr(space));
    for (int64_t n : {1, 3, 1024, 1025, 4099}) {
      OperatorCase sized = c;
      for (std::optional<InputSpec>& input : sized.inputs) {
        if (input.has_value() && !input->type.dims.empty()) {
          input->type.dims = {n};
        }
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

// The memory of one update, and its kernel.
struct Update {
  explicit Update(const CaseGraph& c) {
    auto prepared = cuda_emulator::PrepareKernel(c.graph, c.the_node());
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    kernel = std::move(*prepared);
    for (const Array* input : c.NodeInputs()) {
      if (input == nullptr) {
        in.push_back(nullptr);
        continue;
      }
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

// Runs the updates in one launch, and each alone.
void ExpectBitsOfEachAlone(const std::vector<CaseGraph>& cases) {
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

TEST(CudaKernels, UpdatesInOneLaunchHaveTheBitsOfEachAlone) {
  const auto groups = UpdatesByGroup();
  // Five of Sgd, two each of AdamW, Adam, Adagrad and Lion; f32 and bf16.
  EXPECT_EQ(groups.size(), 26u);
  for (const auto& [kind, cases] : groups) {
    SCOPED_TRACE(kind);
    ExpectBitsOfEachAlone(cases);
  }
}

TEST(CudaKernels, UpdatesOfPartsInOneLaunchHaveTheBitsOfEachAlone) {
  std::map<std::string, std::vector<CaseGraph>> parts;
  for (const OperatorCase& c : OperatorCases()) {
    if (c.what.rfind("rows from", 0) != 0) continue;
    const auto graph = MakeCaseGraph(c, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    parts[c.op].push_back(*graph);
  }
  EXPECT_EQ(parts.size(), 5u);
  for (const auto& [op, cases] : parts) {
    SCOPED_TRACE(op);
    EXPECT_EQ(cases.size(), 5u);
    ExpectBitsOfEachAlone(cases);
  }
}

TEST(CudaKernels, UpdatesIn8BitsInOneLaunchHaveTheBitsOfEachAlone) {
  std::map<std::string, std::vector<CaseGraph>> groups;
  for (const OperatorCase& c : OperatorCases()) {
    if (c.what.rfind("8 bits", 0) != 0) continue;
    const auto graph = MakeCaseGraph(c, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    groups[c.op].push_back(*graph);
    for (CaseGraph& bf16 : Bf16Forms(*graph)) {
      groups[c.op + " bf16"].push_back(std::move(bf16));
    }
  }
  EXPECT_EQ(groups.size(), 8u);
  for (const auto& [kind, cases] : groups) {
    SCOPED_TRACE(kind);
    ExpectBitsOfEachAlone(cases);
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

TEST(CudaKernels, UpdatesWithTheirOwnLearningRateJoinNoGroup) {
  int tried = 0;
  for (const OperatorCase& c : OperatorCases()) {
    if (c.what.find(" own 30") == std::string::npos) continue;
    const auto graph = MakeCaseGraph(c, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    Update a(*graph);
    Update b(*graph);
    EXPECT_FALSE(cuda_emulator::RunGroup({a.kernel.get(), b.kernel.get()},
                                         {a.args(), b.args()})
                     .ok())
        << c.Name();
    ++tried;
  }
  EXPECT_EQ(tried, 12);
}

}  // namespace
}  // namespace loadline::conformance
