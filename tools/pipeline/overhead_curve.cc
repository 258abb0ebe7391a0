// Tested by tests/tools/pipeline/overhead_curve_test.cc.
#include "tools/pipeline/overhead_curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace loadline::tools {
namespace {

// Shares below this count as this: overhead has no bound at the floor.
constexpr double kLeastShare = 1e-3;
// Where no plan is known, the overhead that is assumed is that of this share.
constexpr double kUnknownShare = 0.1;

// The overhead at a larger share: linear in the logarithm of the share, down to
// 0 at share 1.
double Carried(double share, double overhead, double larger) {
  return overhead * std::log(larger) / std::log(share);
}

}  // namespace

double GrantedShare(int64_t floor_bytes, int64_t keep_bytes,
                    int64_t budget_bytes) {
  if (keep_bytes <= floor_bytes) return budget_bytes >= keep_bytes ? 1 : -1;
  return static_cast<double>(budget_bytes - floor_bytes) /
         static_cast<double>(keep_bytes - floor_bytes);
}

void OverheadCurve::Add(double share, double overhead) {
  share = std::max(share, kLeastShare);
  if (share >= 1) return;
  overhead = std::max(0.0, overhead);
  for (const auto& [smaller, least] : overhead_of_) {
    if (smaller > share) break;
    overhead = std::min(overhead, Carried(smaller, least, share));
  }
  overhead_of_[share] = overhead;
  for (auto& [larger, most] : overhead_of_) {
    if (larger >= share) {
      most = std::min(most, Carried(share, overhead, larger));
    }
  }
}

double OverheadCurve::At(double share, double without) const {
  share = std::max(share, kLeastShare);
  if (share >= 1) return 0;
  const auto above = overhead_of_.lower_bound(share);
  const double above_share = above == overhead_of_.end() ? 1 : above->first;
  const double above_overhead = above == overhead_of_.end() ? 0 : above->second;
  if (overhead_of_.empty()) {
    return without * std::log(share) / std::log(kUnknownShare);
  }
  if (above == overhead_of_.begin()) {
    return above_overhead * above_share / share;
  }
  const auto below = std::prev(above);
  const double part =
      std::log(share / below->first) / std::log(above_share / below->first);
  return below->second + part * (above_overhead - below->second);
}

}  // namespace loadline::tools
