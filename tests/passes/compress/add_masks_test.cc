// What AddMasks adds to a training step, as text.
#include "passes/compress/add_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/make_problem.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using ::testing::HasSubstr;

struct Step {
  models::Graph graph;
  Gradients gradients;
};

// w f32[4,3] with a gradient that is an input, to keep the text short.
Step SmallStep() {
  Builder b;
  const auto w = b.Parameter("w", {4, 3});
  const auto g = b.Input("g", {4, 3});
  return {b.graph, {{w, g}}};
}

TEST(AddMasks, MultipliesTheGradient) {
  Step step = SmallStep();
  ASSERT_TRUE(
      AddMasks(step.graph,
               {{.parameter = "w", .axis = 0}, {.parameter = "w", .axis = 1}},
               &step.gradients)
          .ok());
  EXPECT_EQ(Describe(step.graph),
            "%0 = Mul(g, w.mask0)\n"
            "%1 = Mul(%0, w.mask1)\n");
  const models::Value& mask = step.graph.value(*step.graph.Find("w.mask1"));
  EXPECT_EQ(mask.type.ToString(), "f32[1,3]");
  EXPECT_EQ(mask.kind, models::ValueKind::kState);
  EXPECT_EQ(mask.initial->as<float>()[2], 1.0f);
  EXPECT_EQ(step.graph.value(step.gradients.begin()->second).type.ToString(),
            "f32[4,3]");
}

TEST(AddMasks, AccumulatesScoresInPlace) {
  Step step = SmallStep();
  ASSERT_TRUE(
      AddMasks(step.graph,
               {{.parameter = "w",
                 .axis = 0,
                 .scores = {PruneCriterion::kTaylor, PruneCriterion::kFisher,
                            PruneCriterion::kMovement}}},
               &step.gradients)
          .ok());
  EXPECT_EQ(Describe(step.graph),
            "%0 = Mul(w, g)\n"
            "%1 = ReduceSum(%0) {axes=[1], keepdims=1}\n"
            "%2 = Abs(%1)\n"
            "%3 = Add(w.taylor0, %2)\n"
            "%4 = Mul(w, g)\n"
            "%5 = ReduceSum(%4) {axes=[1], keepdims=1}\n"
            "%6 = Mul(%5, %5)\n"
            "%7 = Add(w.fisher0, %6)\n"
            "%8 = Mul(w, g)\n"
            "%9 = ReduceSum(%8) {axes=[1], keepdims=1}\n"
            "%10 = Neg(%9)\n"
            "%11 = Add(w.movement0, %10)\n"
            "%12 = Mul(g, w.mask0)\n"
            "update w.taylor0 -> %3\n"
            "update w.fisher0 -> %7\n"
            "update w.movement0 -> %11\n");
}

// An Add that updates a state runs once in a step, although an Add may be
// recomputed elsewhere.
TEST(AddMasks, MakesScoresThatAreNeverRecomputed) {
  Step step = SmallStep();
  ASSERT_TRUE(
      AddMasks(
          step.graph,
          {{.parameter = "w", .axis = 0, .scores = {PruneCriterion::kTaylor}}},
          &step.gradients)
          .ok());
  step.graph.outputs = {step.gradients.begin()->second};
  MakeProblemOptions options;
  options.cost = [](const models::Graph&, const models::Node&) {
    return NodeCost{.time_ns = 1};
  };
  const auto problem = MakeProblem(step.graph, options);
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_FALSE(problem->nodes[3].recompute);
  EXPECT_TRUE(problem->nodes[4].recompute);
}

TEST(AddMasks, MasksSingleWeights) {
  Step step = SmallStep();
  ASSERT_TRUE(AddMasks(step.graph, {{.parameter = "w"}}, &step.gradients).ok());
  EXPECT_EQ(step.graph.value(*step.graph.Find("w.mask")).type.ToString(),
            "f32[4,3]");
}

TEST(AddMasks, RefusesNamesThatAreTaken) {
  Builder b;
  const auto w = b.Parameter("w", {4});
  b.Parameter("w.mask0", {4});
  Gradients gradients = {{w, b.Input("g", {4})}};
  EXPECT_THAT(
      std::string(AddMasks(b.graph, {{.parameter = "w", .axis = 0}}, &gradients)
                      .message()),
      HasSubstr("already has a value named 'w.mask0'"));
  EXPECT_THAT(
      std::string(AddMasks(b.graph, {{.parameter = "v", .axis = 0}}, &gradients)
                      .message()),
      HasSubstr("no 'v' with an axis 0"));
}

}  // namespace
}  // namespace loadline::passes
