// Each figure is the median of runs of a fixed size, interleaved with the runs
// that it is compared with. No run depends on what was measured before. Tested
// in tests/executor/measure/measure_test.cc.
#include "executor/measure/copy_benchmark.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/measure/steady_clock.h"
#include "planner/base/median.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

constexpr int kRuns = 7;
constexpr int kMostRuns = 10'000;
constexpr int kCopiesInRow = 64;
constexpr int kLaunches = 200;
constexpr int kSmallCopies = 200;
constexpr int64_t kSmallBytes = 256;
// Lower limit of the factor in a profile.
constexpr double kLeastBidirectional = 0.001;

double PerSecond(int64_t bytes, int64_t ns) {
  return static_cast<double>(bytes) /
         (static_cast<double>(std::max<int64_t>(ns, 1)) / 1e9);
}

}  // namespace

std::vector<int64_t> MedianRunsNs(
    const std::vector<std::function<void()>>& works, int64_t meter_ns) {
  for (const std::function<void()>& work : works) work();
  std::vector<std::vector<int64_t>> ns(works.size());
  const int64_t start_ns = SteadyNowNs();
  for (int run = 0;
       run < kRuns || (run < kMostRuns && SteadyNowNs() - start_ns < meter_ns);
       ++run) {
    for (size_t i = 0; i < works.size(); ++i) {
      const int64_t begin_ns = SteadyNowNs();
      works[i]();
      ns[i].push_back(SteadyNowNs() - begin_ns);
    }
  }
  std::vector<int64_t> medians;
  medians.reserve(ns.size());
  for (std::vector<int64_t>& of_one : ns) {
    medians.push_back(planner::MedianNs(std::move(of_one)));
  }
  return medians;
}

double HiddenShare(int64_t compute_ns, int64_t copies_ns, int64_t both_ns) {
  const int64_t shorter_ns = std::min(compute_ns, copies_ns);
  if (shorter_ns <= 0) return 1;
  const auto hidden_ns = static_cast<double>(compute_ns + copies_ns - both_ns);
  return std::clamp(hidden_ns / static_cast<double>(shorter_ns), 0.0, 1.0);
}

absl::StatusOr<CopyBenchmark> CopyBenchmark::Create(Device& device,
                                                    int64_t buffer_bytes,
                                                    int64_t meter_ns) {
  LOADLINE_RETURN_IF_ERROR(device.CreateArena({.arena_bytes = 2 * buffer_bytes,
                                               .host_bytes = 2 * buffer_bytes,
                                               .event_count = 2 * kCopiesInRow,
                                               .max_operands = 1}));
  return CopyBenchmark(device, buffer_bytes, meter_ns);
}

// Runs one step whose commands `record` submits to the device.
void CopyBenchmark::Run(const std::function<void()>& record) {
  if (!status_.ok()) return;
  Note(device_->BeginStep());
  if (!status_.ok()) return device_->Abort();
  record();
  Note(device_->Synchronize());
}

std::vector<int64_t> CopyBenchmark::StepsNs(
    const std::vector<std::function<void()>>& recordings) {
  std::vector<CapturedStep> kept(recordings.size(), kNotCaptured);
  std::vector<std::function<void()>> works;
  for (size_t i = 0; i < recordings.size(); ++i) {
    works.push_back([this, &step = kept[i], &record = recordings[i]] {
      if (!status_.ok()) return;
      const absl::StatusOr<bool> replayed = device_->Replay(step);
      Note(replayed.status());
      if (replayed.ok() && *replayed) return Note(device_->Synchronize());
      Run(record);
      if (status_.ok()) step = device_->Capture();
    });
  }
  std::vector<int64_t> ns = MedianRunsNs(works, meter_ns_);
  for (const CapturedStep step : kept) device_->Forget(step);
  return ns;
}

int64_t CopyBenchmark::StepNs(const std::function<void()>& record) {
  return StepsNs({record})[0];
}

void CopyBenchmark::Copy(bool d2h, bool h2d, int64_t bytes) {
  if (d2h) Note(device_->Copy({.lane = Lane::kD2h, .bytes = bytes}));
  if (!h2d) return;
  Note(device_->Copy({.lane = Lane::kH2d,
                      .device_offset = bytes_,
                      .host_offset = bytes_,
                      .bytes = bytes}));
}

int64_t CopyBenchmark::CopyNs(bool d2h, bool h2d, int64_t bytes, int copies) {
  return StepNs([&] {
    for (int i = 0; i < copies; ++i) Copy(d2h, h2d, bytes);
  });
}

double CopyBenchmark::HiddenShare(int64_t bytes,
                                  const std::function<void()>& work) {
  const std::vector<int64_t> ns =
      StepsNs({work, [&] { Copy(true, false, bytes); },
               [&] {
                 Copy(true, false, bytes);
                 work();
               }});
  return executor::HiddenShare(ns[0], ns[1], ns[2]);
}

int64_t CopyBenchmark::WaitedCopyNs(Lane lane, int64_t bytes, int copies,
                                    const std::function<void()>& work) {
  const int64_t side = lane == Lane::kD2h ? 0 : bytes_;
  int64_t at = 0;
  const EventId computed{0}, copied{1};
  const auto step = [&] {
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
  };
  const auto with_copies = [&] {
    for (int i = 0; i < copies; ++i) Run(step);
  };
  const auto without = [&] {
    for (int i = 0; i < copies; ++i) work();
  };
  const std::vector<int64_t> ns =
      MedianRunsNs({with_copies, without}, meter_ns_);
  return std::max<int64_t>((ns[0] - ns[1]) / copies, 1);
}

int64_t CopyBenchmark::LatencyNs() {
  return std::max<int64_t>(
      CopyNs(true, false, kSmallBytes, kSmallCopies) / kSmallCopies, 1);
}

// Launches a kernel with one input and one output of `bytes`. A captured step
// refers to `scalars`.
void CopyBenchmark::Launch(Kernel& kernel, int64_t bytes,
                           const StepScalars& scalars) {
  const Region input = {bytes_, bytes};
  const Region output = {0, bytes};
  Note(device_->Launch({.kernel = &kernel,
                        .inputs = {&input, 1},
                        .outputs = {&output, 1},
                        .scalars = &scalars}));
}

int64_t CopyBenchmark::LaunchNs(Kernel& kernel) {
  const StepScalars scalars;
  const int64_t ns = StepNs([&] {
    for (int i = 0; i < kLaunches; ++i) Launch(kernel, kSmallBytes, scalars);
  });
  return std::max<int64_t>(ns / kLaunches, 1);
}

int64_t CopyBenchmark::AddedNs(Kernel& kernel, int64_t bytes, int lag) {
  const StepScalars scalars;
  const auto row = [&](bool copies) {
    for (int i = 0; i < kCopiesInRow + lag; ++i) {
      if (copies && i >= lag) {
        Note(device_->Wait(Lane::kCompute, EventId{2 * (i - lag) + 1}));
      }
      Launch(kernel, bytes, scalars);
      if (!copies || i >= kCopiesInRow) continue;
      Note(device_->Record(Lane::kCompute, EventId{2 * i}));
      Note(device_->Wait(Lane::kD2h, EventId{2 * i}));
      Note(device_->Copy({.lane = Lane::kD2h, .bytes = kSmallBytes}));
      Note(device_->Record(Lane::kD2h, EventId{2 * i + 1}));
    }
  };
  const std::vector<int64_t> ns =
      StepsNs({[&] { row(true); }, [&] { row(false); }});
  return std::max<int64_t>((ns[0] - ns[1]) / kCopiesInRow, 0);
}

CopyRates CopyBenchmark::RatesOf(int64_t bytes) {
  const std::vector<int64_t> ns = StepsNs({[&] { Copy(true, false, bytes); },
                                           [&] { Copy(false, true, bytes); },
                                           [&] { Copy(true, true, bytes); }});
  const int64_t d2h_ns = ns[0], h2d_ns = ns[1], both_ns = ns[2];
  // Both together last as long as the slower one at its reduced rate.
  return {.bytes = bytes,
          .d2h_bytes_per_s = PerSecond(bytes, d2h_ns),
          .h2d_bytes_per_s = PerSecond(bytes, h2d_ns),
          .d2h_h2d_factor =
              std::clamp(static_cast<double>(std::max(d2h_ns, h2d_ns)) /
                             static_cast<double>(both_ns),
                         kLeastBidirectional, 1.0)};
}

void CopyBenchmark::MeasureCopies(planner::Machine& machine) {
  const CopyRates rates = RatesOf(bytes_);
  machine.d2h.bytes_per_s = rates.d2h_bytes_per_s;
  machine.h2d.bytes_per_s = rates.h2d_bytes_per_s;
  machine.d2h_h2d_factor = rates.d2h_h2d_factor;
  machine.d2h.latency_ns = machine.h2d.latency_ns = LatencyNs();
}

}  // namespace loadline::executor
