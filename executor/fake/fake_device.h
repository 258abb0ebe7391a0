// A device without a machine, for tests of the run loop. It records a step's
// commands, then replays them on a simulated clock with a plan's costs. It
// reports what a real machine shows only now and then: two conflicting accesses
// of the same bytes at one time, and lanes that wait for each other. Faults can
// be injected. Kernels compute nothing.
#ifndef LOADLINE_EXECUTOR_FAKE_FAKE_DEVICE_H_
#define LOADLINE_EXECUTOR_FAKE_FAKE_DEVICE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/device/device.h"
#include "planner/problem/machine.h"

namespace loadline::executor {

struct FakeDeviceOptions {
  // Copy rates, latency and the bidirectional factor.
  planner::Machine machine;
  // Duration of a node; empty: 1000 ns each.
  std::function<int64_t(const models::Node&)> node_ns;
  std::function<int64_t(const models::Node&)> workspace_bytes;
  // Number of the copy or launch that fails, counted from 0 over the device's
  // life. A launch fails when it is submitted, a copy at Synchronize.
  int64_t fail_launch = -1;
  int64_t fail_copy = -1;
  // Factor on every duration, by lane.
  std::array<double, planner::kLaneCount> slowdown = {1.0, 1.0, 1.0};
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(FakeDeviceOptions options);

  absl::string_view name() const override { return "fake"; }
  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(
      const models::Graph& graph, const models::Node& node) override;
  absl::Status CreateArena(const ArenaSpec& spec) override;
  bool has_arena() const override { return has_arena_; }
  const ArenaSpec& arena() const override { return spec_; }
  absl::Status Write(Space space, int64_t offset, const void* from,
                     int64_t bytes) override;
  absl::Status Read(Space space, int64_t offset, void* to,
                    int64_t bytes) override;
  absl::Status BeginStep() override;
  absl::Status Launch(const LaunchArgs& args) override;
  absl::Status Copy(const CopyArgs& args) override;
  absl::Status Fill(Lane lane, Space space, const Region& region,
                    uint8_t byte) override;
  absl::Status Delay(const DelayArgs& args) override;
  // Accesses the bytes but always succeeds, since kernels compute nothing.
  absl::Status Check(const CheckArgs& args) override;
  absl::Status Record(Lane lane, EventId event) override;
  absl::Status Wait(Lane lane, EventId event) override;
  // Replays the step. Internal: a race, or lanes that wait for each other.
  absl::Status Synchronize() override;
  void Abort() override;
  absl::Status EnableTrace(int32_t slot_count) override;
  absl::Span<const TraceSpan> trace() const override { return trace_; }

  // When the last step ended on the simulated clock.
  int64_t step_ns() const { return step_ns_; }

 private:
  struct Access {
    Space space;
    Region region;
    bool write;
  };
  struct Op {
    enum class Kind { kWork, kCopy, kRecord, kWait } kind;
    int32_t event = -1;
    double work = 0;  // kWork: ns; kCopy: bytes
    std::vector<Access> accesses;
    int32_t trace_slot = -1;
    double start_ns = 0;
    double end_ns = 0;
  };
  struct Clock;

  Op& Push(Lane lane, Op op);
  absl::Status Simulate();
  bool TakeInstantOps(Clock& clock);
  void Advance(Clock& clock);
  absl::Status FindRace() const;

  FakeDeviceOptions options_;
  ArenaSpec spec_;
  bool has_arena_ = false;
  std::vector<std::byte> arena_;
  std::vector<std::byte> host_;
  std::array<std::vector<Op>, planner::kLaneCount> ops_;
  absl::Status pending_error_;
  int64_t launches_ = 0;
  int64_t copies_ = 0;
  int64_t step_ns_ = 0;
  std::vector<TraceSpan> trace_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_FAKE_FAKE_DEVICE_H_
