// The search's representation of a plan: one sequence of items over the compute
// lane.
//
// Run(job) runs a node or one of its variants, or encodes or decodes a value.
// Out(value) is a copy to the host: compute may not pass it before it has
// ended. In(value) is a copy back: it may start once compute has passed it.
// Each copy lane runs its copies in the order of the sequence. A read binds to
// the latest earlier Run or In that made the value. So memory is exact by
// position, whatever the timing, and the copies are the plan's waits.
#ifndef LOADLINE_PLANNER_SCHEDULE_SCHEDULE_H_
#define LOADLINE_PLANNER_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "planner/schedule/search_model.h"

namespace loadline::planner {

enum class ItemKind : uint8_t { kRun, kOut, kIn };

struct Item {
  ItemKind kind = ItemKind::kRun;
  int id = 0;  // job of a Run, value of a copy
  friend bool operator==(const Item&, const Item&) = default;
};

struct Schedule {
  std::vector<Item> items;
  std::vector<char> host_home;  // by chain: lives on the host between steps
};

// Every node once, as its fastest variant, in the given order, no copies.
Schedule GivenOrder(const SearchModel& model);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_SCHEDULE_H_
