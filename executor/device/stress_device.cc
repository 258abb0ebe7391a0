// The canary is part of the workspace: a guarded kernel asks for more bytes, so
// plans made on this device include them, and plans made elsewhere are refused
// where they lack them. Tested in tests/executor/device/stress_device_test.cc.
#include "executor/device/stress_device.h"

#include <string>
#include <utility>

#include "executor/device/node_label.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

class GuardedKernel final : public Kernel {
 public:
  GuardedKernel(std::unique_ptr<Kernel> kernel, const models::Node& node)
      : kernel_(std::move(kernel)), owner_(NodeLabel(node)) {}

  int64_t workspace_bytes() const override {
    const int64_t bytes = kernel_->workspace_bytes();
    return bytes == 0 ? 0 : bytes + kCanaryBytes;
  }
  absl::Status Run(const KernelArgs& args) override {
    return kernel_->Run(args);
  }

  Kernel& kernel() { return *kernel_; }
  const std::string& owner() const { return owner_; }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::string owner_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> StressDevice::Prepare(
    const models::Graph& graph, const models::Node& node) {
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                            device_->Prepare(graph, node));
  return std::make_unique<GuardedKernel>(std::move(kernel), node);
}

absl::Status StressDevice::BeginStep() {
  ++turn_;
  pauses_ = 0;
  return device_->BeginStep();
}

absl::StatusOr<bool> StressDevice::Replay(CapturedStep step) {
  ++turn_;
  return device_->Replay(step);
}

absl::Status StressDevice::Pause(Lane lane) {
  if (options_.most_delay_ns == 0) return absl::OkStatus();
  return device_->Delay({.lane = lane,
                         .seed = options_.seed + (pauses_++ << 32),
                         .most_ns = options_.most_delay_ns,
                         .turn = &turn_});
}

absl::Status StressDevice::Launch(const LaunchArgs& args) {
  auto* guarded = dynamic_cast<GuardedKernel*>(args.kernel);
  LOADLINE_CHECK(guarded != nullptr);
  LOADLINE_RETURN_IF_ERROR(Pause(Lane::kCompute));
  LaunchArgs inner = args;
  inner.kernel = &guarded->kernel();
  const int64_t bytes = inner.kernel->workspace_bytes();
  if (bytes == 0 || !IsPresent(args.workspace)) return device_->Launch(inner);

  inner.workspace.bytes = bytes;
  const Region canary = {args.workspace.offset + bytes, kCanaryBytes};
  LOADLINE_RETURN_IF_ERROR(
      device_->Fill(Lane::kCompute, Space::kDevice, canary, kCanaryByte));
  LOADLINE_RETURN_IF_ERROR(device_->Launch(inner));
  return device_->Check(
      {.region = canary, .byte = kCanaryByte, .owner = guarded->owner()});
}

absl::Status StressDevice::Copy(const CopyArgs& args) {
  LOADLINE_RETURN_IF_ERROR(Pause(args.lane));
  return device_->Copy(args);
}

}  // namespace loadline::executor
