// Meet in the middle (Horowitz and Sahni 1974): two sets of half the size with
// opposite sums. Of few values one half has sets of the first values, the other
// of the rest; of many values both have sets of up to three. Tested in
// zero_sums_test.cc.
#include "planner/pack/zero_sums.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace loadline::planner {
namespace {

constexpr int kMostMembers = 3;  // of a half

class ZeroSumFinder {
 public:
  ZeroSumFinder(const std::vector<int64_t>& values, const PackTuning& tuning,
                int64_t& work)
      : values_(values), tuning_(tuning), work_(work) {}

  std::vector<ZeroSum> Find() {
    const int count = static_cast<int>(values_.size());
    if (values_.size() <= tuning_.most_sum_all) {
      Match(Subsets(0, count / 2), Subsets(count / 2, count), count / 2);
    } else {
      FindSmall();
    }
    std::stable_sort(
        found_.begin(), found_.end(),
        [](const ZeroSum& a, const ZeroSum& b) { return a.doubt < b.doubt; });
    return std::move(found_);
  }

 private:
  struct Half {
    int64_t sum = 0;
    std::vector<int> members;
  };
  using Halves = std::vector<Half>;

  Halves Subsets(int begin, int end) const {
    Halves halves = {{}};
    for (int i = begin; i < end; ++i) {
      for (size_t j = halves.size(); j-- > 0;) {
        Half more = halves[j];
        more.sum += values_[i];
        more.members.push_back(i);
        halves.push_back(std::move(more));
      }
    }
    return halves;
  }

  // Sets of exactly `members` values after those of `half`.
  void Extend(const Half& half, int first, int members, Halves& halves) const {
    if (members == 0) {
      halves.push_back(half);
      return;
    }
    for (int i = first; i < static_cast<int>(values_.size()); ++i) {
      Half more = half;
      more.sum += values_[i];
      more.members.push_back(i);
      Extend(more, i + 1, members - 1, halves);
    }
  }

  // Pairs first; larger sets only where there are no smaller ones.
  void FindSmall() {
    Halves smaller;
    for (int members = 1; members <= kMostMembers && found_.empty();
         ++members) {
      if (members == 2 && values_.size() > tuning_.most_sum_pairs) return;
      if (members == 3 && values_.size() > tuning_.most_sum_triples) return;
      Halves halves;
      Extend({}, 0, members, halves);
      smaller.insert(smaller.end(), halves.begin(), halves.end());
      Match(smaller, halves, 2 * members);
    }
  }

  void Match(Halves a, Halves b, int most_members) {
    const auto by_sum = [](const Half& x, const Half& y) {
      return x.sum < y.sum;
    };
    work_ += static_cast<int64_t>(a.size() + b.size());
    std::stable_sort(a.begin(), a.end(), by_sum);
    std::stable_sort(b.begin(), b.end(), by_sum);
    size_t end = a.size();
    for (const Half& half : b) {
      while (end > 0 && a[end - 1].sum > -half.sum) --end;
      for (size_t i = end; i > 0 && a[i - 1].sum == -half.sum; --i) {
        Add(a[i - 1], half, most_members);
        if (found_.size() >= tuning_.most_sums) return;
      }
    }
  }

  void Add(const Half& a, const Half& b, int most_members) {
    // One of the ways to split a set.
    if (!a.members.empty() && !b.members.empty() &&
        a.members.back() >= b.members.front()) {
      return;
    }
    ZeroSum set{.members = a.members};
    set.members.insert(set.members.end(), b.members.begin(), b.members.end());
    const auto count = static_cast<int>(set.members.size());
    if (count == 0 || count > most_members ||
        set.members.size() >= values_.size()) {
      return;
    }
    int64_t largest = 1;
    set.doubt = 1;
    for (int i = 0; i < count; ++i) {
      set.doubt *= static_cast<double>(values_.size() - i) / (i + 1);
      largest = std::max<int64_t>(largest, std::abs(values_[set.members[i]]));
    }
    set.doubt /= static_cast<double>(largest);
    if (set.doubt <= tuning_.most_sum_doubt) found_.push_back(std::move(set));
  }

  const std::vector<int64_t>& values_;
  const PackTuning& tuning_;
  int64_t& work_;
  std::vector<ZeroSum> found_;
};

}  // namespace

std::vector<ZeroSum> FindZeroSums(const std::vector<int64_t>& values,
                                  const PackTuning& tuning, int64_t& work) {
  return ZeroSumFinder(values, tuning, work).Find();
}

}  // namespace loadline::planner
