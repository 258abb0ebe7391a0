#include "passes/narrow_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using models::Ints;
using models::ValueId;
using ::testing::ElementsAre;

ValueId Constant(Builder& b, Ints dims, std::vector<float> numbers) {
  return b.graph.AddConstant(
      "c", models::MakeTensor({models::DType::kF32, std::move(dims)},
                              numbers.data()));
}

const models::Value& Narrowed(Builder& b, ValueId id) {
  const auto before = b.graph.value(b.graph.outputs[0]).type;
  EXPECT_TRUE(NarrowConstants(b.graph).ok());
  EXPECT_TRUE(models::VerifyGraph(b.graph).ok());
  EXPECT_EQ(b.graph.value(b.graph.outputs[0]).type, before);
  return b.graph.value(id);
}

TEST(NarrowConstants, WhatRepeatsIsHeldOnce) {
  Builder b;
  const ValueId c = Constant(b, {2, 2, 3},
                             {1, 2, 3, 1, 2, 3,  //
                              1, 2, 3, 1, 2, 3});
  b.Output(b.Op("Add", {b.Input("x", {2, 2, 3}), c}));
  const models::Value& value = Narrowed(b, c);
  EXPECT_THAT(value.type.dims, ElementsAre(1, 1, 3));
  EXPECT_THAT(value.initial->as<float>(), ElementsAre(1, 2, 3));
}

TEST(NarrowConstants, OnlyTheDimensionThatRepeats) {
  Builder b;
  const ValueId c = Constant(b, {3, 2}, {1, 1, 2, 2, 3, 3});
  b.Output(b.Op("Where", {b.Op("Less", {b.Input("x", {3, 2}), b.Scalar(0)}),
                          b.Input("y", {2}), c}));
  EXPECT_THAT(Narrowed(b, c).type.dims, ElementsAre(3, 1));
}

TEST(NarrowConstants, NotWhereTheResultWouldShrink) {
  Builder b;
  const ValueId c = Constant(b, {2, 3}, {1, 2, 3, 1, 2, 3});
  b.Output(b.Op("Mul", {b.Input("x", {3}), c}));
  EXPECT_THAT(Narrowed(b, c).type.dims, ElementsAre(2, 3));
}

TEST(NarrowConstants, NotForAReaderThatDoesNotBroadcast) {
  Builder b;
  const ValueId c = Constant(b, {2, 3}, {1, 2, 3, 1, 2, 3});
  const ValueId sum = b.Op("Add", {b.Input("x", {2, 3}), c});
  b.Output(b.Op("Concat", {sum, c}, {{"axis", int64_t{0}}}));
  EXPECT_THAT(Narrowed(b, c).type.dims, ElementsAre(2, 3));
}

}  // namespace
}  // namespace loadline::passes
