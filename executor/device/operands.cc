// "Hard budget": every address given to a kernel or a copy is computed here,
// after its region was checked. Tested in tests/executor/cpu/cpu_device_test.cc
// and tests/executor/cuda/cuda_device_errors_test.cc.
#include "executor/device/operands.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {

absl::Status CheckLaunch(const LaunchArgs& args, const ArenaSpec& spec) {
  const auto most = static_cast<size_t>(spec.max_operands);
  if (args.inputs.size() > most || args.outputs.size() > most) {
    return absl::OutOfRangeError(absl::StrCat(
        "a launch with ", args.inputs.size(), " inputs and ",
        args.outputs.size(), " outputs; the arena was created for ",
        spec.max_operands));
  }
  for (const Region& r : args.inputs) {
    if (!IsPresent(r)) continue;
    LOADLINE_RETURN_IF_ERROR(
        CheckInside(r, spec.arena_bytes, "input of a launch"));
  }
  for (const Region& r : args.outputs) {
    if (!IsPresent(r)) continue;
    LOADLINE_RETURN_IF_ERROR(
        CheckInside(r, spec.arena_bytes, "output of a launch"));
  }
  if (IsPresent(args.workspace)) {
    LOADLINE_RETURN_IF_ERROR(
        CheckInside(args.workspace, spec.arena_bytes, "workspace of a launch"));
  }
  const int64_t workspace_bytes =
      IsPresent(args.workspace) ? args.workspace.bytes : 0;
  if (args.kernel->workspace_bytes() > workspace_bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("a kernel needs ", args.kernel->workspace_bytes(),
                     " bytes of workspace and was given ", workspace_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckCopy(const CopyArgs& args, const ArenaSpec& spec) {
  if (args.lane == Lane::kCompute) {
    return absl::InvalidArgumentError("a copy on the compute lane");
  }
  LOADLINE_RETURN_IF_ERROR(CheckInside({args.device_offset, args.bytes},
                                       spec.arena_bytes,
                                       "device side of a copy"));
  if (args.upload != nullptr) {
    if (args.lane != Lane::kH2d) {
      return absl::InvalidArgumentError("an upload on another lane than h2d");
    }
    return CheckInside({args.host_offset, args.bytes}, spec.upload_bytes,
                       "host side of an upload");
  }
  return CheckInside({args.host_offset, args.bytes}, spec.host_bytes,
                     "host side of a copy");
}

absl::Status CheckFill(Lane lane, Space space, const Region& region,
                       const ArenaSpec& spec) {
  if (space == Space::kDevice) {
    return CheckInside(region, spec.arena_bytes, "fill");
  }
  if (lane == Lane::kCompute) {
    return absl::InvalidArgumentError(
        "a fill of the host store on the compute lane");
  }
  return CheckInside(region, spec.host_bytes, "fill of the host store");
}

absl::Status CheckCheck(const CheckArgs& args, const ArenaSpec& spec) {
  if (args.region.bytes > kMostCheckBytes) {
    return absl::OutOfRangeError(absl::StrCat(
        "a check of ", args.region.bytes, " bytes, above ", kMostCheckBytes));
  }
  return CheckInside(args.region, spec.arena_bytes, "check");
}

KernelArgs Operands::Resolve(const LaunchArgs& args, std::byte* base) {
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    inputs_[i] =
        IsPresent(args.inputs[i]) ? base + args.inputs[i].offset : nullptr;
  }
  for (size_t i = 0; i < args.outputs.size(); ++i) {
    outputs_[i] =
        IsPresent(args.outputs[i]) ? base + args.outputs[i].offset : nullptr;
  }
  return {.inputs = {inputs_.data(), args.inputs.size()},
          .outputs = {outputs_.data(), args.outputs.size()},
          .workspace = args.kernel->workspace_bytes() > 0
                           ? base + args.workspace.offset
                           : nullptr,
          .scalars = args.scalars};
}

}  // namespace loadline::executor
