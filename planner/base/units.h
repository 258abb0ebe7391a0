// Bytes and times formatted for people.
#ifndef LOADLINE_PLANNER_BASE_UNITS_H_
#define LOADLINE_PLANNER_BASE_UNITS_H_

#include <cstdint>
#include <string>

namespace loadline::planner {

// "3.00 GiB", "512 B"; three significant digits.
std::string FormatBytes(int64_t bytes);
// "1.25 s", "13.2 ms", "410 us".
std::string FormatNs(int64_t ns);

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_UNITS_H_
