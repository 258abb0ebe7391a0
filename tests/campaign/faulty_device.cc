// Used by planned_runs.cc.
#include "tests/campaign/faulty_device.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline {

using executor::CpuDevice;

absl::Status FaultyDevice::Count(Fault kind) {
  if (kind != fault_ || calls_++ != at_) return absl::OkStatus();
  const std::string text =
      absl::StrCat(kInjected, ": ", kFaultNames[static_cast<size_t>(kind)]);
  return kind == Fault::kArena ? absl::ResourceExhaustedError(text)
                               : absl::DataLossError(text);
}

absl::Status FaultyDevice::Pause(executor::Lane lane) {
  return CpuDevice::Delay({.lane = lane,
                           .seed = seed_ + (pauses_++ << 32),
                           .most_ns = most_delay_ns_,
                           .turn = &turn_});
}

absl::Status FaultyDevice::CreateArena(const executor::ArenaSpec& spec) {
  LOADLINE_RETURN_IF_ERROR(Count(Fault::kArena));
  return CpuDevice::CreateArena(spec);
}

absl::Status FaultyDevice::Write(executor::Space space, int64_t offset,
                                 const void* from, int64_t bytes) {
  LOADLINE_RETURN_IF_ERROR(Count(Fault::kWrite));
  return CpuDevice::Write(space, offset, from, bytes);
}

absl::Status FaultyDevice::Read(executor::Space space, int64_t offset, void* to,
                                int64_t bytes) {
  LOADLINE_RETURN_IF_ERROR(Count(Fault::kRead));
  return CpuDevice::Read(space, offset, to, bytes);
}

absl::Status FaultyDevice::BeginStep() {
  ++turn_;
  pauses_ = 0;
  return CpuDevice::BeginStep();
}

absl::Status FaultyDevice::Launch(const executor::LaunchArgs& args) {
  LOADLINE_RETURN_IF_ERROR(Count(Fault::kLaunch));
  LOADLINE_RETURN_IF_ERROR(Pause(executor::Lane::kCompute));
  return CpuDevice::Launch(args);
}

absl::Status FaultyDevice::Copy(const executor::CopyArgs& args) {
  LOADLINE_RETURN_IF_ERROR(Count(Fault::kCopy));
  LOADLINE_RETURN_IF_ERROR(Pause(args.lane));
  return CpuDevice::Copy(args);
}

absl::Status FaultyDevice::Synchronize() {
  LOADLINE_RETURN_IF_ERROR(CpuDevice::Synchronize());
  return Count(Fault::kStep);
}

}  // namespace loadline
