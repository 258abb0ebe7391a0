// Result of measuring a machine: its profile, and figures that `doctor` shows.
#ifndef LOADLINE_EXECUTOR_MEASURE_MEASURED_MACHINE_H_
#define LOADLINE_EXECUTOR_MEASURE_MEASURED_MACHINE_H_

#include <unistd.h>

#include <cstdint>
#include <vector>

#include "planner/problem/machine.h"

namespace loadline::executor {

// Rates of copies of one size, and the factor on both while both move.
struct CopyRates {
  int64_t bytes = 0;
  double d2h_bytes_per_s = 0;
  double h2d_bytes_per_s = 0;
  double d2h_h2d_factor = 1;
};

struct MeasuredMachine {
  planner::Machine machine;
  std::vector<CopyRates> copies;  // by rising size; empty: one size only
};

// Physical memory of this machine.
inline int64_t HostMemoryBytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_MEASURED_MACHINE_H_
