// A copy lane of the CPU device: a thread that executes a ring of commands in
// order, one at a time. A thread that waits for the lane may execute its next
// command itself, because waking a thread takes longer than many a copy.
#ifndef LOADLINE_EXECUTOR_CPU_COPY_LANE_H_
#define LOADLINE_EXECUTOR_CPU_COPY_LANE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "executor/cpu/arena.h"
#include "executor/cpu/events.h"
#include "executor/cpu/host_store.h"
#include "executor/device/device.h"
#include "executor/measure/steady_clock.h"

namespace loadline::executor {

// The first error of a step, on any thread.
class FirstError {
 public:
  void Set(absl::Status status);
  bool IsSet() const { return set_.load(std::memory_order_acquire); }
  absl::Status Get();
  // Returns the error and clears it.
  absl::Status Take();

 private:
  std::atomic<bool> set_{false};
  std::mutex mutex_;
  absl::Status status_;
};

// Shared by the lanes of one device; must outlive them.
struct LaneContext {
  Arena* arena = nullptr;
  HostStore* store = nullptr;
  EventTable* events = nullptr;
  FirstError* error = nullptr;
  std::vector<TraceSpan>* trace = nullptr;
  int64_t step_begin_ns = 0;  // on SteadyNowNs, set between steps
  std::function<void(Lane)> before_command;  // tests only: random delays
};

struct LaneCommand {
  enum class Kind { kCopy, kFill, kDelay, kRecord, kWait, kStop };
  Kind kind = Kind::kStop;
  CopyArgs copy;
  DelayArgs delay;
  Space space = Space::kDevice;
  Region fill;
  uint8_t byte = 0;
  EventId event = kNoEvent;
};

// For one producer thread. After an error, copies and fills are skipped, but
// events still happen and waits still end, so that no thread blocks.
class CopyLane {
 public:
  // `capacity`: commands that the ring holds. Enqueue waits when it is full;
  // this cannot deadlock, because commands arrive after everything they wait
  // for.
  CopyLane(Lane lane, int32_t capacity, LaneContext* context);
  ~CopyLane();  // after the last command
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // Does not wake the lane's thread: call Wake before doing other work, or Help
  // before waiting. Blocks while the ring is full; wake all lanes before that.
  void Enqueue(const LaneCommand& command);
  bool Full() const;
  void Wake();
  // Returns when every enqueued command has ended.
  void Drain();
  // Executes the next command on the caller's thread, a large copy on all
  // threads. Returns false at once if there is none, it waits for an event, or
  // the lane's thread is executing it.
  bool Help();

 private:
  enum class Turn { kDone, kNothing, kWaits, kStops };

  void Loop();
  // The next command, if it can be executed now. Requires turn_.
  Turn TakeTurn(bool all_threads);
  void Do(const LaneCommand& command, bool all_threads);
  absl::Status DoCopy(const CopyArgs& copy, bool all_threads);
  absl::Status DoFill(const LaneCommand& command);
  absl::Status Move(const CopyArgs& copy, int64_t begin, int64_t end);

  const Lane lane_;
  LaneContext* const context_;
  std::vector<LaneCommand> ring_;
  std::atomic<uint32_t> enqueued_{0};
  uint32_t woken_at_ = 0;  // enqueued_ at the last Wake; producer only
  std::atomic<uint32_t> done_{0};
  std::mutex turn_;  // held while command number done_ is executed
  std::thread thread_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_COPY_LANE_H_
