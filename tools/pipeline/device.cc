// Tested by tests/tools/pipeline/device_test.cc, and on a GPU by tests/gpu.
#include "tools/pipeline/device.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "executor/cpu/host_store.h"
#include "executor/cpu/measure_machine.h"
#include "executor/cuda/make_device.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace loadline::tools {
namespace {

absl::Status OfCuda(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("--device cuda: ", status.message()));
}

absl::Status CheckHostStore(const std::string& device,
                            const std::string& host_store) {
  if (host_store.empty()) return absl::OkStatus();
  if (device == kCuda) {
    return absl::InvalidArgumentError(
        "--host-store: a GPU copies to pinned memory, not to a file; leave it "
        "out, or run without --device cuda");
  }
  if (device == kEmulated) {
    return absl::InvalidArgumentError(
        "--host-store: an emulated device copies to memory, not to a file; "
        "leave it out, or run without --emulate-device");
  }
  if (executor::IsInMemory(host_store)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--host-store ", host_store,
        ": this file system is in memory, where a copy frees nothing; name a "
        "file on a disk, or emulate a device with --emulate-device"));
  }
  // The run would ask for its bytes minutes later.
  return executor::MakeFileStore(host_store, 1).status();
}

// The store of a CPU that has no folder for one.
absl::StatusOr<std::unique_ptr<executor::HostStore>> NoStore(int64_t bytes) {
  if (bytes == 0) return executor::MakeMemoryStore(bytes);
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan copies ", bytes,
      " bytes out of its memory, but neither $TMPDIR nor /var/tmp nor /tmp is "
      "a folder on a disk that can be written to; name a file with "
      "--host-store, or plan with --no-offload"));
}

executor::DoctorOptions DoctorOptionsFor(const std::string& device) {
  executor::DoctorOptions options;
  const std::string folder = HostStoreFolder();
  if (device == kEmulated || folder.empty()) return options;
  options.make_store = executor::FileStoreAt(folder);
  options.host_bytes = executor::FreeBytesIn(folder);
  return options;
}

// With a host store in memory, whose copies no plan uses: for a run that may
// need none.
absl::StatusOr<planner::Machine> MeasureWithoutStore(
    executor::DoctorOptions options) {
  options.make_store = executor::MakeMemoryStore;
  options.host_bytes = 0;
  LOADLINE_ASSIGN_OR_RETURN(planner::Machine machine,
                            executor::MeasureMachine(options));
  machine.d2h.bytes_per_s = machine.h2d.bytes_per_s = 0;
  machine.host_bytes = 0;
  return machine;
}

absl::StatusOr<planner::Machine> MeasureCpu(const std::string& device,
                                            int64_t most_bytes) {
  executor::DoctorOptions options = DoctorOptionsFor(device);
  options.buffer_bytes = executor::BufferBytesWithin(most_bytes);
  const bool on_disk = device == kCpu && !HostStoreFolder().empty();
  if (device == kCpu && !on_disk) return MeasureWithoutStore(options);
  auto machine = executor::MeasureMachine(options);
  if (!machine.ok() && on_disk) {
    spdlog::warn("no plan will copy to the disk: {}",
                 std::string(machine.status().message()));
    machine = MeasureWithoutStore(options);
    if (machine.ok()) machine->provisional = kNoHostStore;
  }
  return machine;
}

}  // namespace

std::string HostStoreFolder() {
  const char* own = std::getenv("TMPDIR");
  for (const std::string& folder :
       {std::string(own == nullptr ? "" : own), std::string("/var/tmp"),
        std::string("/tmp")}) {
    std::error_code error;
    if (!folder.empty() && std::filesystem::is_directory(folder, error) &&
        access(folder.c_str(), W_OK) == 0 && !executor::IsInMemory(folder)) {
      return folder;
    }
  }
  return "";
}

absl::StatusOr<std::unique_ptr<executor::Device>> MakeDevice(
    const std::string& device, const std::string& host_store) {
  LOADLINE_RETURN_IF_ERROR(CheckHostStore(device, host_store));
  if (device == kEmulated) return std::make_unique<executor::CpuDevice>();
  if (device == kCpu) {
    const std::string at = host_store.empty() ? HostStoreFolder() : host_store;
    return std::make_unique<executor::CpuDevice>(executor::CpuDeviceOptions{
        .make_store = at.empty() ? executor::HostStoreMaker(NoStore)
                                 : executor::FileStoreAt(at)});
  }
  LOADLINE_CHECK(device == kCuda);
  auto made = executor::MakeCudaDevice();
  if (!made.ok()) return OfCuda(made.status());
  return made;
}

bool CanMeasureFully(int64_t most_bytes) {
  return executor::BufferBytesWithin(most_bytes) ==
         executor::kWantedBufferBytes;
}

absl::StatusOr<executor::MeasuredMachine> MeasureDevice(
    const std::string& device, int64_t most_bytes) {
  if (device != kCuda) {
    LOADLINE_ASSIGN_OR_RETURN(planner::Machine machine,
                              MeasureCpu(device, most_bytes));
    if (machine.provisional.empty() && !CanMeasureFully(most_bytes)) {
      machine.provisional = "little memory";
    }
    return executor::MeasuredMachine{std::move(machine), {}};
  }
  auto measured = executor::MeasureCuda();
  if (!measured.ok()) return OfCuda(measured.status());
  return measured;
}

absl::Status MeasureCopiesOf(const std::string& device,
                             planner::Machine& machine) {
  if (device != kCuda) {
    if (device == kCpu && HostStoreFolder().empty()) return absl::OkStatus();
    return executor::MeasureCopies(DoctorOptionsFor(device), machine);
  }
  const absl::Status measured = executor::MeasureCudaCopies(machine);
  return measured.ok() ? measured : OfCuda(measured);
}

}  // namespace loadline::tools
