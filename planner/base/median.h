// The middle of some measurements.
#ifndef LOADLINE_PLANNER_BASE_MEDIAN_H_
#define LOADLINE_PLANNER_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace loadline::planner {

// At least 1: a time of nothing would make a node free. Requires one time.
inline int64_t MedianNs(std::vector<int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  return std::max<int64_t>(ns[ns.size() / 2], 1);
}

// The mean of the middle half: as steady against a burst as the median, and as
// faithful as the mean where the machine is at two speeds in turn. At least 1.
// Requires one time.
inline int64_t MiddleMeanNs(std::vector<int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  const auto cut = static_cast<std::ptrdiff_t>(ns.size() / 4);
  const auto count = static_cast<int64_t>(ns.size()) - 2 * cut;
  const int64_t sum =
      std::accumulate(ns.begin() + cut, ns.end() - cut, int64_t{0});
  return std::max<int64_t>(sum / count, 1);
}

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_MEDIAN_H_
