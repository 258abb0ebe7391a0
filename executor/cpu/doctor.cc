// Each rate is the median of a few runs of a fixed size: enough to be steady,
// and never dependent on what was measured before. Tested in
// tests/executor/measure_test.cc.
#include "executor/cpu/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "dnnl.hpp"
#include "executor/cpu/device.h"
#include "executor/median.h"
#include "planner/status_macros.h"

namespace loadline::executor {
namespace {

constexpr int kRuns = 7;
constexpr int64_t kMatmulSize = 1024;
constexpr int64_t kSmallBytes = 256;
constexpr int kSmallCopies = 200;

int64_t MedianOf(const std::function<void()>& work) {
  work();  // warm
  std::vector<int64_t> ns;
  for (int i = 0; i < kRuns; ++i) {
    const int64_t begin_ns = SteadyNowNs();
    work();
    ns.push_back(SteadyNowNs() - begin_ns);
  }
  return MedianNs(std::move(ns));
}

double PerSecond(double amount, int64_t ns) {
  return amount / (static_cast<double>(ns) / 1e9);
}

absl::StatusOr<double> MatmulFlopPerS() {
  try {
    using tag = dnnl::memory::format_tag;
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    const dnnl::memory::desc desc({kMatmulSize, kMatmulSize},
                                  dnnl::memory::data_type::f32, tag::ab);
    dnnl::matmul matmul(dnnl::matmul::primitive_desc(engine, desc, desc, desc));
    const std::vector<float> ones(kMatmulSize * kMatmulSize, 1.0f);
    std::vector<float> a = ones;
    std::vector<float> b = ones;
    std::vector<float> c = ones;
    dnnl::memory ma(desc, engine, a.data());
    dnnl::memory mb(desc, engine, b.data());
    dnnl::memory mc(desc, engine, c.data());
    const int64_t ns = MedianOf([&] {
      matmul.execute(
          stream,
          {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
      stream.wait();
    });
    return PerSecond(2.0 * kMatmulSize * kMatmulSize * kMatmulSize, ns);
  } catch (const dnnl::error& e) {
    return absl::InternalError(e.what());
  }
}

double MemoryBytesPerS(int64_t buffer_bytes) {
  const int64_t count = std::max<int64_t>(buffer_bytes / sizeof(float), 1);
  std::vector<float> a(count, 1.0f);
  std::vector<float> b(count, 2.0f);
  std::vector<float> c(count, 3.0f);
  const int64_t ns = MedianOf([&] {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i) a[i] = b[i] + 0.5f * c[i];
  });
  return PerSecond(3.0 * static_cast<double>(count) * sizeof(float), ns);
}

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

// Times the lanes of a CPU device with room for one buffer per direction.
class LaneMeter {
 public:
  static absl::StatusOr<LaneMeter> Create(const DoctorOptions& options) {
    LaneMeter meter;
    meter.bytes_ = options.buffer_bytes;
    meter.device_ = std::make_unique<CpuDevice>(
        CpuDeviceOptions{.host_store_path = options.host_store_path});
    LOADLINE_RETURN_IF_ERROR(
        meter.device_->CreateArena({.arena_bytes = 2 * meter.bytes_,
                                    .host_bytes = 2 * meter.bytes_,
                                    .max_operands = 1}));
    return meter;
  }

  // Nanoseconds of one step that moves `bytes` on each lane asked for,
  // `copies` times.
  int64_t CopyNs(bool d2h, bool h2d, int64_t bytes, int copies) {
    return MedianOf([&] {
      Note(device_->BeginStep());
      for (int i = 0; i < copies; ++i) {
        if (d2h) {
          Note(device_->Copy({.lane = Lane::kD2h, .bytes = bytes}));
        }
        if (h2d) {
          Note(device_->Copy({.lane = Lane::kH2d,
                              .device_offset = bytes_,
                              .host_offset = bytes_,
                              .bytes = bytes}));
        }
      }
      Note(device_->Synchronize());
    });
  }

  int64_t LaunchNs() {
    EmptyKernel kernel;
    const StepScalars scalars;
    const Region output = {0, kSmallBytes};
    constexpr int kLaunches = 200;
    const int64_t ns = MedianOf([&] {
      Note(device_->BeginStep());
      for (int i = 0; i < kLaunches; ++i) {
        Note(device_->Launch(
            {.kernel = &kernel, .outputs = {&output, 1}, .scalars = &scalars}));
      }
      Note(device_->Synchronize());
    });
    return std::max<int64_t>(ns / kLaunches, 1);
  }

  const absl::Status& status() const { return status_; }

 private:
  void Note(absl::Status status) { status_.Update(std::move(status)); }

  int64_t bytes_ = 0;
  std::unique_ptr<CpuDevice> device_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<planner::Machine> MeasureMachine(const DoctorOptions& options) {
  if (options.buffer_bytes < kSmallBytes) {
    return absl::InvalidArgumentError("buffers too small to measure anything");
  }
  planner::Machine machine;
  machine.name = options.name;
  machine.device_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  machine.host_bytes = machine.device_bytes;
  planner::Rates rates;
  LOADLINE_ASSIGN_OR_RETURN(rates.matmul_flop_per_s["f32"], MatmulFlopPerS());
  rates.memory_bytes_per_s = MemoryBytesPerS(options.buffer_bytes);

  LOADLINE_ASSIGN_OR_RETURN(LaneMeter meter, LaneMeter::Create(options));
  const auto bytes = static_cast<double>(options.buffer_bytes);
  const int64_t d2h_ns = meter.CopyNs(true, false, options.buffer_bytes, 1);
  const int64_t h2d_ns = meter.CopyNs(false, true, options.buffer_bytes, 1);
  const int64_t both_ns = meter.CopyNs(true, true, options.buffer_bytes, 1);
  machine.d2h_bytes_per_s = PerSecond(bytes, d2h_ns);
  machine.h2d_bytes_per_s = PerSecond(bytes, h2d_ns);
  // Together they last as long as the slower one at its reduced rate.
  machine.bidirectional =
      std::min(1.0, static_cast<double>(std::max(d2h_ns, h2d_ns)) /
                        static_cast<double>(both_ns));
  machine.copy_latency_ns = std::max<int64_t>(
      meter.CopyNs(true, false, kSmallBytes, kSmallCopies) / kSmallCopies, 1);
  rates.launch_ns = meter.LaunchNs();
  LOADLINE_RETURN_IF_ERROR(meter.status());
  machine.rates = std::move(rates);
  return machine;
}

}  // namespace loadline::executor
