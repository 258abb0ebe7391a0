// The Device interface: everything that the run loop needs from a machine. It
// is modelled on GPU streams: three lanes are three streams and events order
// them. Between BeginStep and Synchronize no host decision depends on data, so
// a whole step can be captured once and replayed.
//
// Memory is addressed by offsets only. A device checks that every access of
// every command lies inside its arena, whatever the plan says ("Hard budget").
//
//   device.CreateArena({.arena_bytes = plan.arena_bytes, ...});   // once
//   device.Write(Space::kDevice, 0, data, bytes);  // outside steps
//   device.BeginStep();
//   device.Launch({.kernel = k, .inputs = in, .outputs = out, ...});
//   device.Record(Lane::kCompute, done);
//   device.Wait(Lane::kD2h, done);
//   device.Copy({.lane = Lane::kD2h, .device_offset = 0, ...});
//   device.Synchronize();
//   CapturedStep step = device.Capture();  // on devices that replay steps
//   device.Replay(step);                   // the next step
//   device.Synchronize();
//
// Threads: one caller at a time.
#ifndef LOADLINE_EXECUTOR_DEVICE_DEVICE_H_
#define LOADLINE_EXECUTOR_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/device/algorithms.h"
#include "executor/device/kernel.h"
#include "models/graph.h"
#include "planner/problem/plan.h"

namespace loadline::executor {

using planner::Lane;
using planner::Space;

enum class EventId : int32_t {};
inline constexpr EventId kNoEvent{-1};
constexpr size_t Index(EventId id) { return static_cast<size_t>(id); }

// A step that a device has captured and can replay.
enum class CapturedStep : int64_t {};
inline constexpr CapturedStep kNotCaptured{-1};

// Bytes [offset, offset + bytes) of the arena or of the host store.
struct Region {
  int64_t offset = 0;
  int64_t bytes = 0;
};
// An absent optional input, or no workspace.
inline constexpr Region kNoRegion{-1, 0};
constexpr bool IsPresent(const Region& r) { return r.offset >= 0; }
constexpr bool Overlap(const Region& a, const Region& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// OutOfRange unless [offset, offset + bytes) lies in [0, limit_bytes).
absl::Status CheckInside(const Region& region, int64_t limit_bytes,
                         absl::string_view what);

// Everything that a device allocates, once, before the first step.
struct ArenaSpec {
  int64_t arena_bytes = 0;
  int64_t host_bytes = 0;
  // Of all uploads of a step. A device that cannot copy from the caller's
  // memory at full rate holds as many bytes on the host.
  int64_t upload_bytes = 0;
  int32_t event_count = 0;
  int32_t max_operands =
      0;  // upper bound of inputs, and of outputs, of a launch
};

// Runs a kernel on the compute lane.
struct LaunchArgs {
  Kernel* kernel = nullptr;
  absl::Span<const Region> inputs;  // kNoRegion: absent
  absl::Span<const Region> outputs;
  Region workspace = kNoRegion;
  // Same address in every step, so that a captured step can read it.
  const StepScalars* scalars = nullptr;
  int32_t trace_slot = -1;
  const char* name = "";  // for a profiler; must outlive the step
};

// A copy between the arena and the host store, on kD2h or kH2d; or an upload,
// on kH2d, from the caller's memory into the arena.
struct CopyArgs {
  Lane lane = Lane::kD2h;
  int64_t device_offset = 0;
  int64_t host_offset = 0;  // of an upload: in the bytes of all uploads
  int64_t bytes = 0;
  // Not null: an upload from the address that is here when a step begins. It is
  // read anew in every step, also in replayed ones. The bytes stay as they are
  // until the step has ended.
  const std::byte* const* upload = nullptr;
  int32_t trace_slot = -1;
  const char* name = "";
};

// Pauses a lane for a random time, drawn anew in every step, also in replayed
// ones (executor/device/stress_commands.h).
struct DelayArgs {
  Lane lane = Lane::kCompute;
  uint64_t seed = 0;
  int64_t most_ns = 0;
  const uint64_t* turn = nullptr;  // step counter; must outlive the step
};

// Checks that bytes of the arena all equal `byte` at this point of the compute
// lane.
inline constexpr int64_t kMostCheckBytes = 128;
struct CheckArgs {
  Region region;
  uint8_t byte = 0;
  absl::string_view owner;  // named by the error; must outlive the step
};

// When a command ran, on the device's clock, counted from BeginStep.
struct TraceSpan {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual absl::string_view name() const = 0;

  // Makes the kernel of a graph's node. Unimplemented: this device has none.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Prepare(
      const models::Graph& graph, const models::Node& node) = 0;

  // Whether the device computes on the host's own memory and processor. On
  // other devices the host must submit each command before it runs, and
  // submitting a small launch takes longer than running it; a step traced
  // launch by launch is then slower than a replayed one.
  virtual bool is_host() const { return true; }
  // Whether some kernels offer several algorithms (Kernel::algorithms).
  virtual bool offers_algorithms() const { return false; }
  // Prepare uses these algorithms from now on. Replaces earlier ones.
  virtual void SetAlgorithms(Algorithms) {}  // NOLINT: taken over

  // Allocates the arena, once. ResourceExhausted: the machine has less memory.
  virtual absl::Status CreateArena(const ArenaSpec& spec) = 0;
  // Device memory in use by all processes, as the driver reports it; 0 where
  // the device is the host itself.
  virtual absl::StatusOr<int64_t> UsedBytes() { return 0; }
  virtual bool has_arena() const = 0;
  virtual const ArenaSpec& arena() const = 0;

  // Copies between the caller's memory and the device's. Outside steps only.
  virtual absl::Status Write(Space space, int64_t offset, const void* from,
                             int64_t bytes) = 0;
  virtual absl::Status Read(Space space, int64_t offset, void* to,
                            int64_t bytes) = 0;

  // Starts a step: no event is recorded yet.
  virtual absl::Status BeginStep() = 0;
  virtual absl::Status Launch(const LaunchArgs& args) = 0;
  virtual absl::Status Copy(const CopyArgs& args) = 0;
  // For finding bugs (poison.h, stress_device.h). Fill sets bytes of the arena
  // or, on a copy lane, of the host store. Check reports wrong bytes, at once
  // or from Synchronize, as Internal.
  virtual absl::Status Fill(Lane lane, Space space, const Region& region,
                            uint8_t byte) = 0;
  virtual absl::Status Delay(const DelayArgs& args) = 0;
  virtual absl::Status Check(const CheckArgs& args) = 0;
  // The event happens when everything submitted before it on the lane has
  // ended. At most once per event and step.
  virtual absl::Status Record(Lane lane, EventId event) = 0;
  // Nothing submitted after it on the lane starts before the event has
  // happened. Record of an event must be called before its Wait.
  virtual absl::Status Wait(Lane lane, EventId event) = 0;
  // Waits for all lanes. Returns the first error of the step, on any lane.
  virtual absl::Status Synchronize() = 0;
  // After an error: drops what has not started on the lanes and returns once
  // they are idle. The contents of the arena are then undefined.
  virtual void Abort() = 0;

  // Captures the step that has just ended without error, so that it can be run
  // again as a whole. Useful where submitting a step costs time. The step's
  // kernels and scalars must stay valid until Forget. kNotCaptured: this device
  // captures nothing.
  virtual CapturedStep Capture() { return kNotCaptured; }
  // Takes the place of BeginStep and the step's commands; Synchronize follows.
  // Scalars are read anew. False: the step is no longer captured and must be
  // submitted again.
  virtual absl::StatusOr<bool> Replay(CapturedStep) { return false; }
  virtual void Forget(CapturedStep) {}

  // From now on each command records its times in its trace slot. Drops
  // captured steps. Allocates here, not in steps.
  virtual absl::Status EnableTrace(int32_t slot_count) = 0;
  // The last step's times, by trace slot; empty where tracing is off.
  virtual absl::Span<const TraceSpan> trace() const = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_DEVICE_H_
