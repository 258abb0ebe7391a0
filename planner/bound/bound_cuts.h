// Nodes at whose first run memory is shortest: candidates for cuts of the bound
// on time.
#ifndef LOADLINE_PLANNER_BOUND_BOUND_CUTS_H_
#define LOADLINE_PLANNER_BOUND_BOUND_CUTS_H_

#include <cstdint>
#include <vector>

#include "planner/schedule/search_model.h"

namespace loadline::planner {

// May some version of this persistent value be copied out during the step?
bool MayLeave(const SearchModel& model, int chain);
// May the value live on the host between steps? Without copies only a value
// that no node accesses.
bool MayLiveOnHost(const SearchModel& model, int chain);
// The node that surely overwrites this version of a persistent value; -1: none.
// Between steps the value is at its home address. If no version can be copied
// or encoded, the first version has no other instance, and the node that makes
// the last version, which runs once, writes to that address. A version in
// between may lie at any address and be readable to the end of the step.
int Overwriter(const SearchModel& model, int version);

// The order of first runs that every valid plan keeps: producers before
// readers, and readers of a version before the node that surely overwrites it.
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
  // Bytes alive less the budget if nothing is copied and nothing runs again;
  // negative if they fit.
  int64_t excess_bytes = 0;
  // An estimate for ranking: the least time of reruns or copies that frees the
  // excess, each value at the cheaper of the two (a fractional knapsack,
  // Dantzig 1957).
  double price_ns = 0;
  // Where nothing may be copied or encoded and no node has variants, the
  // knapsack is a proof: every plan spends at least so much time on reruns. 0:
  // nothing proven.
  double proven_ns = 0;
};

// At most `most` nodes, evenly spread over the given order; if the problem has
// more, also the 64 around the best of them. Highest price first, then largest
// excess. Time O(most * (edges + log values)).
std::vector<Cut> FindCuts(const SearchModel& model,
                          const Precedence& precedence,
                          const std::vector<int64_t>& node_ns,
                          int64_t budget_bytes, int most);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BOUND_BOUND_CUTS_H_
