// The time of what never happens, in nanoseconds.
#ifndef LOADLINE_PLANNER_BASE_NEVER_NS_H_
#define LOADLINE_PLANNER_BASE_NEVER_NS_H_

#include <limits>

namespace loadline {

inline constexpr double kNeverNs = std::numeric_limits<double>::infinity();

}  // namespace loadline

#endif  // LOADLINE_PLANNER_BASE_NEVER_NS_H_
