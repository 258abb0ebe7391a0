// Each number is the median of a few runs of a fixed size: enough to be steady,
// and never dependent on what was measured before. Tested in
// tests/executor/measure_test.cc.
#include "executor/lane_meter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/median.h"
#include "executor/steady_clock.h"
#include "planner/status_macros.h"

namespace loadline::executor {
namespace {

constexpr int kRuns = 7;
constexpr int kLaunches = 200;
constexpr int kSmallCopies = 200;
constexpr int64_t kSmallBytes = 256;
// The least that a profile may say.
constexpr double kLeastBidirectional = 0.001;

double PerSecond(int64_t bytes, int64_t ns) {
  return static_cast<double>(bytes) /
         (static_cast<double>(std::max<int64_t>(ns, 1)) / 1e9);
}

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

absl::StatusOr<LaneMeter> LaneMeter::Create(Device& device,
                                            int64_t buffer_bytes) {
  LaneMeter meter(device);
  meter.bytes_ = buffer_bytes;
  LOADLINE_RETURN_IF_ERROR(device.CreateArena({.arena_bytes = 2 * buffer_bytes,
                                               .host_bytes = 2 * buffer_bytes,
                                               .event_count = 2,
                                               .max_operands = 1}));
  return meter;
}

// A step of what `tell` tells the device.
void LaneMeter::Run(const std::function<void()>& tell) {
  if (!status_.ok()) return;
  Note(device_->BeginStep());
  if (!status_.ok()) return device_->Abort();
  tell();
  Note(device_->Synchronize());
}

int64_t LaneMeter::StepNs(const std::function<void()>& tell) {
  KeptStep kept = kNotKept;
  const int64_t ns = MedianRunNs([&] {
    if (!status_.ok()) return;
    const absl::StatusOr<bool> replayed = device_->Replay(kept);
    Note(replayed.status());
    if (replayed.ok() && *replayed) return Note(device_->Synchronize());
    Run(tell);
    if (status_.ok()) kept = device_->Keep();
  });
  device_->Forget(kept);
  return ns;
}

int64_t LaneMeter::CopyNs(bool d2h, bool h2d, int64_t bytes, int copies,
                          const std::function<void()>& beside) {
  return StepNs([&] {
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
  });
}

int64_t LaneMeter::WaitedCopyNs(Lane lane, int64_t bytes, int copies,
                                const std::function<void()>& work) {
  const int64_t side = lane == Lane::kD2h ? 0 : bytes_;
  int64_t at = 0;
  const EventId computed{0}, copied{1};
  const int64_t ns = MedianRunNs([&] {
    for (int i = 0; i < copies; ++i) {
      Run([&] {
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
      });
    }
  });
  const int64_t work_ns = MedianRunNs([&] {
    for (int i = 0; i < copies; ++i) work();
  });
  return std::max<int64_t>((ns - work_ns) / copies, 1);
}

int64_t LaneMeter::LatencyNs() {
  return std::max<int64_t>(
      CopyNs(true, false, kSmallBytes, kSmallCopies) / kSmallCopies, 1);
}

int64_t LaneMeter::LaunchNs(Kernel& kernel) {
  const StepScalars scalars;
  const Region input = {bytes_, kSmallBytes};
  const Region output = {0, kSmallBytes};
  const int64_t ns = StepNs([&] {
    for (int i = 0; i < kLaunches; ++i) {
      Note(device_->Launch({.kernel = &kernel,
                            .inputs = {&input, 1},
                            .outputs = {&output, 1},
                            .scalars = &scalars}));
    }
  });
  return std::max<int64_t>(ns / kLaunches, 1);
}

CopyRates LaneMeter::RatesOf(int64_t bytes) {
  const int64_t d2h_ns = CopyNs(true, false, bytes, 1);
  const int64_t h2d_ns = CopyNs(false, true, bytes, 1);
  const int64_t both_ns = CopyNs(true, true, bytes, 1);
  // Together they last as long as the slower one at its reduced rate.
  return {.bytes = bytes,
          .d2h_bytes_per_s = PerSecond(bytes, d2h_ns),
          .h2d_bytes_per_s = PerSecond(bytes, h2d_ns),
          .bidirectional =
              std::clamp(static_cast<double>(std::max(d2h_ns, h2d_ns)) /
                             static_cast<double>(both_ns),
                         kLeastBidirectional, 1.0)};
}

void LaneMeter::MeasureCopies(planner::Machine& machine) {
  const CopyRates rates = RatesOf(bytes_);
  machine.d2h_bytes_per_s = rates.d2h_bytes_per_s;
  machine.h2d_bytes_per_s = rates.h2d_bytes_per_s;
  machine.bidirectional = rates.bidirectional;
  machine.copy_latency_ns = LatencyNs();
}

}  // namespace loadline::executor
