// Each group is a queue of its channels, the least important first; a global
// choice always takes the cheapest next block of all queues. Tested by
// tests/passes/compress/choose_channels_test.cc.
#include "passes/compress/choose_channels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace loadline::passes {
namespace {

// Shares such as 0.7 are not exact in binary.
constexpr double kRounding = 1e-9;

int64_t RoundUp(int64_t kept, int64_t width, int64_t round_to) {
  return std::min(width, (kept + round_to - 1) / round_to * round_to);
}

// The fewest channels that a group may keep.
int64_t LeastKept(int64_t width, const ChannelChoice& choice) {
  const auto most_removed = static_cast<int64_t>(std::floor(
      choice.max_sparsity_per_group * static_cast<double>(width) + kRounding));
  return RoundUp(std::max<int64_t>(1, width - most_removed), width,
                 choice.round_to);
}

// Channels in the order in which they go.
std::vector<int64_t> Queue(const std::vector<double>& scores,
                           const std::vector<bool>& removed) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const auto i = static_cast<size_t>(a);
    const auto j = static_cast<size_t>(b);
    if (removed[i] != removed[j]) return bool{removed[i]};
    if (scores[i] != scores[j] && !removed[i]) return scores[i] < scores[j];
    return a < b;
  });
  return order;
}

// A group in a global choice.
struct Line {
  const std::vector<double>* scores;
  std::vector<int64_t> queue;
  int64_t taken = 0;
  int64_t least_kept = 1;

  int64_t width() const { return static_cast<int64_t>(queue.size()); }
  // Channels of the next block; 0: the group can lose no more.
  int64_t NextBlock(int64_t round_to) const {
    const int64_t kept = width() - taken;
    const int64_t left = (kept - 1) / round_to * round_to;
    return left >= least_kept && left > 0 ? kept - left : 0;
  }
  double MeanScore(int64_t block) const {
    double sum = 0;
    for (int64_t i = 0; i < block; ++i) {
      sum +=
          (*scores)[static_cast<size_t>(queue[static_cast<size_t>(taken + i)])];
    }
    return sum / static_cast<double>(block);
  }
};

void TakeGlobally(std::vector<Line>& lines, int64_t target,
                  const ChannelChoice& choice) {
  int64_t taken = 0;
  for (const Line& line : lines) taken += line.taken;
  while (taken < target) {
    Line* cheapest = nullptr;
    double lowest = 0;
    for (Line& line : lines) {
      const int64_t block = line.NextBlock(choice.round_to);
      // A block that overshoots by more than it falls short without it.
      if (block == 0 || taken + block - target > target - taken) continue;
      const double score = line.MeanScore(block);
      if (cheapest != nullptr && score >= lowest) continue;
      cheapest = &line;
      lowest = score;
    }
    if (cheapest == nullptr) return;
    const int64_t block = cheapest->NextBlock(choice.round_to);
    cheapest->taken += block;
    taken += block;
  }
}

}  // namespace

int64_t KeptWidth(int64_t width, const ChannelChoice& choice) {
  const int64_t kept = static_cast<int64_t>(std::ceil(
      static_cast<double>(width) * (1 - choice.sparsity) - 0.5 - kRounding));
  return std::max(RoundUp(std::max<int64_t>(1, kept), width, choice.round_to),
                  LeastKept(width, choice));
}

std::vector<std::vector<int64_t>> ChooseChannels(
    absl::Span<const std::vector<double>> scores,
    absl::Span<const std::vector<bool>> removed, const ChannelChoice& choice) {
  std::vector<Line> lines;
  int64_t channels = 0;
  for (size_t g = 0; g < scores.size(); ++g) {
    Line& line = lines.emplace_back();
    line.scores = &scores[g];
    line.queue = Queue(scores[g], removed[g]);
    line.least_kept = LeastKept(line.width(), choice);
    line.taken = std::count(removed[g].begin(), removed[g].end(), true);
    channels += line.width();
    if (choice.global) continue;
    line.taken =
        std::max(line.taken, line.width() - KeptWidth(line.width(), choice));
  }
  if (choice.global) {
    const auto target = static_cast<int64_t>(std::floor(
        choice.sparsity * static_cast<double>(channels) + 0.5 + kRounding));
    TakeGlobally(lines, target, choice);
  }
  std::vector<std::vector<int64_t>> chosen;
  for (const Line& line : lines) {
    std::vector<int64_t>& channels_of = chosen.emplace_back(
        line.queue.begin(), line.queue.begin() + line.taken);
    std::sort(channels_of.begin(), channels_of.end());
  }
  return chosen;
}

}  // namespace loadline::passes
