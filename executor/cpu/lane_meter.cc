// Each number is the median of a few runs of a fixed size: enough to be steady,
// and never dependent on what was measured before. Tested in
// tests/executor/measure_test.cc.
#include "executor/cpu/lane_meter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/cpu/copy_lane.h"
#include "executor/median.h"
#include "planner/status_macros.h"

namespace loadline::executor {
namespace {

constexpr int kRuns = 7;
constexpr int kLaunches = 200;
constexpr int64_t kSmallBytes = 256;

// Costs nothing: what is left is the price of a launch. Opens a parallel
// region, as nearly every real kernel does.
class EmptyKernel : public Kernel {
 public:
  absl::Status Run(const KernelArgs& args) override {
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;
    args.outputs[0][0] = static_cast<std::byte>(threads);
    return absl::OkStatus();
  }
};

}  // namespace

int64_t MedianRunNs(const std::function<void()>& work) {
  work();
  std::vector<int64_t> ns;
  for (int i = 0; i < kRuns; ++i) {
    const int64_t begin_ns = SteadyNowNs();
    work();
    ns.push_back(SteadyNowNs() - begin_ns);
  }
  return MedianNs(std::move(ns));
}

absl::StatusOr<LaneMeter> LaneMeter::Create(
    int64_t buffer_bytes, const std::string& host_store_path) {
  LaneMeter meter;
  meter.bytes_ = buffer_bytes;
  meter.device_ = std::make_unique<CpuDevice>(
      CpuDeviceOptions{.host_store_path = host_store_path});
  LOADLINE_RETURN_IF_ERROR(
      meter.device_->CreateArena({.arena_bytes = 2 * buffer_bytes,
                                  .host_bytes = 2 * buffer_bytes,
                                  .event_count = 2,
                                  .max_operands = 1}));
  return meter;
}

int64_t LaneMeter::CopyNs(bool d2h, bool h2d, int64_t bytes, int copies,
                          const std::function<void()>& beside) {
  return MedianRunNs([&] {
    Note(device_->BeginStep());
    for (int i = 0; i < copies; ++i) {
      if (d2h) Note(device_->Copy({.lane = Lane::kD2h, .bytes = bytes}));
      if (h2d) {
        Note(device_->Copy({.lane = Lane::kH2d,
                            .device_offset = bytes_,
                            .host_offset = bytes_,
                            .bytes = bytes}));
      }
    }
    if (beside) beside();
    Note(device_->Synchronize());
  });
}

int64_t LaneMeter::WaitedCopyNs(Lane lane, int64_t bytes, int copies,
                                const std::function<void()>& work) {
  const int64_t side = lane == Lane::kD2h ? 0 : bytes_;
  int64_t at = 0;
  const EventId computed{0}, copied{1};
  const int64_t ns = MedianRunNs([&] {
    for (int i = 0; i < copies; ++i) {
      Note(device_->BeginStep());
      work();
      Note(device_->Record(Lane::kCompute, computed));
      Note(device_->Wait(lane, computed));
      if (at + bytes > bytes_) at = 0;
      Note(device_->Copy({.lane = lane,
                          .device_offset = side + at,
                          .host_offset = side + at,
                          .bytes = bytes}));
      at += bytes;
      Note(device_->Record(lane, copied));
      Note(device_->Wait(Lane::kCompute, copied));
    }
    Note(device_->Synchronize());
  });
  const int64_t work_ns = MedianRunNs([&] {
    for (int i = 0; i < copies; ++i) work();
  });
  return std::max<int64_t>((ns - work_ns) / copies, 1);
}

int64_t LaneMeter::LaunchNs() {
  EmptyKernel kernel;
  const StepScalars scalars;
  const Region output = {0, kSmallBytes};
  const int64_t ns = MedianRunNs([&] {
    Note(device_->BeginStep());
    for (int i = 0; i < kLaunches; ++i) {
      Note(device_->Launch(
          {.kernel = &kernel, .outputs = {&output, 1}, .scalars = &scalars}));
    }
    Note(device_->Synchronize());
  });
  return std::max<int64_t>(ns / kLaunches, 1);
}

}  // namespace loadline::executor
