// The Device seam: everything the run loop asks of a machine. Stream-like, so
// that a GPU can stand behind it: three lanes are three streams, events order
// them, and between BeginStep and Synchronize the host decides nothing that
// depends on data, so a whole step can be captured once and replayed.
//
// Memory is named by offsets only. A device checks that every access of every
// command lies inside its arena, whatever the plan says ("Hard budget").
//
//   device.CreateArena({.arena_bytes = plan.arena_bytes, ...});   // once
//   device.Write(Space::kDevice, 0, data, bytes);  // outside steps
//   device.BeginStep();
//   device.Launch({.kernel = k, .inputs = in, .outputs = out, ...});
//   device.Record(Lane::kCompute, done);
//   device.Wait(Lane::kD2h, done);
//   device.Copy({.lane = Lane::kD2h, .device_offset = 0, ...});
//   device.Synchronize();
//   CapturedStep step = device.Capture();  // where a device can repeat a step
//   itself device.Replay(step);            // the next step
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

// A step that a device keeps.
enum class CapturedStep : int64_t {};
inline constexpr CapturedStep kNotCaptured{-1};

// Bytes [offset, offset + bytes) of the arena or of the host store.
struct Region {
  int64_t offset = 0;
  int64_t bytes = 0;
};
// Stands for an absent optional input, or for no workspace.
inline constexpr Region kNoRegion{-1, 0};
constexpr bool IsPresent(const Region& r) { return r.offset >= 0; }
constexpr bool Overlap(const Region& a, const Region& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// OutOfRange unless [offset, offset + bytes) lies in [0, limit_bytes).
absl::Status CheckInside(const Region& region, int64_t limit_bytes,
                         absl::string_view what);

// All that a device sets aside, once, before the first step.
struct ArenaSpec {
  int64_t arena_bytes = 0;
  int64_t host_bytes = 0;
  int32_t event_count = 0;
  int32_t max_operands = 0;  // most inputs, or outputs, of one launch
};

// A kernel on the compute lane.
struct LaunchArgs {
  Kernel* kernel = nullptr;
  absl::Span<const Region> inputs;  // kNoRegion: absent
  absl::Span<const Region> outputs;
  Region workspace = kNoRegion;
  // At one address through all steps, so that a captured step can read it.
  const StepScalars* scalars = nullptr;
  int32_t trace_slot = -1;
  const char* name = "";  // for a profiler; stays where it is
};

// A copy between the arena and the host store, on kD2h or kH2d.
struct CopyArgs {
  Lane lane = Lane::kD2h;
  int64_t device_offset = 0;
  int64_t host_offset = 0;
  int64_t bytes = 0;
  int32_t trace_slot = -1;
  const char* name = "";
};

// A pause of a lane, of a length that is drawn anew in every turn, replayed
// ones too (executor/device/stress_commands.h).
struct DelayArgs {
  Lane lane = Lane::kCompute;
  uint64_t seed = 0;
  int64_t most_ns = 0;
  const uint64_t* turn = nullptr;  // stays where it is, as the step does
};

// Bytes of the arena that must all be `byte` at this place of the compute lane.
inline constexpr int64_t kMostCheckBytes = 128;
struct CheckArgs {
  Region region;
  uint8_t byte = 0;
  absl::string_view owner;  // whom the error names; stays where it is
};

// When a command ran, on the device's clock, from its BeginStep.
struct TraceSpan {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual absl::string_view name() const = 0;

  // A kernel for a node of a graph. Unimplemented: no kernel for it.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Prepare(
      const models::Graph& graph, const models::Node& node) = 0;

  // Whether the caller's memory and processor are the device's. Elsewhere a
  // step has to be told before it runs, which takes longer than small launches
  // do, so a step whose launches are traced is slower than one that is
  // replayed.
  virtual bool is_host() const { return true; }
  // Whether kernels may have algorithms to choose among (Kernel::algorithms).
  virtual bool offers_algorithms() const { return false; }
  // From now on Prepare takes these algorithms, in place of those named before.
  virtual void SetAlgorithms(Algorithms) {}  // NOLINT: taken over

  // Once. ResourceExhausted where the machine has less.
  virtual absl::Status CreateArena(const ArenaSpec& spec) = 0;
  // Of the whole device, by whomever, as its driver says; 0 where the device is
  // the host itself.
  virtual absl::StatusOr<int64_t> UsedBytes() { return 0; }
  virtual bool has_arena() const = 0;
  virtual const ArenaSpec& arena() const = 0;

  // Between the caller's memory and the device's, outside steps only.
  virtual absl::Status Write(Space space, int64_t offset, const void* from,
                             int64_t bytes) = 0;
  virtual absl::Status Read(Space space, int64_t offset, void* to,
                            int64_t bytes) = 0;

  // Starts a step: every event is unrecorded again.
  virtual absl::Status BeginStep() = 0;
  virtual absl::Status Launch(const LaunchArgs& args) = 0;
  virtual absl::Status Copy(const CopyArgs& args) = 0;
  // For finding bugs (poison.h, stress_device.h). Fill sets bytes of the arena
  // or, on a copy lane, of the host store. An error that Check finds is told at
  // once or by Synchronize: Internal.
  virtual absl::Status Fill(Lane lane, Space space, const Region& region,
                            uint8_t byte) = 0;
  virtual absl::Status Delay(const DelayArgs& args) = 0;
  virtual absl::Status Check(const CheckArgs& args) = 0;
  // The event happens when everything before it on the lane has ended. At
  // most once per event and step.
  virtual absl::Status Record(Lane lane, EventId event) = 0;
  // Nothing after it on the lane starts before the event. An event is recorded
  // before it is waited for, in the order of calls.
  virtual absl::Status Wait(Lane lane, EventId event) = 0;
  // Waits for all lanes. The first error of the step, on any lane.
  virtual absl::Status Synchronize() = 0;
  // After an error: drops what the lanes have not begun and returns when they
  // are idle. The contents of the arena are then unknown.
  virtual void Abort() = 0;

  // For devices on which telling a step costs: they keep the step that has just
  // ended well, under a name, so that it can be run again whole. Its kernels
  // and scalars stay where they are until Forget. kNotCaptured: nothing is
  // kept.
  virtual CapturedStep Capture() { return kNotCaptured; }
  // In place of BeginStep and the same commands; Synchronize follows. The
  // scalars are read anew. False: the step is not kept (any more); tell it.
  virtual absl::StatusOr<bool> Replay(CapturedStep) { return false; }
  virtual void Forget(CapturedStep) {}

  // From now on each command notes its times in its slot; kept steps are
  // dropped. Allocates here.
  virtual absl::Status EnableTrace(int32_t slot_count) = 0;
  // Of the last step; empty where tracing is off.
  virtual absl::Span<const TraceSpan> trace() const = 0;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_DEVICE_DEVICE_H_
