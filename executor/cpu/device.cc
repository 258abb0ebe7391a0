// Compute runs on the calling thread: a launch is a call, and a wait on the
// compute lane blocks the caller, who meanwhile helps the copy lanes. Commands
// of the other lanes go to their rings. Offsets are converted to pointers only
// here, after the bounds check. Tested in
// tests/executor/cpu/cpu_device_test.cc.
#include "executor/cpu/device.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/cpu/kernels.h"
#include "executor/device/stress_commands.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {

CpuDevice::CpuDevice(CpuDeviceOptions options) : options_(std::move(options)) {
  LOADLINE_CHECK(options_.lane_capacity >= 1);
  if (!options_.prepare) options_.prepare = PrepareCpuKernel;
}

CpuDevice::~CpuDevice() {
  if (has_arena()) Abort();
}

absl::StatusOr<std::unique_ptr<Kernel>> CpuDevice::Prepare(
    const models::Graph& graph, const models::Node& node) {
  return options_.prepare(graph, node);
}

absl::Status CpuDevice::CreateArena(const ArenaSpec& spec) {
  if (has_arena()) {
    return absl::FailedPreconditionError("the device already has its arena");
  }
  if (spec.event_count < 0 || spec.max_operands < 0) {
    return absl::InvalidArgumentError("a negative count in an arena's spec");
  }
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<Arena> arena,
                            Arena::Create(spec.arena_bytes));
  LOADLINE_ASSIGN_OR_RETURN(store_, options_.make_store(spec.host_bytes));
  arena_ = std::move(arena);
  spec_ = spec;
  events_ = std::make_unique<EventTable>(spec.event_count);
  operands_ = Operands(spec.max_operands);
  context_ = {.arena = arena_.get(),
              .store = store_.get(),
              .events = events_.get(),
              .error = &error_,
              .trace = &trace_,
              .before_command = options_.before_lane_command};
  d2h_ =
      std::make_unique<CopyLane>(Lane::kD2h, options_.lane_capacity, &context_);
  h2d_ =
      std::make_unique<CopyLane>(Lane::kH2d, options_.lane_capacity, &context_);
  return absl::OkStatus();
}

absl::Status CpuDevice::Write(Space space, int64_t offset, const void* from,
                              int64_t bytes) {
  LOADLINE_CHECK(has_arena());
  if (space == Space::kHost) return store_->Write(offset, from, bytes);
  LOADLINE_RETURN_IF_ERROR(
      CheckInside({offset, bytes}, spec_.arena_bytes, "write to the arena"));
  if (bytes > 0) std::memcpy(arena_->base() + offset, from, bytes);
  return absl::OkStatus();
}

absl::Status CpuDevice::Read(Space space, int64_t offset, void* to,
                             int64_t bytes) {
  LOADLINE_CHECK(has_arena());
  if (space == Space::kHost) return store_->Read(offset, to, bytes);
  LOADLINE_RETURN_IF_ERROR(
      CheckInside({offset, bytes}, spec_.arena_bytes, "read of the arena"));
  if (bytes > 0) std::memcpy(to, arena_->base() + offset, bytes);
  return absl::OkStatus();
}

absl::Status CpuDevice::BeginStep() {
  LOADLINE_CHECK(has_arena());
  d2h_->Drain();
  h2d_->Drain();
  events_->NextStep();
  context_.step_begin_ns = SteadyNowNs();
  return absl::OkStatus();
}

absl::Status CpuDevice::Launch(const LaunchArgs& args) {
  if (error_.IsSet()) return error_.Get();
  LOADLINE_RETURN_IF_ERROR(CheckLaunch(args, spec_));
  WakeLanes();
  const KernelArgs kernel_args = operands_.Resolve(args, arena_->base());
  const bool traced = args.trace_slot >= 0 &&
                      static_cast<size_t>(args.trace_slot) < trace_.size();
  const int64_t start_ns = traced ? SteadyNowNs() : 0;
  LOADLINE_RETURN_IF_ERROR(args.kernel->Run(kernel_args));
  if (traced) {
    trace_[args.trace_slot] = {start_ns - context_.step_begin_ns,
                               SteadyNowNs() - context_.step_begin_ns};
  }
  return absl::OkStatus();
}

absl::Status CpuDevice::Copy(const CopyArgs& args) {
  LOADLINE_RETURN_IF_ERROR(CheckCopy(args, spec_));
  Enqueue(args.lane, {.kind = LaneCommand::Kind::kCopy, .copy = args});
  return absl::OkStatus();
}

absl::Status CpuDevice::Fill(Lane on, Space space, const Region& region,
                             uint8_t byte) {
  LOADLINE_RETURN_IF_ERROR(CheckFill(on, space, region, spec_));
  if (on == Lane::kCompute) {
    std::memset(arena_->base() + region.offset, byte,
                static_cast<size_t>(region.bytes));
  } else {
    Enqueue(on, {.kind = LaneCommand::Kind::kFill,
                 .space = space,
                 .fill = region,
                 .byte = byte});
  }
  return absl::OkStatus();
}

absl::Status CpuDevice::Delay(const DelayArgs& args) {
  if (args.lane == Lane::kCompute) {
    WakeLanes();
    SleepNs(DelayNs(args));
  } else {
    Enqueue(args.lane, {.kind = LaneCommand::Kind::kDelay, .delay = args});
  }
  return absl::OkStatus();
}

absl::Status CpuDevice::Check(const CheckArgs& args) {
  LOADLINE_RETURN_IF_ERROR(CheckCheck(args, spec_));
  return FindDamage(args, arena_->base() + args.region.offset);
}

absl::Status CpuDevice::Record(Lane on, EventId event) {
  LOADLINE_RETURN_IF_ERROR(CheckEvent(event));
  if (on == Lane::kCompute) {
    events_->Record(event);
  } else {
    Enqueue(on, {.kind = LaneCommand::Kind::kRecord, .event = event});
  }
  return absl::OkStatus();
}

absl::Status CpuDevice::Wait(Lane on, EventId event) {
  LOADLINE_RETURN_IF_ERROR(CheckEvent(event));
  if (on == Lane::kCompute) {
    const uint32_t step = events_->step();
    while (!events_->Happened(event, step)) {
      if (d2h_->Help() || h2d_->Help()) continue;
      WakeLanes();
      events_->Wait(event, step);
    }
  } else {
    Enqueue(on, {.kind = LaneCommand::Kind::kWait, .event = event});
  }
  return absl::OkStatus();
}

absl::Status CpuDevice::Synchronize() {
  WakeLanes();
  d2h_->Drain();
  h2d_->Drain();
  return error_.Take();
}

void CpuDevice::Abort() {
  error_.Set(absl::AbortedError("the step was given up"));
  events_->ReleaseAll();
  d2h_->Drain();
  h2d_->Drain();
  error_.Take().IgnoreError();
}

absl::Status CpuDevice::EnableTrace(int32_t slot_count) {
  trace_.assign(slot_count, TraceSpan{});
  return absl::OkStatus();
}

void CpuDevice::Enqueue(Lane on, const LaneCommand& command) {
  // Making room may require commands of the other lane first.
  if (lane(on).Full()) WakeLanes();
  lane(on).Enqueue(command);
}

void CpuDevice::WakeLanes() {
  d2h_->Wake();
  h2d_->Wake();
}

CopyLane& CpuDevice::lane(Lane lane) {
  LOADLINE_CHECK(lane != Lane::kCompute);
  return lane == Lane::kD2h ? *d2h_ : *h2d_;
}

absl::Status CpuDevice::CheckEvent(EventId event) const {
  if (static_cast<int32_t>(event) >= 0 &&
      static_cast<int32_t>(event) < spec_.event_count) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat("no event ", Index(event)));
}

}  // namespace loadline::executor
