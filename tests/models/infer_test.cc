// Inference of every operator: one table of what is accepted, one of what is
// refused and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/ops/operator.h"
#include "tests/models/graph_test_util.h"
#include "tests/models/infer_cases.h"

namespace loadline::models {
namespace {

using ::testing::HasSubstr;
using Types = std::vector<TensorType>;

absl::StatusOr<Types> Infer(const char* op, const Types& inputs,
                            const Attributes& attributes) {
  Node node;
  node.op = op;
  node.name = "n";
  node.attributes = attributes;
  std::vector<const TensorType*> pointers;
  for (const TensorType& type : inputs) pointers.push_back(&type);
  NormalizeAxes(&node, pointers);
  return InferTypes(node, pointers);
}

TEST(InferTypes, GivesTheTypesOfEveryOperator) {
  std::set<std::string> seen;
  for (const Accepted& c : AcceptedCases()) {
    seen.insert(c.op);
    const absl::StatusOr<Types> types = Infer(c.op, c.inputs, c.attributes);
    ASSERT_TRUE(types.ok()) << types.status();
    EXPECT_EQ(*types, c.outputs) << c.op;
  }
  for (const Operator* op : AllOperators()) {
    EXPECT_EQ(seen.count(std::string(op->name)), 1u) << op->name;
  }
}

TEST(InferTypes, RefusesWhatDoesNotFitAndSaysWhy) {
  for (const Refused& c : RefusedCases()) {
    const absl::Status status = Infer(c.op, c.inputs, c.attributes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << c.op << ": " << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.op));
  }
}

TEST(InferTypes, RefusesMissingInputs) {
  Node node;
  node.op = "Add";
  node.name = "sum";
  const TensorType type = F32({2});
  EXPECT_THAT(
      std::string(InferTypes(node, {&type, nullptr}).status().message()),
      HasSubstr("input 1 is missing"));
  node.op = "Gemm";
  const TensorType matrix = F32({2, 2});
  EXPECT_TRUE(InferTypes(node, {&matrix, &matrix, nullptr}).ok());
  node.op = "Concat";
  node.attributes.Set("axis", int64_t{0});
  EXPECT_FALSE(InferTypes(node, {&type, nullptr}).ok());
}

}  // namespace
}  // namespace loadline::models
