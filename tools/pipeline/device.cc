// Tested by tests/tools/pipeline/device_test.cc, and on a GPU by tests/gpu.
#include "tools/pipeline/device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/cpu/device.h"
#include "executor/cpu/measure_machine.h"
#include "executor/cuda/make_device.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::tools {
namespace {

absl::Status OfCuda(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("--device cuda: ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<executor::Device>> MakeDevice(
    const std::string& device, const std::string& host_store) {
  if (device == kCpu) {
    return std::make_unique<executor::CpuDevice>(
        executor::CpuDeviceOptions{.host_store_path = host_store});
  }
  LOADLINE_CHECK(device == kCuda);
  if (!host_store.empty()) {
    return absl::InvalidArgumentError(
        "--host-store: a GPU copies to pinned memory, not to a file; leave it "
        "out, or run without --device cuda");
  }
  auto made = executor::MakeCudaDevice();
  if (!made.ok()) return OfCuda(made.status());
  return made;
}

absl::StatusOr<executor::MeasuredMachine> MeasureDevice(
    const std::string& device) {
  if (device == kCpu) {
    LOADLINE_ASSIGN_OR_RETURN(planner::Machine machine,
                              executor::MeasureMachine());
    return executor::MeasuredMachine{std::move(machine), {}};
  }
  auto measured = executor::MeasureCuda();
  if (!measured.ok()) return OfCuda(measured.status());
  return measured;
}

absl::Status MeasureCopiesOf(const std::string& device,
                             planner::Machine& machine) {
  if (device == kCpu) return executor::MeasureCopies({}, machine);
  const absl::Status measured = executor::MeasureCudaCopies(machine);
  return measured.ok() ? measured : OfCuda(measured);
}

}  // namespace loadline::tools
