// One hash of 64 bits out of another and a further number: the same on every
// machine and in every run, which absl::Hash is not.
#ifndef LOADLINE_PLANNER_SCHEDULE_MIX_H_
#define LOADLINE_PLANNER_SCHEDULE_MIX_H_

#include <cstdint>

#include "planner/schedule/schedule.h"

namespace loadline::planner {

inline uint64_t Mix(uint64_t hash, uint64_t next) {
  hash ^= next + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccd;
  return hash ^ (hash >> 33);
}

inline uint64_t Mix(uint64_t hash, const Item& item) {
  return Mix(hash, static_cast<uint64_t>(item.id) * 4 +
                       static_cast<uint64_t>(item.kind));
}

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_SCHEDULE_MIX_H_
