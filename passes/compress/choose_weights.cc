// Tested by tests/passes/compress/choose_weights_test.cc.
#include "passes/compress/choose_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace loadline::passes {
namespace {

// Units of equally many elements: unit u has elements [u * size, (u+1) * size).
struct Units {
  size_t size = 1;
  std::vector<size_t> elements;

  size_t count() const { return elements.size() / size; }
};

Units SingleWeights(size_t count) {
  Units units;
  units.elements.resize(count);
  std::iota(units.elements.begin(), units.elements.end(), size_t{0});
  return units;
}

Units Blocks(size_t rows, size_t columns) {
  Units units = {.size = 8};
  for (size_t r = 0; r + 2 <= rows; r += 2) {
    for (size_t c = 0; c + 4 <= columns; c += 4) {
      for (size_t i = 0; i < 8; ++i) {
        units.elements.push_back((r + i / 4) * columns + c + i % 4);
      }
    }
  }
  return units;
}

// The two elements of each four along an axis that go. Masked ones go first.
Units TwoOfFour(const models::TensorType& type, int64_t axis,
                absl::Span<const float> scores,
                absl::Span<const float> before) {
  Units units = {.size = 2};
  const auto size = static_cast<size_t>(type.dims[static_cast<size_t>(axis)]);
  size_t inner = 1;
  for (auto a = static_cast<size_t>(axis) + 1; a < type.dims.size(); ++a) {
    inner *= static_cast<size_t>(type.dims[a]);
  }
  for (size_t start = 0; start < scores.size(); ++start) {
    const size_t index = start / inner % size;
    if (index % 4 == 0 && index + 4 <= size) {
      std::vector<size_t> four;
      for (size_t i = 0; i < 4; ++i) four.push_back(start + i * inner);
      std::stable_sort(four.begin(), four.end(), [&](size_t a, size_t b) {
        if (before[a] != before[b]) return before[a] < before[b];
        return scores[a] < scores[b];
      });
      units.elements.push_back(four[0]);
      units.elements.push_back(four[1]);
    }
  }
  return units;
}

}  // namespace

std::vector<float> ChooseWeights(const models::TensorType& type,
                                 PruneGranularity granularity,
                                 int64_t reduced_axis, double sparsity,
                                 absl::Span<const float> scores,
                                 absl::Span<const float> before) {
  const auto rows = static_cast<size_t>(type.dims[0]);
  const size_t columns = rows == 0 ? 0 : scores.size() / rows;
  const bool pairs = granularity == PruneGranularity::k2Of4;
  const Units units = pairs ? TwoOfFour(type, reduced_axis, scores, before)
                      : granularity == PruneGranularity::kBlock2x4
                          ? Blocks(rows, columns)
                          : SingleWeights(scores.size());
  // All pairs together are half of the weights. A share is one of all weights,
  // also of those that are in no block.
  const double share = pairs ? std::min(1.0, 2 * sparsity) : sparsity;
  const double whole = pairs ? static_cast<double>(units.count())
                             : static_cast<double>(scores.size()) /
                                   static_cast<double>(units.size);
  const auto target = static_cast<size_t>(std::llround(share * whole));
  std::vector<double> sums(units.count(), 0.0);
  std::vector<bool> gone(units.count());
  for (size_t u = 0; u < units.count(); ++u) {
    gone[u] = before[units.elements[u * units.size]] == 0;
    for (size_t i = 0; i < units.size; ++i) {
      sums[u] += scores[units.elements[u * units.size + i]];
    }
  }
  std::vector<size_t> order(units.count());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (gone[a] != gone[b]) return bool{gone[a]};
    return sums[a] < sums[b];
  });
  std::vector<float> mask(before.begin(), before.end());
  for (size_t i = 0; i < std::min(target, order.size()); ++i) {
    for (size_t k = 0; k < units.size; ++k) {
      mask[units.elements[order[i] * units.size + k]] = 0;
    }
  }
  return mask;
}

}  // namespace loadline::passes
