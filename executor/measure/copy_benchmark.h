// Measures the copy lanes of a device. Internal to the MeasureMachine
// functions.
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

// Bursts of other processes last up to 100 ms, so runs cover a multiple of
// that.
inline constexpr int64_t kMeterNs = 400'000'000;

// Nanoseconds of each of `works`: the median of seven runs after one warm-up,
// and of more runs until `meter_ns` have passed. The works alternate, so that
// other load on the machine slows all of them equally.
std::vector<int64_t> MedianRunsNs(
    const std::vector<std::function<void()>>& works, int64_t meter_ns);

// The share, 0 to 1, of the shorter of two works that overlapped with the
// longer one when both together lasted `both_ns`.
double HiddenShare(int64_t compute_ns, int64_t copies_ns, int64_t both_ns);

// Runs steps that contain only what is measured. A device that captures steps
// replays them, as in training.
class CopyBenchmark {
 public:
  // Gives `device`, which must outlive the benchmark, an arena with one buffer
  // per direction. Errors: those of CreateArena.
  static absl::StatusOr<CopyBenchmark> Create(Device& device,
                                              int64_t buffer_bytes,
                                              int64_t meter_ns = kMeterNs);

  // One step that moves `bytes` on each requested lane, `copies` times.
  int64_t CopyNs(bool d2h, bool h2d, int64_t bytes, int copies);
  // Runs `work` on the caller's thread, a copy out of `bytes`, and both at the
  // same time. Returns the overlapped share of the shorter one, 0 to 1. Not on
  // a device that captures steps.
  double HiddenShare(int64_t bytes, const std::function<void()>& work);
  // Time that a copy of `bytes` on the lane adds to `work` on the caller's
  // thread, when the copy waits for compute and compute for the copy: its own
  // time and that of colder caches afterwards. Makes `copies` of them, cycling
  // through the whole buffer.
  int64_t WaitedCopyNs(
      Lane lane, int64_t bytes, int copies,
      const std::function<void()>& work = [] {});
  // One of many small copies in a row.
  int64_t LatencyNs();
  // One launch of an almost empty kernel with one input and one output of 256
  // bytes.
  int64_t LaunchNs(Kernel& kernel);

  // Time that a minimal copy adds to a row of kernels where each kernel starts
  // a copy and waits for the one started `lag` kernels before. 1: the delay
  // from the end of a kernel through a copy to the start of the next. kLongLag:
  // compute time lost per copy that has ended long before its wait. `kernel`
  // must last longer than such a copy; it has one input and one output of
  // `bytes`.
  static constexpr int kLongLag = 64;
  int64_t AddedNs(Kernel& kernel, int64_t bytes, int lag);

  // Rates of copies that run at the same time as compute and each other.
  CopyRates RatesOf(int64_t bytes);
  // Writes RatesOf for whole buffers, and the latency, into a profile.
  void MeasureCopies(planner::Machine& machine);

  // The first error of any measurement; later figures are meaningless.
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
