// The middle of some measurements.
#ifndef LOADLINE_EXECUTOR_MEDIAN_H_
#define LOADLINE_EXECUTOR_MEDIAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace loadline::executor {

// At least 1: a time of nothing would make a node free. Requires one time.
inline int64_t MedianNs(std::vector<int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  return std::max<int64_t>(ns[ns.size() / 2], 1);
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEDIAN_H_
