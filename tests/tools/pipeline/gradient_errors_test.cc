// Profiled where that is possible, estimated otherwise, nothing without a flag.
#include "tools/pipeline/gradient_errors.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/measure/gradient_error.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

StepFlags Flags(const std::string& family) {
  StepFlags flags;
  flags.model.model =
      std::string(LOADLINE_SOURCE_DIR) + "/models/zoo/" + family + ".onnx";
  flags.model.batch = 64;
  flags.plan.max_gradient_error = 0.01;
  return flags;
}

models::Graph Step(const StepFlags& flags) {
  auto model = ImportModel(flags.model, /*training=*/true);
  EXPECT_TRUE(model.ok()) << model.status();
  auto graph = BuildStep(std::move(model->graph), flags);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(GradientErrorsFor, OffersNothingByDefault) {
  StepFlags flags = Flags("mlp");
  flags.plan.max_gradient_error = 0;
  const auto errors = GradientErrorsFor(flags, Step(flags));
  ASSERT_TRUE(errors.ok());
  EXPECT_TRUE(errors->of_values.empty());
}

TEST(GradientErrorsFor, ProfilesTheSameFiguresEveryTime) {
  const StepFlags flags = Flags("mlp");
  const models::Graph graph = Step(flags);
  const auto errors = GradientErrorsFor(flags, graph);
  const auto again = GradientErrorsFor(flags, graph);
  ASSERT_TRUE(errors.ok() && again.ok());
  EXPECT_EQ(errors->of_values, again->of_values);
  EXPECT_EQ(errors->most, 0.005);  // training makes errors larger
  int profiled = 0;
  for (double error : errors->of_values) {
    if (error < 0) continue;
    EXPECT_LT(error, 0.1);
    profiled += error != executor::kAnalyticGradientError;
  }
  EXPECT_EQ(profiled, 2);
}

TEST(GradientErrorsFor, ProfilesMicroBatchesWithTheirRowsOfTheData) {
  StepFlags flags = Flags("mlp");
  flags.loss.data =
      std::string(LOADLINE_SOURCE_DIR) + "/models/zoo/digits-train.npz";
  const models::Graph whole = Step(flags);
  flags.plan.micro_batches = "2";
  const models::Graph parts = Step(flags);
  const auto of_whole = GradientErrorsFor(flags, whole);
  const auto of_parts = GradientErrorsFor(flags, parts);
  ASSERT_TRUE(of_whole.ok() && of_parts.ok());
  const auto most = [](const GradientErrors& errors) {
    return *std::max_element(errors.of_values.begin(), errors.of_values.end());
  };
  // One part of two, of about the same importance.
  EXPECT_GT(most(*of_parts), most(*of_whole) / 8);
  EXPECT_LT(most(*of_parts), most(*of_whole));
}

TEST(GradientErrorsFor, EstimatesWithoutWeights) {
  const StepFlags flags = Flags("mlp");
  models::Graph graph = Step(flags);
  for (models::Value& value : graph.values) {
    if (value.initial.has_value()) value.initial->data.reset();
  }
  const auto errors = GradientErrorsFor(flags, graph);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_GT(std::count(errors->of_values.begin(), errors->of_values.end(),
                       executor::kAnalyticGradientError),
            0);
}

}  // namespace
}  // namespace loadline::tools
