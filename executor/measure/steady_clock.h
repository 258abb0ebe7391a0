// The clock that times are taken with.
#ifndef LOADLINE_EXECUTOR_MEASURE_STEADY_CLOCK_H_
#define LOADLINE_EXECUTOR_MEASURE_STEADY_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace loadline::executor {

// From an origin of its own; never goes back.
inline int64_t SteadyNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_STEADY_CLOCK_H_
