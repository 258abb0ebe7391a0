// State that the device keeps between steps, and copies of bytes in and out;
// device_step.cc records and runs steps. Tested without a GPU in
// tests/executor/cuda/cuda_device_test.cc, on a fake driver whose streams run
// their work late and in any order that events allow.
#include "executor/cuda/device.h"

#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

using cuda::CopyKind;
using cuda::OwnedMemory;
using cuda::PinnedRegion;

absl::StatusOr<OwnedMemory> Allocate(cuda::Driver& driver, int64_t bytes) {
  LOADLINE_ASSIGN_OR_RETURN(std::byte* const memory, driver.Malloc(bytes));
  return OwnedMemory(driver, memory);
}

}  // namespace

CudaDevice::CudaDevice(cuda::Driver& driver, CudaDeviceOptions options)
    : driver_(driver),
      options_(std::move(options)),
      lanes_(driver),
      timer_(driver) {}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(
    cuda::Driver& driver, CudaDeviceOptions options) {
  LOADLINE_CHECK(options.prepare != nullptr);
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(driver, std::move(options)));
  LOADLINE_RETURN_IF_ERROR(driver.SetDevice(device->options_.index));
  LOADLINE_ASSIGN_OR_RETURN(device->facts_,
                            driver.Facts(device->options_.index));
  return device;
}

CudaDevice::~CudaDevice() {
  if (!has_arena_) return;
  driver_.SetDevice(options_.index).IgnoreError();
  Abort();
}

absl::StatusOr<int64_t> CudaDevice::UsedBytes() {
  LOADLINE_RETURN_IF_ERROR(driver_.SetDevice(options_.index));
  LOADLINE_ASSIGN_OR_RETURN(const cuda::MemoryUse use, driver_.Memory());
  return use.total_bytes - use.free_bytes;
}

absl::StatusOr<std::unique_ptr<Kernel>> CudaDevice::Prepare(
    const models::Graph& graph, const models::Node& node) {
  return options_.prepare(graph, WithAlgorithm(graph, node, algorithms_));
}

void CudaDevice::SetAlgorithms(Algorithms algorithms) {
  algorithms_ = std::move(algorithms);
}

absl::Status CudaDevice::CreateArena(const ArenaSpec& spec) {
  if (has_arena_) {
    return absl::FailedPreconditionError("the device already has its arena");
  }
  if (spec.arena_bytes < 0 || spec.host_bytes < 0 || spec.upload_bytes < 0 ||
      spec.event_count < 0 || spec.max_operands < 0) {
    return absl::InvalidArgumentError("a negative number in an arena's spec");
  }
  LOADLINE_RETURN_IF_ERROR(driver_.SetDevice(options_.index));
  OwnedMemory memory;
  if (spec.arena_bytes > 0) {
    LOADLINE_ASSIGN_OR_RETURN(memory, Allocate(driver_, spec.arena_bytes));
  }
  LOADLINE_ASSIGN_OR_RETURN(OwnedMemory control,
                            Allocate(driver_, kControlBytes));
  const int node = cuda::NumaNodeOf(facts_.pci_id);
  LOADLINE_ASSIGN_OR_RETURN(
      std::unique_ptr<PinnedRegion> host,
      PinnedRegion::Create(driver_, spec.host_bytes, node));
  LOADLINE_ASSIGN_OR_RETURN(
      std::unique_ptr<PinnedRegion> uploads,
      PinnedRegion::Create(driver_, spec.upload_bytes, node));
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<PinnedRegion> pinned_control,
                            PinnedRegion::Create(driver_, kControlBytes, node));
  cuda::Lanes lanes(driver_);
  LOADLINE_RETURN_IF_ERROR(lanes.Create(facts_.copy_engines, spec.event_count));
  new (pinned_control->base()) Control();
  memory_ = std::move(memory);
  control_ = std::move(control);
  host_ = std::move(host);
  uploads_ = std::move(uploads);
  pinned_control_ = std::move(pinned_control);
  lanes_ = std::move(lanes);
  operands_ = Operands(spec.max_operands);
  spec_ = spec;
  has_arena_ = true;
  return absl::OkStatus();
}

absl::Status CudaDevice::Write(Space space, int64_t offset, const void* from,
                               int64_t bytes) {
  LOADLINE_CHECK(has_arena_ && state_ == State::kIdle);
  const bool host = space == Space::kHost;
  LOADLINE_RETURN_IF_ERROR(
      CheckInside({offset, bytes}, host ? spec_.host_bytes : spec_.arena_bytes,
                  host ? "write to the host store" : "write to the arena"));
  if (bytes == 0) return absl::OkStatus();
  if (host) {
    std::memcpy(host_->base() + offset, from, bytes);
    return absl::OkStatus();
  }
  LOADLINE_RETURN_IF_ERROR(driver_.SetDevice(options_.index));
  const cuda::Stream stream = lanes_.stream(Lane::kCompute);
  LOADLINE_RETURN_IF_ERROR(driver_.Copy(memory_.get() + offset, from, bytes,
                                        CopyKind::kToDevice, stream));
  return driver_.SynchronizeStream(stream);
}

absl::Status CudaDevice::Read(Space space, int64_t offset, void* to,
                              int64_t bytes) {
  LOADLINE_CHECK(has_arena_ && state_ == State::kIdle);
  const bool host = space == Space::kHost;
  LOADLINE_RETURN_IF_ERROR(
      CheckInside({offset, bytes}, host ? spec_.host_bytes : spec_.arena_bytes,
                  host ? "read of the host store" : "read of the arena"));
  if (bytes == 0) return absl::OkStatus();
  if (host) {
    std::memcpy(to, host_->base() + offset, bytes);
    return absl::OkStatus();
  }
  LOADLINE_RETURN_IF_ERROR(driver_.SetDevice(options_.index));
  const cuda::Stream stream = lanes_.stream(Lane::kCompute);
  LOADLINE_RETURN_IF_ERROR(driver_.Copy(to, memory_.get() + offset, bytes,
                                        CopyKind::kToHost, stream));
  return driver_.SynchronizeStream(stream);
}

absl::Status CudaDevice::EnableTrace(int32_t slot_count) {
  LOADLINE_CHECK(state_ == State::kIdle);
  LOADLINE_RETURN_IF_ERROR(driver_.SetDevice(options_.index));
  captured_.clear();
  return timer_.Enable(slot_count);
}

}  // namespace loadline::executor
