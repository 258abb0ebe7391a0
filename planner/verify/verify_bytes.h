// Who wrote last into each byte of a plan's spaces. Internal to Verify and
// Replay.
#ifndef LOADLINE_PLANNER_VERIFY_VERIFY_BYTES_H_
#define LOADLINE_PLANNER_VERIFY_VERIFY_BYTES_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "planner/problem/plan.h"
#include "planner/verify/verify_facts.h"

namespace loadline::planner {

// Buffers are written one after the other; each takes its bytes from those
// written before. O(log buffers) a write, amortized.
class LastWriters {
 public:
  explicit LastWriters(const Plan& plan) : plan_(plan) {}

  // Whose bytes `buffer` takes: by offset, a buffer once per piece of it.
  std::vector<BufferId> Write(BufferId buffer);
  // Whose bytes now lie where `buffer` is, in the same order.
  std::vector<BufferId> In(BufferId buffer) const;

 private:
  struct Piece {
    int64_t end = 0;
    BufferId owner;
  };
  using Pieces = std::map<int64_t, Piece>;  // by offset; disjoint
  // The first piece that reaches beyond the offset.
  template <typename Map>
  static auto FirstBeyond(Map& pieces, int64_t offset);

  const Plan& plan_;
  std::array<Pieces, 2> spaces_;
};

// All buffers as they are written in `facts.order`; first those that hold their
// value from the beginning.
std::vector<BufferId> InWriteOrder(const Plan& plan, const PlanFacts& facts);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_VERIFY_VERIFY_BYTES_H_
