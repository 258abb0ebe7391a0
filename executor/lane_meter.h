// How fast the lanes of a device are. Internal to the doctors.
#ifndef LOADLINE_EXECUTOR_LANE_METER_H_
#define LOADLINE_EXECUTOR_LANE_METER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device.h"
#include "executor/kernel.h"
#include "executor/measured_machine.h"
#include "planner/machine.h"

namespace loadline::executor {

// Nanoseconds of `work`: the median of a few runs after one that warms up.
int64_t MedianRunNs(const std::function<void()>& work);

// Steps on a device that hold nothing but what is measured. A device that keeps
// steps repeats them, as it does in training.
class LaneMeter {
 public:
  // Gives `device`, which outlives the meter, an arena with room for one buffer
  // per direction. Errors: those of CreateArena.
  static absl::StatusOr<LaneMeter> Create(Device& device, int64_t buffer_bytes);

  // One step that moves `bytes` on each lane asked for, `copies` times, while
  // the caller's thread does `beside` (not on a device that keeps steps).
  int64_t CopyNs(bool d2h, bool h2d, int64_t bytes, int copies,
                 const std::function<void()>& beside = {});
  // What one copy of `bytes` on the lane, that compute waits for and that waits
  // for compute, adds to `work` of the caller's thread before it: its own time,
  // and that of finding other things in the caches. `copies` of them, through
  // the whole buffer and round again.
  int64_t WaitedCopyNs(
      Lane lane, int64_t bytes, int copies,
      const std::function<void()>& work = [] {});
  // One of many small copies in a row.
  int64_t LatencyNs();
  // One launch of a kernel that has next to nothing to do. It gets one input
  // and one output of 256 bytes.
  int64_t LaunchNs(Kernel& kernel);

  // Of copies that run beside computing and each other.
  CopyRates RatesOf(int64_t bytes);
  // The same for whole buffers, and the latency, into a profile.
  void MeasureCopies(planner::Machine& machine);

  // The first error of all of them; what was measured since means nothing.
  const absl::Status& status() const { return status_; }

 private:
  explicit LaneMeter(Device& device) : device_(&device) {}

  void Note(absl::Status status) { status_.Update(std::move(status)); }
  int64_t StepNs(const std::function<void()>& tell);
  void Run(const std::function<void()>& tell);

  Device* device_;
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_LANE_METER_H_
