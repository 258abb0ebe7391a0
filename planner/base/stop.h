// When work must end before it is done.
#ifndef LOADLINE_PLANNER_BASE_STOP_H_
#define LOADLINE_PLANNER_BASE_STOP_H_

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace loadline::planner {

// At a deadline, or when the caller cancels. Polled.
struct Stop {
  absl::Time deadline = absl::InfiniteFuture();
  const std::atomic<bool>* cancel = nullptr;  // may be null

  bool Now() const {
    return (cancel != nullptr && cancel->load(std::memory_order_relaxed)) ||
           (deadline != absl::InfiniteFuture() && absl::Now() >= deadline);
  }
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_BASE_STOP_H_
