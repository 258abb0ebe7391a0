// A multiple-choice knapsack: of each value at most one codec, the most bytes
// saved for the error. The greedy rule of Sinha and Zoltners ("The
// Multiple-Choice Knapsack Problem", Operations Research 27(3), 1979): steps
// from one codec of a value to its next on the convex hull of (error, bytes
// saved), by bytes for error; it is optimal up to the last step. Tested in
// tests/planner/solve/choose_lossy_test.cc, against every choice.
#include "planner/solve/choose_lossy.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace loadline::planner {
namespace {

constexpr double kMostError = 1;
// Of a value that is worth nothing where bytes are short: it comes last.
constexpr double kLeastWorth = 1e-9;

struct Choice {
  int codec = -1;  // position in the value's stash; -1: none
  double error = 0;
  double saved_bytes = 0;
};

double Slope(const Choice& from, const Choice& to) {
  return (to.saved_bytes - from.saved_bytes) / (to.error - from.error);
}

// No codec, then the value's lossy codecs on the upper convex hull, by error.
std::vector<Choice> Hull(const Value& value) {
  std::vector<Choice> points;
  for (size_t c = 0; c < value.stash.size(); ++c) {
    const Codec& codec = value.stash[c];
    if (codec.lossless || codec.bytes >= value.bytes) continue;
    points.push_back({static_cast<int>(c), codec.error,
                      static_cast<double>(value.bytes - codec.bytes)});
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Choice& a, const Choice& b) {
                     return a.error != b.error ? a.error < b.error
                                               : a.saved_bytes > b.saved_bytes;
                   });
  std::vector<Choice> hull = {Choice{}};
  for (const Choice& point : points) {
    if (point.saved_bytes <= hull.back().saved_bytes) continue;
    if (point.error == hull.back().error) {
      hull.back() = point;  // free: error 0
      continue;
    }
    while (hull.size() > 1 && Slope(hull[hull.size() - 2], hull.back()) <=
                                  Slope(hull.back(), point)) {
      hull.pop_back();
    }
    hull.push_back(point);
  }
  return hull;
}

struct Upgrade {
  size_t value;
  size_t to;  // position in the value's hull
  double slope;
};

}  // namespace

Problem ChooseLossy(const Problem& problem, const std::vector<double>& worth) {
  Problem chosen = problem;
  std::vector<std::vector<Choice>> hulls;
  std::vector<Upgrade> upgrades;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    hulls.push_back(Hull(problem.values[v]));
    const double counts = worth.empty() ? 1 : std::max(worth[v], kLeastWorth);
    for (size_t i = 1; i < hulls[v].size(); ++i) {
      upgrades.push_back({v, i, counts * Slope(hulls[v][i - 1], hulls[v][i])});
    }
  }
  // Slopes of one value fall, so its steps stay in order.
  std::stable_sort(
      upgrades.begin(), upgrades.end(),
      [](const Upgrade& a, const Upgrade& b) { return a.slope > b.slope; });
  std::vector<size_t> at(problem.values.size(), 0);
  double sum = 0;
  for (const Upgrade& upgrade : upgrades) {
    const std::vector<Choice>& hull = hulls[upgrade.value];
    // The first points of a hull whose steps did not fit are passed over.
    const double more = hull[upgrade.to].error - hull[at[upgrade.value]].error;
    if (sum + more > kMostError) continue;
    sum += more;
    at[upgrade.value] = upgrade.to;
  }
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const int keep = hulls[v][at[v]].codec;
    std::vector<Codec> stash;
    for (size_t c = 0; c < problem.values[v].stash.size(); ++c) {
      const Codec& codec = problem.values[v].stash[c];
      if (codec.lossless || static_cast<int>(c) == keep) stash.push_back(codec);
    }
    chosen.values[v].stash = std::move(stash);
  }
  return chosen;
}

bool ErrorsExceedLimit(const Problem& problem) {
  double sum = 0;
  for (const Value& value : problem.values) {
    for (const Codec& codec : value.stash) sum += codec.error;
  }
  return sum > kMostError;
}

}  // namespace loadline::planner
