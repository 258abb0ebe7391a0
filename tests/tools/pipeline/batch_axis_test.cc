// Where names of axes say that the batch is not the first one.
#include "tools/pipeline/batch_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"

namespace loadline::tools {
namespace {

using models::DType;
using ::testing::HasSubstr;

// Axes as in ONNX's text syntax: numbers are fixed, and "" is open.
models::DeclaredInput Tensor(const char* name,
                             const std::vector<std::string>& axes) {
  models::DeclaredInput tensor = {.name = name};
  tensor.axes.emplace();
  for (const std::string& text : axes) {
    models::DeclaredAxis axis;
    int64_t size = 0;
    if (absl::SimpleAtoi(text, &size)) {
      axis.size = size;
    } else {
      axis.name = text;
    }
    tensor.axes->push_back(std::move(axis));
  }
  return tensor;
}

// One input x, whose open axes are 8 long.
absl::Status CheckX(const std::vector<std::string>& axes) {
  const models::DeclaredModel declared = {.inputs = {Tensor("x", axes)}};
  models::Graph graph;
  models::TensorType type = {DType::kF32, {}};
  for (const auto& axis : *declared.inputs[0].axes) {
    type.dims.push_back(axis.size.value_or(8));
  }
  graph.AddInput("x", type);
  return CheckBatchOfInputs(declared, graph);
}

TEST(CheckBatchOfInputs, AcceptsABatchThatIsFirstOrHasNoName) {
  for (const auto& axes : std::vector<std::vector<std::string>>{
           {"batch", "8", "5"},
           {"batch_size", "batch_of_tokens"},
           {"N", "time"},
           {"s0", "s1"},
           {"", ""},
           {"8", "8"},
           {"8", "sequence", "5"},
           {"4", "", "5"},
           {"x_dynamic_axes_1", "x_dynamic_axes_2"},
           {"1", "height"},
           {}}) {
    EXPECT_EQ(CheckX(axes), absl::OkStatus());
  }
}

TEST(CheckBatchOfInputs, RefusesABatchThatIsNamedElsewhere) {
  for (const auto& axes :
       std::vector<std::vector<std::string>>{{"8", "batch", "5"},
                                             {"5", "8", "Batch_Size"},
                                             {"8", "B"},
                                             {"time", "bs", "5"},
                                             {"seq_len", "N", "5"}}) {
    const absl::Status status = CheckX(axes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("input 'x': the batch ("));
    EXPECT_THAT(status.message(), HasSubstr("batch_first=True"));
  }
  EXPECT_THAT(CheckX({"8", "batch", "5"}).message(),
              HasSubstr("('batch') is its axis 1, counted from 0"));
}

// 8 steps of a batch of 8: the shapes of data fit either way.
TEST(CheckBatchOfInputs, RefusesToGuessBetweenAxesOfOneLength) {
  for (const char* name : {"", "N", "s1", "x_dynamic_axes_1", "unk__0"}) {
    const absl::Status status = CheckX({"8", name, "5"});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr("another length than 8"));
  }
}

// The batch is whatever the first input calls its first axis.
TEST(CheckBatchOfInputs, LooksForTheFirstInputsBatchInTheOthers) {
  models::Graph graph;
  models::DeclaredModel declared = {
      .inputs = {Tensor("x", {"rows", "5"}), Tensor("h", {"1", "rows", "5"})}};
  EXPECT_THAT(CheckBatchOfInputs(declared, graph).message(),
              HasSubstr("input 'h': the batch ('rows') is its axis 1"));
  declared.inputs[1] = Tensor("h", {"rows", "rows"});
  EXPECT_EQ(CheckBatchOfInputs(declared, graph), absl::OkStatus());
}

TEST(CheckBatchOfPrediction, LooksForTheBatchInTheOutput) {
  models::DeclaredModel declared = {
      .inputs = {Tensor("x", {"rows", "5"})},
      .outputs = {Tensor("y", {"8", "rows", "3"}), Tensor("z", {"rows", "3"}),
                  models::DeclaredInput{.name = "unknown"}}};
  EXPECT_THAT(CheckBatchOfPrediction(declared, 0, {}).message(),
              HasSubstr("output 'y': the batch ('rows') is its axis 1"));
  EXPECT_EQ(CheckBatchOfPrediction(declared, 0, 0), absl::OkStatus());
  EXPECT_EQ(CheckBatchOfPrediction(declared, 1, {}), absl::OkStatus());
  EXPECT_EQ(CheckBatchOfPrediction(declared, 2, {}), absl::OkStatus());
  EXPECT_EQ(CheckBatchOfPrediction(declared, 3, {}), absl::OkStatus());
}

}  // namespace
}  // namespace loadline::tools
