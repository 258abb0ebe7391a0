// Counts that follow from widths alone, and ranks from scores.
#include "passes/compress/choose_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace loadline::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Scores = std::vector<std::vector<double>>;
using Gone = std::vector<std::vector<bool>>;

Gone None(const Scores& scores) {
  Gone gone;
  for (const auto& group : scores) gone.emplace_back(group.size(), false);
  return gone;
}

TEST(KeptWidth, IsTheShareOfTheOriginalWidth) {
  EXPECT_EQ(KeptWidth(64, {.sparsity = 0.5}), 32);
  EXPECT_EQ(KeptWidth(64, {.sparsity = 0.75}), 16);
  EXPECT_EQ(KeptWidth(10, {.sparsity = 0.7}), 3);
  EXPECT_EQ(KeptWidth(10, {.sparsity = 0}), 10);
}

TEST(KeptWidth, RoundsUpAndNeverReachesZero) {
  EXPECT_EQ(KeptWidth(64, {.sparsity = 0.9, .round_to = 8}), 8);
  EXPECT_EQ(KeptWidth(64, {.sparsity = 0.6, .round_to = 8}), 32);
  EXPECT_EQ(KeptWidth(5, {.sparsity = 0.5, .round_to = 8}), 5);
  EXPECT_EQ(KeptWidth(4, {.sparsity = 0.99}), 1);
  EXPECT_EQ(KeptWidth(64, {.sparsity = 0.9, .max_sparsity_per_group = 0.75}),
            16);
}

TEST(ChooseChannels, TakesTheLowestAndBreaksTiesByIndex) {
  const Scores scores = {{3, 1, 2, 1}, {0, 0, 0, 0}};
  const auto chosen = ChooseChannels(scores, None(scores), {.sparsity = 0.5});
  EXPECT_THAT(chosen[0], ElementsAre(1, 3));
  EXPECT_THAT(chosen[1], ElementsAre(0, 1));
}

TEST(ChooseChannels, KeepsWhatIsRemoved) {
  const Scores scores = {{-5, 1, 2, 9}};
  const auto chosen = ChooseChannels(scores, Gone{{false, false, false, true}},
                                     {.sparsity = 0.5});
  EXPECT_THAT(chosen[0], ElementsAre(0, 3));
}

TEST(ChooseChannels, RanksAllGroupsTogether) {
  const Scores scores = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  auto chosen =
      ChooseChannels(scores, None(scores), {.sparsity = 0.25, .global = true});
  EXPECT_THAT(chosen[0], ElementsAre(0, 1));
  EXPECT_THAT(chosen[1], IsEmpty());
  // One channel of a group always stays; the other group gives more.
  chosen =
      ChooseChannels(scores, None(scores), {.sparsity = 0.5, .global = true});
  EXPECT_THAT(chosen[0], ElementsAre(0, 1, 2));
  EXPECT_THAT(chosen[1], ElementsAre(0));
}

// Random groups: the counts, the largest share and the multiples hold, a
// channel that goes scores no higher than one that stays, and what goes at one
// sparsity also goes at a larger one.
TEST(ChooseChannels, HoldsItsPromisesOnRandomGroups) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    Scores scores;
    int64_t channels = 0;
    for (uint32_t g = 0; g < 1 + random() % 5; ++g) {
      auto& group = scores.emplace_back();
      for (uint32_t c = 0; c < 1 + random() % 40; ++c) {
        group.push_back(static_cast<double>(random() % 16));
      }
      channels += static_cast<int64_t>(group.size());
    }
    ChannelChoice choice = {.global = random() % 2 == 0,
                            .max_sparsity_per_group = 0.9,
                            .round_to = random() % 3 == 0 ? 4 : 1};
    Gone gone = None(scores);
    for (double sparsity : {0.0, 0.2, 0.5, 0.8}) {
      choice.sparsity = sparsity;
      const auto chosen = ChooseChannels(scores, gone, choice);
      int64_t removed = 0;
      for (size_t g = 0; g < scores.size(); ++g) {
        const auto width = static_cast<int64_t>(scores[g].size());
        const auto taken = static_cast<int64_t>(chosen[g].size());
        removed += taken;
        EXPECT_LT(taken, width);
        EXPECT_LE(taken, 0.9 * static_cast<double>(width) + 1e-9);
        if (taken > 0) {
          EXPECT_EQ((width - taken) % choice.round_to, 0);
        }
        if (!choice.global) {
          EXPECT_EQ(width - taken, KeptWidth(width, choice));
        }
        double highest_gone = -1;
        double lowest_left = 100;
        std::vector<bool> now(scores[g].size(), false);
        for (int64_t c : chosen[g]) now[static_cast<size_t>(c)] = true;
        for (size_t c = 0; c < now.size(); ++c) {
          if (now[c]) {
            highest_gone = std::max(highest_gone, scores[g][c]);
          } else {
            lowest_left = std::min(lowest_left, scores[g][c]);
          }
          EXPECT_TRUE(now[c] || !gone[g][c]);
        }
        EXPECT_LE(highest_gone, lowest_left);
        gone[g] = now;
      }
      if (choice.global && choice.round_to == 1) {
        EXPECT_LE(removed, sparsity * static_cast<double>(channels) + 0.5);
      }
    }
  }
}

}  // namespace
}  // namespace loadline::passes
