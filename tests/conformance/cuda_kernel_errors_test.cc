// What CUDA kernels refuse when they are prepared, and what they report of
// their data, by the emulator.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/graph.h"
#include "tests/conformance/cuda_emulated.h"
#include "tests/conformance/harness.h"
#include "tests/cuda_emulator/kernels.h"

namespace loadline::conformance {
namespace {

// The error names the position; with several, it is the first one's, in any
// order of threads.
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
}  // namespace
}  // namespace loadline::conformance
