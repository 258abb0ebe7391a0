// Robust averages of measured times.
#ifndef LOADLINE_PLANNER_BASE_MEDIAN_H_
#define LOADLINE_PLANNER_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace loadline::planner {

// The median, at least 1 ns: a time of 0 would make a node free. Requires at
// least one time.
inline int64_t MedianNs(std::vector<int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  return std::max<int64_t>(ns[ns.size() / 2], 1);
}

// The interquartile mean, at least 1 ns. Like the median it ignores bursts;
// like the mean it is right on a machine that alternates between two speeds.
// Requires at least one time.
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
