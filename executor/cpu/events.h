// Events of the CPU device: one word each, holding the number of the last step
// it happened in.
#ifndef LOADLINE_EXECUTOR_CPU_EVENTS_H_
#define LOADLINE_EXECUTOR_CPU_EVENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "executor/device/device.h"

namespace loadline::executor {

// Everything done before Record is seen after the Wait that it ends.
class EventTable {
 public:
  explicit EventTable(int32_t count)
      : count_(count), events_(new std::atomic<uint32_t>[count]()) {}

  int32_t count() const { return count_; }

  // Makes every event unrecorded. Only while no lane has work.
  void NextStep() { step_.fetch_add(1, std::memory_order_relaxed); }
  uint32_t step() const { return step_.load(std::memory_order_relaxed); }

  void Record(EventId event) {
    events_[Index(event)].store(step(), std::memory_order_release);
    events_[Index(event)].notify_all();
  }

  // Whether it was recorded in that step or a later one.
  bool Happened(EventId event, uint32_t step) const {
    return Reached(events_[Index(event)].load(std::memory_order_acquire), step);
  }

  void Wait(EventId event, uint32_t step) const {
    const std::atomic<uint32_t>& word = events_[Index(event)];
    uint32_t seen = word.load(std::memory_order_acquire);
    while (!Reached(seen, step)) {
      word.wait(seen, std::memory_order_acquire);
      seen = word.load(std::memory_order_acquire);
    }
  }

  // Ends every wait of this step: the way out after an error.
  void ReleaseAll() {
    for (int32_t i = 0; i < count_; ++i) Record(EventId{i});
  }

 private:
  // Also across the end of the numbers.
  static bool Reached(uint32_t seen, uint32_t step) {
    return static_cast<int32_t>(seen - step) >= 0;
  }

  int32_t count_;
  // 0 is "never": steps are counted from 1. A lane takes it from here while it
  // has a command, which the ring orders after NextStep.
  std::atomic<uint32_t> step_{0};
  std::unique_ptr<std::atomic<uint32_t>[]> events_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_EVENTS_H_
