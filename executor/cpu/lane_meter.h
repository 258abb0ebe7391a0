// How fast the lanes of the CPU device are. Internal to the doctor.
#ifndef LOADLINE_EXECUTOR_CPU_LANE_METER_H_
#define LOADLINE_EXECUTOR_CPU_LANE_METER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "executor/cpu/device.h"

namespace loadline::executor {

// Nanoseconds of `work`: the median of a few runs after one that warms up.
int64_t MedianRunNs(const std::function<void()>& work);

// A CPU device with room for one buffer per direction.
class LaneMeter {
 public:
  // Errors: what the store of the path (empty: memory) cannot do.
  static absl::StatusOr<LaneMeter> Create(int64_t buffer_bytes,
                                          const std::string& host_store_path);

  // One step that moves `bytes` on each lane asked for, `copies` times, while
  // `beside` runs on the compute lane.
  int64_t CopyNs(bool d2h, bool h2d, int64_t bytes, int copies,
                 const std::function<void()>& beside = {});
  // What one copy of `bytes` on the lane, that compute waits for and that waits
  // for compute, adds to `work` before it: its own time, and that of finding
  // other things in the caches. `copies` of them, through the whole buffer and
  // round again.
  int64_t WaitedCopyNs(
      Lane lane, int64_t bytes, int copies,
      const std::function<void()>& work = [] {});
  // One kernel that does nothing.
  int64_t LaunchNs();

  // The first error of all of them.
  const absl::Status& status() const { return status_; }

 private:
  void Note(absl::Status status) { status_.Update(std::move(status)); }

  int64_t bytes_ = 0;
  std::unique_ptr<CpuDevice> device_;
  absl::Status status_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_LANE_METER_H_
