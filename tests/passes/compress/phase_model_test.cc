// Entries, groups, masks and removed channels of a small model together.
#include "passes/compress/phase_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/compress/channel_scores.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Two products whose outputs are added, then one more.
models::Graph Residual() {
  Builder b;
  const auto x = b.Input("x", {2, 3});
  const auto a = b.Op("MatMul", {x, b.Parameter("a", {3, 8})});
  const auto c = b.Op("MatMul", {x, b.Parameter("c", {3, 8})});
  const auto sum = b.Op("Add", {a, c});
  b.Output(b.Op("MatMul", {sum, b.Parameter("head", {8, 5})}));
  return b.graph;
}

Recipe PruneRecipe(RecipeObject object, PruneSpec spec = {}) {
  Recipe recipe = {.file = "r.yaml"};
  spec.end_step = 10;
  recipe.entries = {{.name = "e", .line = 1, .object = object, .spec = spec}};
  return recipe;
}

absl::StatusOr<PhaseModel> FirstPhase(const Recipe& recipe,
                                      models::Graph model) {
  return MakePhaseModel(std::move(model), recipe, PhasesOf(recipe, 20)[0]);
}

TEST(MakePhaseModel, MasksEveryAxisOfAGroup) {
  const auto phase = FirstPhase(
      PruneRecipe({}, {.criterion = PruneCriterion::kTaylor}), Residual());
  ASSERT_TRUE(phase.ok()) << phase.status();
  std::vector<std::string> axes;
  for (const MaskedAxis& axis : phase->masks) {
    axes.push_back(MaskName(axis.parameter, axis.axis));
    EXPECT_THAT(axis.scores, ElementsAre(PruneCriterion::kTaylor));
  }
  EXPECT_THAT(axes, ElementsAre("a.mask1", "c.mask1", "head.mask0"));
}

TEST(FindRecipeGroups, NeedsAllNodesThatMakeAGroup) {
  const auto phase = FirstPhase(PruneRecipe({.op_names = {"a"}}), Residual());
  EXPECT_THAT(std::string(phase.status().message()),
              HasSubstr("r.yaml:1: entry 'e': object: nothing to prune: "));
  EXPECT_THAT(std::string(phase.status().message()),
              HasSubstr("which the entry does not have"));
}

// As PyTorch's Linear is exported: the product, not the Transpose, is named.
TEST(FindRecipeGroups, FindsProductsWithTransposedWeights) {
  Builder b;
  const auto w = b.Op("Transpose", {b.Parameter("w", {8, 3})},
                      {{"perm", models::Ints{1, 0}}});
  const auto h = b.Op("MatMul", {b.Input("x", {2, 3}), w});
  b.Output(b.Op("MatMul", {h, b.Parameter("head", {8, 5})}));
  const RecipeObject products = {.op_types = {"MatMul"},
                                 .exclude_op_names = {"head"}};
  const auto phase = FirstPhase(PruneRecipe(products), b.graph);
  ASSERT_TRUE(phase.ok()) << phase.status();
  ASSERT_THAT(phase->found[0].groups, SizeIs(1));
  const std::vector<models::NodeId> makers =
      MakersOf(phase->model, phase->groups[phase->found[0].groups[0]]);
  ASSERT_THAT(makers, SizeIs(1));
  EXPECT_EQ(phase->model.node(makers[0]).op, "MatMul");
  const auto masked = FirstPhase(
      PruneRecipe(products, {.granularity = PruneGranularity::kUnstructured}),
      b.graph);
  ASSERT_TRUE(masked.ok()) << masked.status();
  EXPECT_THAT(masked->found[0].weights, SizeIs(1));
}

TEST(FindRecipeGroups, NamesWhyAGroupIsFrozen) {
  const auto phase =
      FirstPhase(PruneRecipe({.op_names = {"head"}}), Residual());
  EXPECT_THAT(std::string(phase.status().message()),
              HasSubstr("output of the model"));
}

TEST(FindRecipeGroups, GivesWeightsToEntriesThatOnlyMask) {
  const auto phase =
      FirstPhase(PruneRecipe({.op_names = {"head"}},
                             {.granularity = PruneGranularity::kUnstructured}),
                 Residual());
  ASSERT_TRUE(phase.ok()) << phase.status();
  EXPECT_THAT(phase->found[0].weights, SizeIs(1));
  ASSERT_THAT(phase->masks, SizeIs(1));
  EXPECT_EQ(phase->masks[0].axis, kWholeTensor);
}

// MatMul's [K, N] sums over its first axis.
TEST(FindRecipeGroups, LiesFoursAlongTheAxisThatIsSummedOver) {
  const PruneSpec fours = {.granularity = PruneGranularity::k2Of4,
                           .target = {.share = 0.5}};
  const auto phase =
      FirstPhase(PruneRecipe({.op_names = {"head"}}, fours), Residual());
  ASSERT_TRUE(phase.ok()) << phase.status();
  ASSERT_THAT(phase->found[0].weights, SizeIs(1));
  EXPECT_EQ(phase->found[0].weights[0].reduced_axis, 0);
  EXPECT_THAT(
      std::string(
          FirstPhase(PruneRecipe({}, fours), Residual()).status().message()),
      HasSubstr("method.granularity: 'a' has 3 along the axis that is summed "
                "over, no multiple of the four of 2:4; 'c' has 3"));
}

// A table is summed over nowhere.
TEST(FindRecipeGroups, LeavesOutWhatNoProductReadsUnlessNamed) {
  Builder b;
  const auto ids = b.Input("ids", {2}, models::DType::kI64);
  const auto x = b.Op("Gather", {b.Parameter("table", {5, 4}), ids},
                      {{"axis", int64_t{0}}});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {4, 4})}));
  const PruneSpec fours = {.granularity = PruneGranularity::k2Of4,
                           .target = {.share = 0.5}};
  const auto all = FirstPhase(PruneRecipe({}, fours), b.graph);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->found[0].weights, SizeIs(1));
  EXPECT_THAT(
      std::string(
          FirstPhase(PruneRecipe({.op_names = {"table"}}, fours), b.graph)
              .status()
              .message()),
      HasSubstr("'table' is no weight of a Conv"));
}

TEST(FindRecipeGroups, NamesWeightsThatBlocksDoNotHold) {
  const PruneSpec blocks = {.granularity = PruneGranularity::kBlock2x4,
                            .target = {.share = 0.95}};
  EXPECT_THAT(
      std::string(
          FirstPhase(PruneRecipe({.op_names = {"head"}}, blocks), Residual())
              .status()
              .message()),
      HasSubstr("'head' of 8 rows of 5 has 4 blocks of 2x4"));
}

// A table of an embedding has parameters and no integer kernel.
TEST(MakePhaseModel, QuantizesWhatCanBeOrNamesTheEntry) {
  Builder b;
  const auto ids = b.Input("ids", {2}, models::DType::kI64);
  const auto x = b.Op("Gather", {b.Parameter("table", {5, 3}), ids},
                      {{"axis", int64_t{0}}});
  b.Output(b.Op("MatMul", {x, b.Parameter("w", {3, 4})}));
  Recipe recipe = {.file = "r.yaml"};
  recipe.entries = {{.name = "q", .line = 1, .spec = QuantizeSpec{}}};
  const auto all = FirstPhase(recipe, b.graph);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->quantizers, SizeIs(3));
  recipe.entries[0].object.op_names = {"re:.*"};
  EXPECT_THAT(std::string(FirstPhase(recipe, b.graph).status().message()),
              HasSubstr("r.yaml:1: entry 'q': object: node"));
}

TEST(FirstChannels, HaveTheWidthsThatTheRunWillHave) {
  const Recipe recipe = PruneRecipe({});
  const auto phase = FirstPhase(recipe, Residual());
  ASSERT_TRUE(phase.ok()) << phase.status();
  const std::vector<double> targets = {0.5};
  const RemovedChannels removed =
      FirstChannels(*phase, recipe, PhasesOf(recipe, 20)[0], targets);
  ASSERT_THAT(removed, SizeIs(1));
  EXPECT_THAT(removed.begin()->second, ElementsAre(0, 1, 2, 3));
  const auto pruned = RemoveChannels(*phase, removed);
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_THAT(pruned->graph.value(*pruned->graph.Find("head")).type.dims,
              ElementsAre(4, 5));
  EXPECT_FALSE(RemoveChannels(*phase, {{"nobody", {0}}}).ok());
}

// Scores by hand: a holds 0.01 * i in f32[3,8], column c of it 0.01 * (c, c+8,
// c+16); head's row c 0.01 * (5c, ..., 5c+4).
TEST(ScoreChannels, SumsOverTheMembersOfAChannel) {
  const auto phase = FirstPhase(PruneRecipe({}), Residual());
  ASSERT_TRUE(phase.ok()) << phase.status();
  const PruneGroup& group = phase->groups[phase->found[0].groups[0]];
  const ReadValue read =
      [&](const std::string& name) -> absl::StatusOr<std::vector<float>> {
    const auto id = phase->model.Find(name);
    if (!id.has_value()) return absl::NotFoundError(name);
    const auto span = phase->model.value(*id).initial->as<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  const auto scores =
      ScoreChannels(phase->model, group, PruneCriterion::kL1, 1, read);
  ASSERT_TRUE(scores.ok()) << scores.status();
  for (int c = 0; c < 8; ++c) {
    EXPECT_NEAR((*scores)[c], 0.01 * (2 * (3 * c + 24) + 25 * c + 10), 1e-6);
  }
  EXPECT_EQ(
      ScoreChannels(phase->model, group, PruneCriterion::kBnScale, 1, read)
          .status()
          .code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ScoreChannels(phase->model, group, PruneCriterion::kTaylor, 1, read)
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
  const auto random =
      ScoreChannels(phase->model, group, PruneCriterion::kRandom, 1, read);
  EXPECT_EQ(*random, *ScoreChannels(phase->model, group,
                                    PruneCriterion::kRandom, 1, read));
  EXPECT_NE(*random, *ScoreChannels(phase->model, group,
                                    PruneCriterion::kRandom, 2, read));
}

}  // namespace
}  // namespace loadline::passes
