// At which nodes a budget is felt most: candidates for the bound on time.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_CUTS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_CUTS_H_

#include <cstdint>
#include <vector>

#include "planner/schedule/search_model.h"

namespace loadline::planner {

// May some version of this chain be away from the device in between?
bool MayLeave(const SearchModel& model, int chain);
// May the value live on the host between steps? (Where nothing may be copied,
// only one that no node accesses.)
bool MayLiveOnHost(const SearchModel& model, int chain);
// Is a version surely gone once the next one is made? Without copies and
// codecs there is one instance, and the next version must end at its address.
bool OldVersionDies(const SearchModel& model, int version);

// The order of first runs that every valid plan keeps: producers before
// readers, and readers of a version before its update where the old version
// dies.
class Precedence {
 public:
  explicit Precedence(const SearchModel& model);
  // By node: must it run before (after) `node`'s first run? Not `node` itself.
  std::vector<char> Ancestors(int node) const;
  std::vector<char> Descendants(int node) const;

  const std::vector<std::vector<int>>& before() const { return before_; }
  const std::vector<std::vector<int>>& after() const { return after_; }

 private:
  std::vector<std::vector<int>> before_, after_;  // by node: direct
};

struct Cut {
  int node = 0;
  // Bytes beyond the budget if nothing is copied and nothing runs again; less
  // than nothing where they surely fit.
  int64_t excess_bytes = 0;
  // Least time of reruns and copies that would free them, every value by
  // itself at its cheaper price (a fractional knapsack): a guess at the bound
  // by which cuts are ranked.
  double price_ns = 0;
  // Of reruns, where nothing may be copied, encoded or run another way: every
  // plan runs for so long what it has run before. 0: nothing proven.
  double proven_ns = 0;
};

// At most `most` nodes, evenly spread over the given order, and if that is not
// all of them those around the best; the highest price and then the largest
// excess first. Time O(most * (edges + log values)).
std::vector<Cut> FindCuts(const SearchModel& model,
                          const Precedence& precedence,
                          const std::vector<int64_t>& node_ns,
                          int64_t budget_bytes, int most);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_CUTS_H_
