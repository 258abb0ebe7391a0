// Where a recipe cuts a run, and what each part masks and removes.
#include "passes/compress/recipe_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RecipeEntry Window(int64_t start, int64_t end,
                   PruneGranularity granularity = PruneGranularity::kChannel) {
  return {.spec = PruneSpec{.granularity = granularity,
                            .start_step = start,
                            .end_step = end}};
}

TEST(PhasesOf, EndWhereWindowsEnd) {
  Recipe recipe;
  recipe.entries = {Window(10, 50), Window(30, 90), Window(60, 90)};
  const auto phases = PhasesOf(recipe, 100);
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].first_step, 0);
  EXPECT_EQ(phases[0].end_step, 50);
  EXPECT_THAT(phases[0].masked, ElementsAre(0, 1));
  EXPECT_THAT(phases[0].removed, ElementsAre(0));
  EXPECT_EQ(phases[1].end_step, 90);
  EXPECT_THAT(phases[1].masked, ElementsAre(1, 2));
  EXPECT_THAT(phases[1].removed, ElementsAre(1, 2));
  EXPECT_EQ(phases[2].end_step, 100);
  EXPECT_THAT(phases[2].masked, IsEmpty());
  EXPECT_THAT(phases[2].removed, IsEmpty());
}

TEST(PhasesOf, HaveOneOfNoStepsBeforeTheFirst) {
  Recipe recipe;
  recipe.entries = {Window(0, 0)};
  const auto phases = PhasesOf(recipe, 100);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].end_step, 0);
  EXPECT_THAT(phases[0].removed, ElementsAre(0));
  EXPECT_EQ(phases[1].first_step, 0);
  EXPECT_THAT(phases[1].masked, IsEmpty());
}

TEST(PhasesOf, KeepMasksOfSingleWeightsToTheEnd) {
  Recipe recipe;
  recipe.entries = {Window(10, 50),
                    Window(60, 70, PruneGranularity::kUnstructured)};
  const auto phases = PhasesOf(recipe, kOpenEnd);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_THAT(phases[0].masked, ElementsAre(0));
  EXPECT_THAT(phases[1].masked, ElementsAre(1));
  EXPECT_THAT(phases[1].removed, IsEmpty());
}

TEST(PhasesOf, OfARecipeThatOnlyQuantizesAreOne) {
  Recipe recipe;
  recipe.entries = {{.spec = QuantizeSpec{}}};
  EXPECT_EQ(PhasesOf(recipe, 10).size(), 1u);
  EXPECT_EQ(PhasesOf(recipe, 10)[0].quantized.size(), 1u);
}

TEST(PhasesOf, ChangesWhereQuantizationStartsAndFreezes) {
  QuantizeSpec spec;
  spec.start_step = 4;
  spec.freeze_observer_step = 6;
  spec.freeze_bn_step = 8;
  Recipe recipe;
  recipe.entries = {{.spec = spec}};
  const auto phases = PhasesOf(recipe, 10);
  ASSERT_EQ(phases.size(), 4u);
  EXPECT_THAT(phases[0].quantized, IsEmpty());
  ASSERT_EQ(phases[1].quantized.size(), 1u);
  EXPECT_TRUE(phases[1].quantized[0].starts);
  EXPECT_EQ(phases[1].quantized[0].stage, QuantizeStage::kTrain);
  EXPECT_EQ(phases[2].first_step, 6);
  EXPECT_FALSE(phases[2].quantized[0].starts);
  EXPECT_EQ(phases[2].quantized[0].stage, QuantizeStage::kFrozen);
  EXPECT_FALSE(phases[2].freeze_bn);
  EXPECT_TRUE(phases[3].freeze_bn);
  EXPECT_EQ(phases[3].end_step, 10);
}

TEST(PhasesOf, LeavesQuantizationAfterTrainingToTheExport) {
  QuantizeSpec spec;
  spec.start_step = 10;
  Recipe recipe;
  recipe.entries = {{.spec = spec}};
  ASSERT_EQ(PhasesOf(recipe, 10).size(), 1u);
  EXPECT_THAT(PhasesOf(recipe, 10)[0].quantized, IsEmpty());
  const RecipePhase at_end = ExportPhase(recipe, 10);
  ASSERT_EQ(at_end.quantized.size(), 1u);
  EXPECT_TRUE(at_end.quantized[0].starts);
  EXPECT_TRUE(at_end.freeze_bn);
}

}  // namespace
}  // namespace loadline::passes
