// The solver's own form of a plan: one sequence over the compute lane.
//
// Run(job) runs a node or one of its variants, or encodes or decodes.
// Out(value) is a copy to the host: compute may not pass before it has ended.
// In(value) is a copy back: it may start once compute has passed. Both copy
// lanes work first in, first out, in the order of their tokens. A read binds to
// the latest earlier Run or In that brought the value. So memory is exact by
// position, whatever the timing, and the tokens are the plan's waits.
#ifndef LOADLINE_PLANNER_SCHEDULE_SCHEDULE_H_
#define LOADLINE_PLANNER_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "planner/schedule/search_model.h"

namespace loadline::planner {

enum class ItemKind : uint8_t { kRun, kOut, kIn };

struct Item {
  ItemKind kind = ItemKind::kRun;
  int id = 0;  // job of a Run, value of a token
  friend bool operator==(const Item&, const Item&) = default;
};

struct Schedule {
  std::vector<Item> items;
  std::vector<char> host_home;  // by chain: lives on the host between steps
};

// Every node once, the fastest way, in the given order, nothing copied.
Schedule GivenOrder(const SearchModel& model);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_SCHEDULE_H_
