// k-means on a line, against the best of all partitions of few numbers.
#include "passes/compress/kmeans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace loadline::passes {
namespace {

using ::testing::ElementsAre;

double Distance(const std::vector<float>& numbers, const Codebook& codebook) {
  double sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double d =
        double{numbers[i]} -
        double{codebook.entries[static_cast<size_t>(codebook.codes[i])]};
    sum += d * d;
  }
  return sum;
}

// Of sorted numbers in [begin, end), about their mean.
double Spread(const std::vector<float>& sorted, size_t begin, size_t end) {
  double mean = 0, sum = 0;
  for (size_t i = begin; i < end; ++i) mean += sorted[i];
  mean /= static_cast<double>(end - begin);
  for (size_t i = begin; i < end; ++i) {
    sum += (sorted[i] - mean) * (sorted[i] - mean);
  }
  return sum;
}

// The least distance of `count` clusters, by dynamic programming.
double Best(std::vector<float> numbers, size_t count) {
  std::sort(numbers.begin(), numbers.end());
  const size_t n = numbers.size();
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  best[0] = 0;
  for (size_t k = 0; k < count; ++k) {
    std::vector<double> next = best;
    for (size_t end = 1; end <= n; ++end) {
      for (size_t begin = 0; begin < end; ++begin) {
        next[end] =
            std::min(next[end], best[begin] + Spread(numbers, begin, end));
      }
    }
    best = next;
  }
  return best[n];
}

TEST(KMeans, FindsNumbersThatRepeatExactly) {
  const Codebook codebook = KMeans({3, -1, 3, 0.5, -1, 0.5}, 4);
  EXPECT_EQ(Distance({3, -1, 3, 0.5, -1, 0.5}, codebook), 0);
  EXPECT_TRUE(std::is_sorted(codebook.entries.begin(), codebook.entries.end()));
  EXPECT_EQ(codebook.entries.size(), 4u);
}

TEST(KMeans, OfOneClusterIsTheMean) {
  const Codebook codebook = KMeans({1, 2, 6}, 1);
  EXPECT_THAT(codebook.entries, ElementsAre(3));
  EXPECT_THAT(codebook.codes, ElementsAre(0, 0, 0));
}

TEST(KMeans, GivesEveryNumberItsNearestEntryAndEveryEntryItsMean) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(3000);
  for (float& x : numbers) x = normal(random);
  for (int64_t bits = 1; bits <= 8; ++bits) {
    const Codebook codebook = KMeans(numbers, int64_t{1} << bits);
    std::vector<double> sums(codebook.entries.size(), 0);
    std::vector<int> counts(codebook.entries.size(), 0);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto own = static_cast<size_t>(codebook.codes[i]);
      sums[own] += numbers[i];
      ++counts[own];
      for (float entry : codebook.entries) {
        ASSERT_LE(std::abs(numbers[i] - codebook.entries[own]),
                  std::abs(numbers[i] - entry) * (1 + 1e-6) + 1e-7);
      }
    }
    for (size_t k = 0; k < sums.size(); ++k) {
      if (counts[k] == 0) continue;
      EXPECT_NEAR(codebook.entries[k], sums[k] / counts[k], 1e-5);
    }
  }
}

TEST(KMeans, IsNearTheBestOfAllPartitions) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 30; ++round) {
    std::vector<float> numbers(40);
    for (float& x : numbers) x = normal(random);
    const size_t count = 2 + static_cast<size_t>(round) % 5;
    const double best = Best(numbers, count);
    const double found =
        Distance(numbers, KMeans(numbers, static_cast<int64_t>(count)));
    EXPECT_GE(found, best * (1 - 1e-5));
    EXPECT_LE(found, best * 1.6) << "round " << round;
  }
}

}  // namespace
}  // namespace loadline::passes
