// Masks of single weights and of small patterns.
#include "passes/compress/choose_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace loadline::passes {
namespace {

using ::testing::ElementsAre;

const models::TensorType kTwoByFour = {models::DType::kF32, {2, 4}};
const std::vector<float> kOnes(8, 1.0f);

TEST(ChooseWeights, TakesTheSmallestWeights) {
  const std::vector<float> scores = {3, 1, 2, 1, 9, 8, 7, 0};
  EXPECT_THAT(ChooseWeights(kTwoByFour, PruneGranularity::kUnstructured, 0.375,
                            scores, kOnes),
              ElementsAre(1, 0, 1, 0, 1, 1, 1, 0));
}

TEST(ChooseWeights, KeepsTwoOfEachFour) {
  const std::vector<float> scores = {3, 1, 2, 1, 9, 8, 7, 0};
  EXPECT_THAT(
      ChooseWeights(kTwoByFour, PruneGranularity::k2Of4, 0.5, scores, kOnes),
      ElementsAre(1, 0, 1, 0, 1, 1, 0, 0));
  // On the way to one half, whole fours: that which loses least.
  EXPECT_THAT(
      ChooseWeights(kTwoByFour, PruneGranularity::k2Of4, 0.25, scores, kOnes),
      ElementsAre(1, 0, 1, 0, 1, 1, 1, 1));
}

TEST(ChooseWeights, TakesWholeBlocks) {
  const models::TensorType type = {models::DType::kF32, {2, 9}};
  std::vector<float> scores(18, 1.0f);
  scores[0] = 5;
  const std::vector<float> ones(18, 1.0f);
  const auto mask =
      ChooseWeights(type, PruneGranularity::kBlock2x4, 0.5, scores, ones);
  EXPECT_THAT(mask, ElementsAre(1, 1, 1, 1, 0, 0, 0, 0, 1,  //
                                1, 1, 1, 1, 0, 0, 0, 0, 1));
}

TEST(ChooseWeights, NeverBringsBackWhatIsMasked) {
  std::mt19937 random(3);
  const models::TensorType type = {models::DType::kF32, {6, 8}};
  for (PruneGranularity granularity :
       {PruneGranularity::kUnstructured, PruneGranularity::k2Of4,
        PruneGranularity::kBlock2x4}) {
    std::vector<float> mask(48, 1.0f);
    for (double sparsity : {0.1, 0.3, 0.5}) {
      std::vector<float> scores(48);
      for (float& score : scores) score = static_cast<float>(random() % 100);
      const auto next =
          ChooseWeights(type, granularity, sparsity, scores, mask);
      for (size_t i = 0; i < 48; ++i) EXPECT_LE(next[i], mask[i]);
      mask = next;
    }
    EXPECT_EQ(std::count(mask.begin(), mask.end(), 0.0f), 24);
  }
}

}  // namespace
}  // namespace loadline::passes
