// Plans of all phases without training, and targets in MACs and bytes.
#include "tools/pipeline/plan_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/tools/support/model_flags.h"
#include "tools/pipeline/device.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/plan_training_step.h"
#include "tools/pipeline/recipe_targets.h"

namespace loadline::tools {
namespace {

using ::testing::HasSubstr;

class PlanPhasesOfMlp : public testing::Test {
 protected:
  void SetUp() override {
    flags_ = MlpFlags();
    flags_.purpose.work_limit = 2000;  // any plan will do
    auto device = MakeDevice(kCpu);
    ASSERT_TRUE(device.ok());
    device_ = std::move(*device);
    auto model = ImportModel(flags_.model, /*training=*/true);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::move(model->graph);
  }

  passes::Recipe Recipe(const std::string& degree,
                        const std::string& scope = "local") {
    auto recipe = ReadRecipe(
        "r.yaml",
        absl::StrCat("- name: e\n  method: {kind: prune}\n  degree: {", degree,
                     ", scope: ", scope,
                     "}\n  process: {start_step: 5, end_step: 20}\n"),
        {});
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    return *recipe;
  }

  StepFlags flags_;
  std::unique_ptr<executor::Device> device_;
  models::Graph model_;
};

TEST_F(PlanPhasesOfMlp, ShrinkFromPhaseToPhaseWithinOneBudget) {
  flags_.plan.budget = "80%";
  const auto planned = PlanPhases(model_, Recipe("sparsity: 0.5"), 100, flags_,
                                  *device_, nullptr);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_EQ(planned->phases.size(), 2u);
  const PhaseRecord& first = planned->phases[0];
  const PhaseRecord& last = planned->phases[1];
  EXPECT_EQ(first.end_step, 20);
  EXPECT_EQ(last.end_step, 100);
  EXPECT_EQ(first.budget_bytes, last.budget_bytes);
  EXPECT_LE(first.arena_bytes, first.budget_bytes);
  EXPECT_FALSE(first.keeps_everything());
  EXPECT_TRUE(last.keeps_everything());
  EXPECT_EQ(KeepsEverythingFrom(planned->phases), 20);
  EXPECT_LT(last.figures.parameters, first.figures.parameters * 6 / 10);
  EXPECT_LE(last.keep_everything_bytes, first.keep_everything_bytes * 6 / 10);
}

TEST_F(PlanPhasesOfMlp, MeetsATargetInPeakBytes) {
  const auto whole = KeepEverythingBytes(model_, flags_, *device_);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto planned = PlanPhases(model_, Recipe("peak_bytes: 40%"),
                                  passes::kOpenEnd, flags_, *device_, nullptr);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const PhaseRecord& last = planned->phases.back();
  // With the gaps between buffers.
  EXPECT_LE(last.arena_bytes, *whole * 4 / 10);
  EXPECT_GT(last.keep_everything_bytes, *whole * 36 / 100);
  EXPECT_GT(planned->targets[0], 0.3);
}

// A step that quantizes keeps the rounded tensors too.
TEST_F(PlanPhasesOfMlp, MeetsATargetInPeakBytesWhereItQuantizes) {
  const auto whole = KeepEverythingBytes(model_, flags_, *device_);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const auto recipe =
      ReadRecipe("r.yaml",
                 "- method: {kind: prune}\n  degree: {peak_bytes: 40%}\n"
                 "  process: {start_step: 5, end_step: 20}\n"
                 "- method: {kind: quantize}\n  process: {start_step: 30}\n",
                 {});
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  const auto planned =
      PlanPhases(model_, *recipe, 100, flags_, *device_, nullptr);
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_EQ(planned->phases.size(), 3u);
  EXPECT_LE(planned->phases[1].arena_bytes, *whole * 4 / 10);
  EXPECT_LE(planned->phases[2].arena_bytes, *whole * 4 / 10);
  EXPECT_GT(planned->phases[2].arena_bytes, *whole * 36 / 100);
}

TEST_F(PlanPhasesOfMlp, MeetsATargetInMacs) {
  const int64_t whole = passes::SizeOfModel(model_).macs;
  const auto planned = PlanPhases(model_, Recipe("macs: 0.5"), passes::kOpenEnd,
                                  flags_, *device_, nullptr);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_LE(planned->phases.back().figures.macs, whole / 2);
  EXPECT_GT(planned->phases.back().figures.macs, whole * 4 / 10);
}

TEST_F(PlanPhasesOfMlp, SaysWhichTargetCannotBeReached) {
  const auto small = PlanPhases(model_, Recipe("peak_bytes: 1000B"), 100,
                                flags_, *device_, nullptr);
  EXPECT_THAT(std::string(small.status().message()),
              HasSubstr("entry 'e': degree.peak_bytes: 1000 B cannot be "
                        "reached: of "));
  const auto nothing =
      PlanPhases(model_, Recipe("macs: 100%"), 100, flags_, *device_, nullptr);
  EXPECT_THAT(std::string(nothing.status().message()),
              HasSubstr("no more is left without the entry, so it removes "
                        "nothing"));
  const auto global = PlanPhases(model_, Recipe("macs: 50%", "global"), 100,
                                 flags_, *device_, nullptr);
  EXPECT_THAT(std::string(global.status().message()),
              HasSubstr("degree.macs: needs scope local"));
}

// A logarithm that decays becomes a scale of 1.
TEST_F(PlanPhasesOfMlp, DoesNotDecayTrainedScales) {
  const auto recipe =
      ReadRecipe("r.yaml", "- method: {kind: quantize, quantizer: lsq}\n", {});
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  const auto phase =
      passes::MakePhaseModel(model_, *recipe, passes::PhasesOf(*recipe, 20)[0]);
  ASSERT_TRUE(phase.ok()) << phase.status();
  flags_.optimizer.optimizer = "adamw";
  flags_.optimizer.weight_decay = 0.25;
  const auto step = BuildStep(phase->step_model, FlagsOfPhase(*phase, flags_));
  ASSERT_TRUE(step.ok()) << step.status();
  int scales = 0;
  for (const models::Node& node : step->nodes) {
    if (node.op != "AdamW") continue;
    const std::string& name = step->value(node.inputs[0]).name;
    const bool scale = absl::EndsWith(name, ".log_scale");
    scales += scale;
    EXPECT_EQ(node.attributes.Float("weight_decay", -1), scale ? 0 : 0.25)
        << name;
  }
  EXPECT_EQ(scales, 7);
}

TEST(ClockFor, RefusesMoreStepsThanCanBeCounted) {
  EXPECT_EQ(ClockFor({}, models::Graph(), 100, 0)->steps, 100);
  EXPECT_EQ(ClockFor({}, models::Graph(), 0, 5)->steps, 0);
  EXPECT_THAT(ClockFor({}, models::Graph(), INT64_MAX, 0).status().message(),
              HasSubstr("a run has at most"));
}

}  // namespace
}  // namespace loadline::tools
