// Used by the tests of FuseAttention.
#include "tests/passes/attention_parts.h"

#include <gtest/gtest.h>

#include <vector>

#include "passes/fuse_attention.h"

namespace loadline::passes {

using models::DType;
using models::Ints;
using models::ValueId;

ValueId Swapped(Builder& b, ValueId k) {
  return b.Op("Transpose", {k}, {{"perm", Ints{0, 2, 1}}});
}

ValueId Softmax(Builder& b, ValueId scores) {
  return b.Op("Softmax", {scores}, {{"axis", 2}});
}

ValueId CausalMask(Builder& b, float hidden, int64_t length) {
  std::vector<float> mask;
  for (int64_t i = 0; i < length * length; ++i) {
    mask.push_back(i % length > i / length ? hidden : 0);
  }
  return b.graph.AddConstant(
      "causal",
      models::MakeTensor({DType::kF32, {1, length, length}}, mask.data()));
}

ValueId CausalCondition(Builder& b, bool visible) {
  std::vector<uint8_t> mask;
  for (int64_t i = 0; i < kLength * kLength; ++i) {
    mask.push_back((i % kLength <= i / kLength) == visible);
  }
  return b.graph.AddConstant(
      "causal",
      models::MakeTensor({DType::kBool, {kLength, kLength}}, mask.data()));
}

std::string Fused(Builder& b, ValueId y) {
  b.Output(b.Op("Relu", {y}));
  EXPECT_TRUE(FuseAttention(b.graph).ok());
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok()) << VerifyGraph(b.graph);
  return Describe(b.graph);
}

}  // namespace loadline::passes
