// How fast the lanes of a device are. Internal to the doctors.
#ifndef LOADLINE_EXECUTOR_MEASURE_COPY_BENCHMARK_H_
#define LOADLINE_EXECUTOR_MEASURE_COPY_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/device/device.h"
#include "executor/device/kernel.h"
#include "executor/measure/measured_machine.h"
#include "planner/problem/machine.h"

namespace loadline::executor {

// A neighbour's burst may last 100 ms: the median is of longer than that.
inline constexpr int64_t kMeterNs = 400'000'000;

// Nanoseconds of each of `works`: the median of seven runs after one that warms
// up, and of more where those are over before `meter_ns`. They run in turns:
// what else the machine does in that time slows all of them alike.
std::vector<int64_t> MedianRunsNs(
    const std::vector<std::function<void()>>& works, int64_t meter_ns);

// The share, 0 to 1, of the shorter of two works that ran hidden behind the
// other when both together lasted `both_ns`.
double HiddenShare(int64_t compute_ns, int64_t copies_ns, int64_t both_ns);

// Steps on a device that hold nothing but what is measured. A device that keeps
// steps repeats them, as it does in training.
class CopyBenchmark {
 public:
  // Gives `device`, which outlives the meter, an arena with room for one buffer
  // per direction. Errors: those of CreateArena.
  static absl::StatusOr<CopyBenchmark> Create(Device& device,
                                              int64_t buffer_bytes,
                                              int64_t meter_ns = kMeterNs);

  // One step that moves `bytes` on each lane asked for, `copies` times.
  int64_t CopyNs(bool d2h, bool h2d, int64_t bytes, int copies);
  // `work` of the caller's thread, a copy out of `bytes`, and both side by
  // side: what is hidden of the shorter, 0 to 1. Not on a device that keeps
  // steps.
  double HiddenShare(int64_t bytes, const std::function<void()>& work);
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

  // What a copy of next to nothing adds to a row of kernels where each starts
  // one and waits for the one that was started `lag` kernels before. 1: from
  // the end of a kernel to the start of the next by way of a copy. kLongLag:
  // what computing loses for a copy that has ended long before it is waited
  // for. `kernel` lasts longer than such a copy; it gets one input and one
  // output of `bytes`.
  static constexpr int kLongLag = 64;
  int64_t AddedNs(Kernel& kernel, int64_t bytes, int lag);

  // Of copies that run beside computing and each other.
  CopyRates RatesOf(int64_t bytes);
  // The same for whole buffers, and the latency, into a profile.
  void MeasureCopies(planner::Machine& machine);

  // The first error of all of them; what was measured since means nothing.
  const absl::Status& status() const { return status_; }

 private:
  CopyBenchmark(Device& device, int64_t buffer_bytes, int64_t meter_ns)
      : device_(&device), bytes_(buffer_bytes), meter_ns_(meter_ns) {}

  void Note(absl::Status status) { status_.Update(std::move(status)); }
  std::vector<int64_t> StepsNs(
      const std::vector<std::function<void()>>& recordings);
  int64_t StepNs(const std::function<void()>& record);
  void Copy(bool d2h, bool h2d, int64_t bytes);
  void Launch(Kernel& kernel, int64_t bytes, const StepScalars& scalars);
  void Run(const std::function<void()>& record);

  Device* device_;
  int64_t bytes_;
  int64_t meter_ns_;
  absl::Status status_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_MEASURE_COPY_BENCHMARK_H_
