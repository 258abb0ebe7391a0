// Wraps a device and provokes the bugs that a valid plan must survive:
//
//  - it pauses the lane for a random time before every launch and copy, so that
//    accesses ordered by timing alone come out of order;
//  - it adds canary bytes to every workspace, fills them before the kernel and
//    checks them after it: the error names the node, the bytes and the offset.
//
// Together with LoadOptions::poison, which overwrites freed bytes, a read that
// is too early or too late gives NaN. A plan that Verify accepts gives the same
// bits as without this wrapper. Works on every device, since it uses commands
// of the Device interface only.
#ifndef LOADLINE_EXECUTOR_DEVICE_STRESS_DEVICE_H_
#define LOADLINE_EXECUTOR_DEVICE_STRESS_DEVICE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "executor/device/device.h"

namespace loadline::executor {

inline constexpr uint8_t kCanaryByte = 0xC7;
inline constexpr int64_t kCanaryBytes = kMostCheckBytes;

struct StressOptions {
  uint64_t seed = 0;
  int64_t most_delay_ns = 500'000;  // 0: none
};

class StressDevice : public Device {
 public:
  StressDevice(std::unique_ptr<Device> device, const StressOptions& options)
      : device_(std::move(device)), options_(options) {}

  absl::string_view name() const override { return device_->name(); }
  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(
      const models::Graph& graph, const models::Node& node) override;
  bool is_host() const override { return device_->is_host(); }
  bool offers_algorithms() const override {
    return device_->offers_algorithms();
  }
  void SetAlgorithms(Algorithms algorithms) override {
    device_->SetAlgorithms(std::move(algorithms));
  }
  absl::Status CreateArena(const ArenaSpec& spec) override {
    return device_->CreateArena(spec);
  }
  absl::StatusOr<int64_t> UsedBytes() override { return device_->UsedBytes(); }
  bool has_arena() const override { return device_->has_arena(); }
  const ArenaSpec& arena() const override { return device_->arena(); }
  absl::Status Write(Space space, int64_t offset, const void* from,
                     int64_t bytes) override {
    return device_->Write(space, offset, from, bytes);
  }
  absl::Status Read(Space space, int64_t offset, void* to,
                    int64_t bytes) override {
    return device_->Read(space, offset, to, bytes);
  }
  absl::Status BeginStep() override;
  absl::Status Launch(const LaunchArgs& args) override;
  absl::Status Copy(const CopyArgs& args) override;
  absl::Status Fill(Lane lane, Space space, const Region& region,
                    uint8_t byte) override {
    return device_->Fill(lane, space, region, byte);
  }
  absl::Status Delay(const DelayArgs& args) override {
    return device_->Delay(args);
  }
  absl::Status Check(const CheckArgs& args) override {
    return device_->Check(args);
  }
  absl::Status Record(Lane lane, EventId event) override {
    return device_->Record(lane, event);
  }
  absl::Status Wait(Lane lane, EventId event) override {
    return device_->Wait(lane, event);
  }
  absl::Status Synchronize() override { return device_->Synchronize(); }
  void Abort() override { device_->Abort(); }
  CapturedStep Capture() override { return device_->Capture(); }
  absl::StatusOr<bool> Replay(CapturedStep step) override;
  void Forget(CapturedStep step) override { device_->Forget(step); }
  absl::Status EnableTrace(int32_t slot_count) override {
    return device_->EnableTrace(slot_count);
  }
  absl::Span<const TraceSpan> trace() const override {
    return device_->trace();
  }

 private:
  absl::Status Pause(Lane lane);

  std::unique_ptr<Device> device_;
  const StressOptions options_;
  uint64_t turn_ = 0;    // steps so far
  uint64_t pauses_ = 0;  // drawn since BeginStep
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_STRESS_DEVICE_H_
