// Events of the CPU device: one word each, holding the number of the last step
// in which it happened.
#ifndef LOADLINE_EXECUTOR_CPU_EVENTS_H_
#define LOADLINE_EXECUTOR_CPU_EVENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "executor/device/device.h"

namespace loadline::executor {

// Memory effects before Record are visible after the Wait that it ends.
class EventTable {
 public:
  explicit EventTable(int32_t count)
      : count_(count), events_(new std::atomic<uint32_t>[count]()) {}

  int32_t count() const { return count_; }

  // Marks every event as unrecorded. Only while no lane has work.
  void NextStep() { step_.fetch_add(1, std::memory_order_relaxed); }
  uint32_t step() const { return step_.load(std::memory_order_relaxed); }

  void Record(EventId event) {
    events_[Index(event)].store(step(), std::memory_order_release);
    events_[Index(event)].notify_all();
  }

  // Whether it happened in step `step` or later.
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

  // Ends every wait of this step. For the clean-up after an error.
  void ReleaseAll() {
    for (int32_t i = 0; i < count_; ++i) Record(EventId{i});
  }

 private:
  // Correct also when step numbers wrap around.
  static bool Reached(uint32_t seen, uint32_t step) {
    return static_cast<int32_t>(seen - step) >= 0;
  }

  int32_t count_;
  // 0 means never; steps count from 1. A lane reads it while it has a command,
  // and the ring orders that after NextStep.
  std::atomic<uint32_t> step_{0};
  std::unique_ptr<std::atomic<uint32_t>[]> events_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_EVENTS_H_
