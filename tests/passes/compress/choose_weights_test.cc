// Masks of single weights and of small patterns.
#include "passes/compress/choose_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace loadline::passes {
namespace {

using ::testing::ElementsAre;

const models::TensorType kTwoByFour = {models::DType::kF32, {2, 4}};
const std::vector<float> kOnes(8, 1.0f);

TEST(ChooseWeights, TakesTheSmallestWeights) {
  const std::vector<float> scores = {3, 1, 2, 1, 9, 8, 7, 0};
  EXPECT_THAT(ChooseWeights(kTwoByFour, PruneGranularity::kUnstructured, 1,
                            0.375, scores, kOnes),
              ElementsAre(1, 0, 1, 0, 1, 1, 1, 0));
}

TEST(ChooseWeights, KeepsTwoOfEachFour) {
  const std::vector<float> scores = {3, 1, 2, 1, 9, 8, 7, 0};
  EXPECT_THAT(
      ChooseWeights(kTwoByFour, PruneGranularity::k2Of4, 1, 0.5, scores, kOnes),
      ElementsAre(1, 0, 1, 0, 1, 1, 0, 0));
  // On the way to one half, whole fours: that which loses least.
  EXPECT_THAT(ChooseWeights(kTwoByFour, PruneGranularity::k2Of4, 1, 0.25,
                            scores, kOnes),
              ElementsAre(1, 0, 1, 0, 1, 1, 1, 1));
}

// Sparse tensor cores take fours along the axis that is summed over: columns of
// a product's [K, N], the input channels of a Conv.
TEST(ChooseWeights, LiesFoursAlongTheReducedAxis) {
  std::mt19937 random(5);
  const models::TensorType type = {models::DType::kF32, {3, 8, 2, 2}};
  std::vector<float> scores(96);
  for (float& score : scores) score = static_cast<float>(random() % 1000);
  const auto mask = ChooseWeights(type, PruneGranularity::k2Of4, 1, 0.5, scores,
                                  std::vector<float>(96, 1.0f));
  for (size_t o = 0; o < 3; ++o) {
    for (size_t place = 0; place < 4; ++place) {
      for (size_t four = 0; four < 8; four += 4) {
        std::vector<std::pair<float, float>> kept;  // score, mask
        for (size_t i = four; i < four + 4; ++i) {
          const size_t e = (o * 8 + i) * 4 + place;
          kept.emplace_back(scores[e], mask[e]);
        }
        std::sort(kept.begin(), kept.end());
        EXPECT_EQ(kept[0].second + kept[1].second, 0);
        EXPECT_EQ(kept[2].second + kept[3].second, 2);
      }
    }
  }
}

TEST(ChooseWeights, TakesWholeBlocks) {
  const models::TensorType type = {models::DType::kF32, {2, 9}};
  std::vector<float> scores(18, 1.0f);
  scores[0] = 5;
  const std::vector<float> ones(18, 1.0f);
  const auto mask =
      ChooseWeights(type, PruneGranularity::kBlock2x4, 1, 0.5, scores, ones);
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
          ChooseWeights(type, granularity, 1, sparsity, scores, mask);
      for (size_t i = 0; i < 48; ++i) EXPECT_LE(next[i], mask[i]);
      mask = next;
    }
    EXPECT_EQ(std::count(mask.begin(), mask.end(), 0.0f), 24);
  }
}

}  // namespace
}  // namespace loadline::passes
