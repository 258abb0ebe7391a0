// The clock for all measurements.
#ifndef LOADLINE_EXECUTOR_MEASURE_STEADY_CLOCK_H_
#define LOADLINE_EXECUTOR_MEASURE_STEADY_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace loadline::executor {

// Nanoseconds from an arbitrary origin; monotonic.
inline int64_t SteadyNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_STEADY_CLOCK_H_
