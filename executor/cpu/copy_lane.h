// A copy lane of the CPU device: a thread that works through a ring of
// commands, one at a time and in order. Whoever waits for the lane may take
// over its next command: waking a thread takes longer than many a copy.
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

// The first error of a step, from whichever thread.
class FirstError {
 public:
  void Set(absl::Status status);
  bool IsSet() const { return set_.load(std::memory_order_acquire); }
  absl::Status Get();
  // Hands the error out and forgets it.
  absl::Status Take();

 private:
  std::atomic<bool> set_{false};
  std::mutex mutex_;
  absl::Status status_;
};

// What the lanes of one device share. Outlives them.
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

// One producer. After an error copies and fills are skipped, but events still
// happen and waits still end, so nobody is left waiting.
class CopyLane {
 public:
  // `capacity` commands may be under way; Enqueue then waits for room, which
  // comes by itself because commands arrive after all they wait for.
  CopyLane(Lane lane, int32_t capacity, LaneContext* context);
  ~CopyLane();  // after the last command
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  // Does not wake the thread: who goes on to other work calls Wake first, who
  // goes on to wait, Help. Waits while the ring is full: wake all lanes before.
  void Enqueue(const LaneCommand& command);
  bool Full() const;
  void Wake();
  // Returns when everything enqueued has ended.
  void Drain();
  // Does the next command on the caller's thread, a large copy on all threads.
  // False, at once, if there is none, it waits for an event, or the lane's
  // thread is at it.
  bool Help();

 private:
  enum class Turn { kDone, kNothing, kWaits, kStops };

  void Loop();
  // The next command, if it can be done now. Under turn_.
  Turn TakeTurn(bool all_threads);
  void Do(const LaneCommand& command, bool all_threads);
  absl::Status DoCopy(const CopyArgs& copy, bool all_threads);
  absl::Status DoFill(const LaneCommand& command);
  absl::Status Move(const CopyArgs& copy, int64_t begin, int64_t end);

  const Lane lane_;
  LaneContext* const context_;
  std::vector<LaneCommand> ring_;
  std::atomic<uint32_t> enqueued_{0};
  uint32_t woken_at_ = 0;  // enqueued_ at the last Wake; the producer's own
  std::atomic<uint32_t> done_{0};
  std::mutex turn_;  // of whoever does the command number done_
  std::thread thread_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_COPY_LANE_H_
