// Combines two benchmarks into a machine profile: of the cores
// (compute_meter.h) and of the copy lanes (executor/measure/copy_benchmark.h).
// Tested in tests/executor/measure/measure_test.cc.
#include "executor/cpu/measure_machine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/cpu/compute_meter.h"
#include "executor/cpu/device.h"
#include "executor/measure/measured_machine.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

constexpr int64_t kSmallBytes = 256;
constexpr int kSmallCopies = 200;
constexpr int64_t kOrdinaryBytes = int64_t{1} << 20;
// If copies overlap with compute by less than this share of the shorter of the
// two, they are planned one after the other: the step is then at least as fast,
// and takes as long as predicted.
constexpr double kLeastHidden = 0.75;

// Does nothing, so that its time is the cost of a launch. Opens a parallel
// region, as almost every real kernel does.
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

double PerSecond(double amount, int64_t ns) {
  return amount / (static_cast<double>(ns) / 1e9);
}

// Cost of copies that compute waits for, of a typical size, with cold caches
// before and after them.
void MeasureWaitedCopies(const DoctorOptions& options, ComputeMeter& kernel,
                         CopyBenchmark& lanes, planner::Machine& machine) {
  const int64_t bytes = std::min(kOrdinaryBytes, options.buffer_bytes);
  const auto copies = static_cast<int>(options.buffer_bytes / bytes);
  machine.d2h.latency_ns = machine.h2d.latency_ns =
      lanes.WaitedCopyNs(Lane::kD2h, kSmallBytes, kSmallCopies);
  const auto rate = [&](Lane lane) {
    const int64_t ns = lanes.WaitedCopyNs(lane, bytes, copies, [&] {
      kernel.TriadOf(kOrdinaryBytes);
    }) - machine.d2h.latency_ns;
    return PerSecond(static_cast<double>(bytes), std::max<int64_t>(ns, 1));
  };
  machine.d2h.bytes_per_s = rate(Lane::kD2h);
  machine.h2d.bytes_per_s = rate(Lane::kH2d);
}

void MeasureRates(const DoctorOptions& options, ComputeMeter& compute,
                  CopyBenchmark& lanes, planner::Machine& machine) {
  if (machine.copies_exclude_compute) {
    MeasureWaitedCopies(options, compute, lanes, machine);
  } else {
    lanes.MeasureCopies(machine);
  }
}

absl::Status CheckBuffers(const DoctorOptions& options) {
  if (options.buffer_bytes >= kSmallBytes) return absl::OkStatus();
  return absl::InvalidArgumentError("buffers too small to measure anything");
}

// Three of the triad, one for each direction of copies.
constexpr int64_t kBuffers = 5;
constexpr int64_t kLeastBufferBytes = int64_t{1} << 20;

}  // namespace

int64_t BufferBytesWithin(int64_t most_bytes) {
  return std::clamp((most_bytes - ComputeMeter::kMatricesBytes) / kBuffers,
                    kLeastBufferBytes, kWantedBufferBytes);
}

absl::StatusOr<planner::Machine> MeasureMachine(const DoctorOptions& options) {
  LOADLINE_RETURN_IF_ERROR(CheckBuffers(options));
  planner::Machine machine;
  machine.name = options.name;
  machine.device_bytes = HostMemoryBytes();
  machine.host_bytes =
      options.host_bytes > 0 ? options.host_bytes : machine.device_bytes;
  LOADLINE_ASSIGN_OR_RETURN(ComputeMeter compute,
                            ComputeMeter::Create(options.buffer_bytes));
  const std::vector<int64_t> ns = MedianRunsNs(
      {[&] { compute.Matmul(); }, [&] { compute.Triad(); }}, options.meter_ns);
  const int64_t matmul_ns = ns[0], triad_ns = ns[1];
  planner::Rates rates;
  rates.matmul_flop_per_s["f32"] = PerSecond(compute.matmul_flop(), matmul_ns);
  rates.memory_bytes_per_s = PerSecond(compute.triad_bytes(), triad_ns);

  CpuDevice device({.make_store = options.make_store});
  LOADLINE_ASSIGN_OR_RETURN(
      CopyBenchmark lanes,
      CopyBenchmark::Create(device, options.buffer_bytes, options.meter_ns));
  // Both kinds of compute, each for as long as one buffer's copy takes.
  const int64_t alone_ns = lanes.CopyNs(true, false, options.buffer_bytes, 1);
  const int64_t rounds = std::max<int64_t>(
      1, alone_ns / std::max<int64_t>(1, matmul_ns + triad_ns));
  const auto work = [&] {
    for (int64_t i = 0; i < rounds; ++i) {
      compute.Matmul();
      compute.Triad();
    }
  };
  machine.copies_exclude_compute =
      lanes.HiddenShare(options.buffer_bytes, work) < kLeastHidden;
  MeasureRates(options, compute, lanes, machine);
  EmptyKernel empty;
  rates.launch_ns = lanes.LaunchNs(empty);
  LOADLINE_RETURN_IF_ERROR(lanes.status());
  machine.rates = std::move(rates);
  return machine;
}

absl::Status MeasureCopies(const DoctorOptions& options,
                           planner::Machine& machine) {
  LOADLINE_RETURN_IF_ERROR(CheckBuffers(options));
  CpuDevice device({.make_store = options.make_store});
  LOADLINE_ASSIGN_OR_RETURN(
      CopyBenchmark lanes,
      CopyBenchmark::Create(device, options.buffer_bytes, options.meter_ns));
  LOADLINE_ASSIGN_OR_RETURN(
      ComputeMeter compute,
      ComputeMeter::Create(std::min(kOrdinaryBytes, options.buffer_bytes)));
  MeasureRates(options, compute, lanes, machine);
  return lanes.status();
}

}  // namespace loadline::executor
