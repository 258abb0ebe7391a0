// The three lanes as streams, and what orders them: events, nothing else.
#ifndef LOADLINE_EXECUTOR_CUDA_LANES_H_
#define LOADLINE_EXECUTOR_CUDA_LANES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "executor/cuda/handles.h"
#include "executor/device/device.h"

namespace loadline::executor::cuda {

class Lanes {
 public:
  explicit Lanes(Driver& driver) : driver_(&driver) {}

  // Once. With one copy engine both copy lanes share a stream: two would only
  // take turns, and in an order that nobody chose.
  absl::Status Create(int copy_engines, int32_t event_count);

  Stream stream(Lane lane) const;

  // Every event is unrecorded again, and nothing on any lane starts before
  // what the compute lane has been given so far.
  absl::Status Fork();
  // The compute lane waits for the others.
  absl::Status Join();
  // As Device's. OutOfRange: no such event. FailedPrecondition: a wait for an
  // event that was not recorded since Fork, which CUDA would let pass.
  absl::Status Record(Lane lane, EventId event);
  absl::Status Wait(Lane lane, EventId event);

  // Waits until nothing is under way. The first error, after all have ended.
  absl::Status Synchronize();

 private:
  absl::Status CheckEvent(EventId event) const;

  Driver* driver_;
  // The last is missing where both copy lanes share one.
  std::array<OwnedStream, planner::kLaneCount> streams_;
  OwnedEvent begun_;
  std::array<OwnedEvent, planner::kLaneCount> ended_;
  std::vector<OwnedEvent> events_;
  std::vector<bool> recorded_;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LANES_H_
