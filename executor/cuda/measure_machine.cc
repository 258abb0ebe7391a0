// All measurements use the device as a plan's steps do: copies through its
// lanes (copy_benchmark.h), rates through prepared kernels, one node at a time
// (calibrate.h). Tested on a fake driver in
// tests/end_to_end/cuda_doctor_test.cc.
#include "executor/cuda/measure_machine.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/measure/calibrate.h"
#include "models/graph.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using models::DType;

constexpr int kCopySizes = 4;  // each a quarter of the next
// Page size of large allocations on present GPUs.
constexpr int64_t kDriverPageBytes = int64_t{2} << 20;

// Graph inference is written for f32; kernels use the types of values.
absl::StatusOr<models::Graph> OneNode(
    const std::string& op, const std::vector<std::vector<int64_t>>& inputs,
    DType type = DType::kF32) {
  models::Graph graph;
  std::vector<models::ValueId> ids;
  ids.reserve(inputs.size());
  for (const std::vector<int64_t>& dims : inputs) {
    ids.push_back(graph.AddInput("input", {DType::kF32, dims}));
  }
  LOADLINE_RETURN_IF_ERROR(graph.AddNode(op, op, std::move(ids)).status());
  for (models::Value& value : graph.values) value.type.dtype = type;
  return graph;
}

// The node's duration, on a device of its own.
absl::StatusOr<int64_t> NodeNs(cuda::Driver& driver,
                               const CudaDoctorOptions& options,
                               const absl::StatusOr<models::Graph>& graph) {
  LOADLINE_RETURN_IF_ERROR(graph.status());
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            CudaDevice::Create(driver, options.device));
  LOADLINE_ASSIGN_OR_RETURN(const auto times,
                            Calibrate(*graph, *device, {.evict_bytes = 0}));
  return times.begin()->second;
}

absl::StatusOr<double> MatMulRate(cuda::Driver& driver,
                                  const CudaDoctorOptions& options,
                                  DType type) {
  const int64_t n = options.matmul_size;
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t ns,
      NodeNs(driver, options, OneNode("MatMul", {{n, n}, {n, n}}, type)));
  const auto size = static_cast<double>(n);
  return 2 * size * size * size / (static_cast<double>(ns) / 1e9);
}

// `sizes` receives the rates of copies of several sizes; null: skipped.
absl::Status MeasureLanes(cuda::Driver& driver,
                          const CudaDoctorOptions& options,
                          planner::Machine& machine,
                          std::vector<CopyRates>* sizes) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            CudaDevice::Create(driver, options.device));
  const int64_t bytes = options.copy_bytes / 4;
  LOADLINE_ASSIGN_OR_RETURN(
      const models::Graph large,
      OneNode("Relu", {{bytes / DTypeBytes(DType::kF32)}}));
  LOADLINE_ASSIGN_OR_RETURN(const auto kernel,
                            device->Prepare(large, large.nodes[0]));
  LOADLINE_ASSIGN_OR_RETURN(
      CopyBenchmark lanes,
      CopyBenchmark::Create(*device, options.copy_bytes, options.meter_ns));
  for (int i = kCopySizes - 1; sizes != nullptr && i >= 0; --i) {
    sizes->push_back(lanes.RatesOf(options.copy_bytes >> (2 * i)));
  }
  lanes.MeasureCopies(machine);
  machine.copy_overhead_ns =
      lanes.AddedNs(*kernel, bytes, CopyBenchmark::kLongLag);
  // Not the latency of consecutive copies: in a plan a copy waits for compute,
  // and compute waits for the copy.
  machine.d2h.latency_ns = machine.h2d.latency_ns =
      std::max(lanes.AddedNs(*kernel, bytes, 1) - machine.copy_overhead_ns,
               machine.d2h.latency_ns);
  return lanes.status();
}

absl::Status MeasureLaunch(cuda::Driver& driver,
                           const CudaDoctorOptions& options,
                           planner::Rates& rates) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            CudaDevice::Create(driver, options.device));
  LOADLINE_ASSIGN_OR_RETURN(const models::Graph small, OneNode("Relu", {{64}}));
  LOADLINE_ASSIGN_OR_RETURN(const auto kernel,
                            device->Prepare(small, small.nodes[0]));
  LOADLINE_ASSIGN_OR_RETURN(
      CopyBenchmark lanes,
      CopyBenchmark::Create(*device, options.copy_bytes, options.meter_ns));
  rates.launch_ns = lanes.LaunchNs(*kernel);
  return lanes.status();
}

// Runs a convolution, so that cuDNN is loaded. If it is not installed it uses
// no memory either, and models without convolutions do not need it.
absl::Status LoadConvolutions(cuda::Driver& driver,
                              const CudaDoctorOptions& options) {
  const absl::Status status =
      NodeNs(driver, options, OneNode("Conv", {{1, 8, 8, 8}, {8, 8, 3, 3}}))
          .status();
  return absl::IsUnavailable(status) ? absl::OkStatus() : status;
}

// Device memory in use besides an arena's bytes. All other devices must have
// been destroyed. The driver allocates whole pages: this arena just begins a
// new one, which is the largest overhead an arena can have.
absl::StatusOr<int64_t> ArenaOverheadBytes(cuda::Driver& driver,
                                           const CudaDoctorOptions& options) {
  LOADLINE_ASSIGN_OR_RETURN(const auto device,
                            CudaDevice::Create(driver, options.device));
  const int64_t arena_bytes = kDriverPageBytes + 1;
  LOADLINE_RETURN_IF_ERROR(device->CreateArena({.arena_bytes = arena_bytes}));
  LOADLINE_ASSIGN_OR_RETURN(const int64_t used_bytes, device->UsedBytes());
  return used_bytes - arena_bytes;
}

}  // namespace

absl::StatusOr<MeasuredMachine> MeasureCudaMachine(
    cuda::Driver& driver, const CudaDoctorOptions& options) {
  MeasuredMachine measured;
  planner::Machine& machine = measured.machine;
  planner::Rates& rates = machine.rates.emplace();
  LOADLINE_RETURN_IF_ERROR(driver.SetDevice(options.device.index));
  LOADLINE_ASSIGN_OR_RETURN(const cuda::DeviceFacts facts,
                            driver.Facts(options.device.index));
  machine.name = facts.name;
  machine.host_bytes = HostMemoryBytes();
  LOADLINE_RETURN_IF_ERROR(
      MeasureLanes(driver, options, machine, &measured.copies));
  LOADLINE_RETURN_IF_ERROR(MeasureLaunch(driver, options, rates));
  for (const auto& [name, type] :
       {std::pair("f32", DType::kF32), std::pair("bf16", DType::kBF16)}) {
    LOADLINE_ASSIGN_OR_RETURN(rates.matmul_flop_per_s[name],
                              MatMulRate(driver, options, type));
  }
  const int64_t floats = options.memory_bytes / DTypeBytes(DType::kF32);
  LOADLINE_ASSIGN_OR_RETURN(
      const int64_t memory_ns,
      NodeNs(driver, options, OneNode("Relu", {{floats}})));
  rates.memory_bytes_per_s = 2 * static_cast<double>(options.memory_bytes) /
                             (static_cast<double>(memory_ns) / 1e9);
  LOADLINE_RETURN_IF_ERROR(LoadConvolutions(driver, options));
  LOADLINE_ASSIGN_OR_RETURN(const cuda::MemoryUse use, driver.Memory());
  machine.device_bytes = use.total_bytes;
  LOADLINE_ASSIGN_OR_RETURN(machine.reserved_bytes,
                            ArenaOverheadBytes(driver, options));
  return measured;
}

absl::Status MeasureCudaCopies(cuda::Driver& driver,
                               const CudaDoctorOptions& options,
                               planner::Machine& machine) {
  LOADLINE_RETURN_IF_ERROR(driver.SetDevice(options.device.index));
  return MeasureLanes(driver, options, machine, nullptr);
}

}  // namespace loadline::executor
