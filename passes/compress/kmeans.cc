// On a line, clusters are stretches of the sorted numbers: an iteration needs a
// binary search for every border, and sums of stretches from prefix sums.
// Tested in tests/passes/compress/kmeans_test.cc against brute force.
#include "passes/compress/kmeans.h"

#include <algorithm>
#include <cmath>

namespace loadline::passes {
namespace {

constexpr int kMostIterations = 300;

class SortedNumbers {
 public:
  explicit SortedNumbers(absl::Span<const float> numbers)
      : sorted_(numbers.begin(), numbers.end()) {
    std::sort(sorted_.begin(), sorted_.end());
    sums_ = squares_ = {0.0};
    for (float x : sorted_) {
      sums_.push_back(sums_.back() + x);
      squares_.push_back(squares_.back() + double{x} * double{x});
    }
  }

  std::vector<double> EvenInRange(int64_t count) const {
    std::vector<double> entries;
    const double low = sorted_.front(), high = sorted_.back();
    for (int64_t k = 0; k < count; ++k) {
      const double share =
          count == 1 ? 0.5
                     : static_cast<double>(k) / static_cast<double>(count - 1);
      entries.push_back(low + (high - low) * share);
    }
    return entries;
  }

  std::vector<double> EvenInNumbers(int64_t count) const {
    std::vector<double> entries;
    const auto n = static_cast<int64_t>(sorted_.size());
    for (int64_t k = 0; k < count; ++k) {
      entries.push_back(
          sorted_[static_cast<size_t>((2 * k + 1) * n / (2 * count))]);
    }
    return entries;
  }

  // Moves entries to the means of their clusters until they stay. Returns the
  // sum of squared distances.
  double Settle(std::vector<double>& entries) const {
    double distance = Move(entries);
    for (int i = 0; i < kMostIterations; ++i) {
      const std::vector<double> before = entries;
      distance = Move(entries);
      if (entries == before) break;
    }
    return distance;
  }

 private:
  // One iteration. The distance is that to the new entries.
  double Move(std::vector<double>& entries) const {
    double distance = 0;
    size_t begin = 0;
    for (size_t k = 0; k < entries.size(); ++k) {
      const size_t end = k + 1 == entries.size()
                             ? sorted_.size()
                             : BorderAbove((entries[k] + entries[k + 1]) / 2);
      if (end > begin) {
        const double count = static_cast<double>(end - begin);
        const double sum = sums_[end] - sums_[begin];
        entries[k] = sum / count;
        distance += squares_[end] - squares_[begin] - sum * sum / count;
        begin = end;
      }
    }
    return distance;
  }

  // Index of the first number above the border.
  size_t BorderAbove(double border) const {
    return static_cast<size_t>(
        std::upper_bound(sorted_.begin(), sorted_.end(), border) -
        sorted_.begin());
  }

  std::vector<float> sorted_;
  std::vector<double> sums_, squares_;  // of the first numbers
};

int32_t Nearest(const std::vector<float>& entries, float x) {
  const auto above = std::lower_bound(entries.begin(), entries.end(), x);
  if (above == entries.begin()) return 0;
  const auto at = static_cast<int32_t>(above - entries.begin());
  if (above == entries.end()) return at - 1;
  const double down = double{x} - double{entries[static_cast<size_t>(at - 1)]};
  const double up = double{*above} - double{x};
  return down <= up ? at - 1 : at;
}

}  // namespace

Codebook KMeans(absl::Span<const float> numbers, int64_t count) {
  const SortedNumbers sorted(numbers);
  std::vector<double> entries = sorted.EvenInRange(count);
  std::vector<double> others = sorted.EvenInNumbers(count);
  const double distance = sorted.Settle(entries);
  if (sorted.Settle(others) < distance) entries = std::move(others);
  Codebook codebook;
  codebook.entries.assign(entries.begin(), entries.end());
  std::sort(codebook.entries.begin(), codebook.entries.end());
  codebook.codes.reserve(numbers.size());
  for (float x : numbers) {
    codebook.codes.push_back(Nearest(codebook.entries, x));
  }
  return codebook;
}

}  // namespace loadline::passes
