// The three lanes as streams, ordered by events only.
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

  // Call once. With one copy engine both copy lanes share a stream, because two
  // streams would alternate in an arbitrary order.
  absl::Status Create(int copy_engines, int32_t event_count);

  Stream stream(Lane lane) const;

  // Marks every event as unrecorded, and makes all lanes wait for what the
  // compute lane has been given so far.
  absl::Status Fork();
  // Makes the compute lane wait for the others.
  absl::Status Join();
  // As Device's. OutOfRange: no such event. FailedPrecondition: a wait for an
  // event that was not recorded since Fork; CUDA itself would ignore such a
  // wait.
  absl::Status Record(Lane lane, EventId event);
  absl::Status Wait(Lane lane, EventId event);

  // Waits until all streams are idle, then returns the first error.
  absl::Status Synchronize();

 private:
  absl::Status CheckEvent(EventId event) const;

  Driver* driver_;
  // The last is empty if both copy lanes share a stream.
  std::array<OwnedStream, planner::kLaneCount> streams_;
  OwnedEvent begun_;
  std::array<OwnedEvent, planner::kLaneCount> ended_;
  std::vector<OwnedEvent> events_;
  std::vector<bool> recorded_;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LANES_H_
