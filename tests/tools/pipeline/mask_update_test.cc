// Masks between steps, on values in memory.
#include "tools/pipeline/mask_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/passes/graphs.h"
#include "tools/pipeline/carry_state.h"

namespace loadline::tools {
namespace {

using passes::PruneCriterion;
using passes::PruneGranularity;
using passes::PruneSpec;
using ::testing::ElementsAre;

// SmallMlp with the first layer's 16 outputs as the entry's group.
class UpdateMasksOfMlp : public testing::Test {
 protected:
  void Start(PruneSpec spec) {
    spec.end_step = 10;
    spec_ = spec;
    recipe_.entries = {
        {.name = "e", .object = {.op_names = {"fc1.weight"}}, .spec = spec}};
    auto phase = passes::MakePhaseModel(passes::SmallMlp(), recipe_,
                                        passes::PhasesOf(recipe_, 20)[0]);
    ASSERT_TRUE(phase.ok()) << phase.status();
    phase_ = *std::move(phase);
    state_ = InitialState(phase_.model);
    // What AddMasks and AddOptimizer would add.
    for (const passes::MaskedAxis& axis : phase_.masks) {
      const models::TensorType& type =
          phase_.model.value(*phase_.model.Find(axis.parameter)).type;
      const auto size =
          static_cast<size_t>(axis.axis == passes::kWholeTensor
                                  ? type.elements()
                                  : type.dims[static_cast<size_t>(axis.axis)]);
      Set(passes::MaskName(axis.parameter, axis.axis),
          std::vector<float>(size, 1.0f));
      for (PruneCriterion criterion : axis.scores) {
        std::vector<float> scores;
        for (size_t i = 0; i < size; ++i) {
          scores.push_back(static_cast<float>((i * 7) % size));
        }
        Set(passes::ScoreName(axis.parameter, axis.axis, criterion), scores);
      }
      const std::string momentum = axis.parameter + ".momentum";
      Set(momentum,
          std::vector<float>(static_cast<size_t>(type.elements()), 0.5f));
      states_[axis.parameter] = {momentum};
    }
  }

  void Set(const std::string& name, const std::vector<float>& contents) {
    state_[name].resize(contents.size() * sizeof(float));
    std::memcpy(state_[name].data(), contents.data(), state_[name].size());
  }

  std::vector<float> Get(const std::string& name) {
    auto contents = StateValues(state_).Read(name);
    EXPECT_TRUE(contents.ok()) << contents.status();
    return contents.ok() ? *contents : std::vector<float>();
  }

  absl::Status Update(double sparsity) {
    StateValues values(state_);
    return UpdateMasks(phase_, spec_, phase_.found[0], sparsity, /*seed=*/1,
                       states_, values);
  }

  PruneSpec spec_;
  passes::Recipe recipe_;
  passes::PhaseModel phase_;
  RunState state_;
  OptimizerStates states_;
};

TEST_F(UpdateMasksOfMlp, ClearsWeightsBiasesAndOptimizerStates) {
  Start({.criterion = PruneCriterion::kL1});
  ASSERT_TRUE(Update(0.5).ok());
  // SmallMlp's contents rise, so the first eight channels score lowest.
  const std::vector<float> bias = Get("fc1.bias");
  const std::vector<float> momentum = Get("fc1.bias.momentum");
  const std::vector<float> mask = Get("fc1.bias.mask0");
  for (size_t c = 0; c < 16; ++c) {
    EXPECT_EQ(mask[c], c < 8 ? 0 : 1) << c;
    EXPECT_EQ(momentum[c], c < 8 ? 0 : 0.5f) << c;
    EXPECT_EQ(bias[c] == 0, c < 8) << c;
  }
  // The reader's columns go with them: fc2.weight is f32[10,16].
  const std::vector<float> reader = Get("fc2.weight");
  for (size_t e = 0; e < reader.size(); ++e) {
    EXPECT_EQ(reader[e] == 0, e % 16 < 8) << e;
  }
}

TEST_F(UpdateMasksOfMlp, TakesMoreAndKeepsWhatIsMasked) {
  Start({.criterion = PruneCriterion::kL2});
  ASSERT_TRUE(Update(0.25).ok());
  // A masked channel stays masked, even if others have become smaller.
  std::vector<float> weight = Get("fc1.weight");
  for (float& w : weight) {
    if (w != 0) w = 1e-6f;
  }
  Set("fc1.weight", weight);
  ASSERT_TRUE(Update(0.5).ok());
  const std::vector<float> mask = Get("fc1.weight.mask0");
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 0.0f), 8);
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(mask[c], 0) << c;
}

TEST_F(UpdateMasksOfMlp, StartsScoresAgain) {
  Start({.criterion = PruneCriterion::kTaylor});
  ASSERT_TRUE(Update(0.25).ok());
  const std::vector<float> mask = Get("fc1.weight.mask0");
  for (size_t c = 0; c < 16; ++c) {
    EXPECT_EQ(mask[c], (c * 7) % 16 < 4 ? 0 : 1) << c;
  }
  EXPECT_THAT(Get("fc1.weight.taylor0"), testing::Each(0.0f));
}

TEST_F(UpdateMasksOfMlp, EndsWithTheMaskedChannelsAndTheMissingOnes) {
  Start({.criterion = PruneCriterion::kL1});
  ASSERT_TRUE(Update(0.25).ok());
  StateValues values(state_);
  const auto removed = ChannelsToRemove(phase_, spec_, phase_.found[0], 0.375,
                                        /*seed=*/1, values);
  ASSERT_TRUE(removed.ok()) << removed.status();
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_THAT(removed->begin()->second, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(UpdateMasksOfMlp, MasksSingleWeights) {
  Start({.criterion = PruneCriterion::kL1,
         .granularity = PruneGranularity::k2Of4});
  ASSERT_TRUE(Update(0.5).ok());
  const std::vector<float> weight = Get("fc1.weight");
  const std::vector<float> momentum = Get("fc1.weight.momentum");
  for (size_t four = 0; four < weight.size(); four += 4) {
    EXPECT_EQ(
        std::count(weight.begin() + static_cast<ptrdiff_t>(four),
                   weight.begin() + static_cast<ptrdiff_t>(four) + 4, 0.0f),
        2);
  }
  for (size_t e = 0; e < weight.size(); ++e) {
    EXPECT_EQ(weight[e] == 0, momentum[e] == 0) << e;
  }
}

TEST_F(UpdateMasksOfMlp, RefusesACriterionWithoutScores) {
  Start({.criterion = PruneCriterion::kBnScale});
  EXPECT_EQ(Update(0.5).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace loadline::tools
