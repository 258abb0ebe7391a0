// The CPU device. The arena is one guarded mapping of exactly the planned
// bytes, the compute lane is the calling thread, and each copy lane is a thread
// that copies to and from a host store.
#ifndef LOADLINE_EXECUTOR_CPU_DEVICE_H_
#define LOADLINE_EXECUTOR_CPU_DEVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/cpu/arena.h"
#include "executor/cpu/copy_lane.h"
#include "executor/cpu/events.h"
#include "executor/cpu/host_store.h"
#include "executor/device/device.h"
#include "executor/device/operands.h"

namespace loadline::executor {

struct CpuDeviceOptions {
  HostStoreMaker make_store = MakeMemoryStore;
  // Commands that a copy lane's ring holds; beyond that the compute lane waits.
  // At least 1.
  int32_t lane_capacity = 4096;
  // Makes kernels. Empty: PrepareCpuKernel.
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const models::Graph&,
                                                        const models::Node&)>
      prepare;
  // Called on a lane's thread before each of its commands. For tests.
  std::function<void(Lane)> before_lane_command;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options = {});
  ~CpuDevice() override;

  absl::string_view name() const override { return "cpu"; }
  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(
      const models::Graph& graph, const models::Node& node) override;
  absl::Status CreateArena(const ArenaSpec& spec) override;
  bool has_arena() const override { return arena_ != nullptr; }
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
  absl::Status Check(const CheckArgs& args) override;
  absl::Status Record(Lane lane, EventId event) override;
  absl::Status Wait(Lane lane, EventId event) override;
  absl::Status Synchronize() override;
  void Abort() override;
  absl::Status EnableTrace(int32_t slot_count) override;
  absl::Span<const TraceSpan> trace() const override { return trace_; }

 private:
  CopyLane& lane(Lane lane);
  void Enqueue(Lane on, const LaneCommand& command);
  void WakeLanes();
  absl::Status CheckEvent(EventId event) const;

  CpuDeviceOptions options_;
  ArenaSpec spec_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<HostStore> store_;
  std::unique_ptr<EventTable> events_;
  FirstError error_;
  std::vector<TraceSpan> trace_;
  LaneContext context_;
  Operands operands_;
  std::unique_ptr<CopyLane> d2h_;  // last: their threads use the members above
  std::unique_ptr<CopyLane> h2d_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CPU_DEVICE_H_
