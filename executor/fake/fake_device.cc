// An event simulation of three lanes. Between two events every running copy
// progresses at a constant rate, so time advances to the nearest end. A race is
// two overlapping operations of different lanes that touch the same bytes, at
// least one of them writing. Tested in tests/executor/fake/fake_device_test.cc,
// among others against planner::Replay.
#include "executor/fake/fake_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/device/operands.h"
#include "executor/device/stress_commands.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

class FakeKernel : public Kernel {
 public:
  FakeKernel(int64_t ns, int64_t workspace_bytes)
      : ns_(ns), workspace_bytes_(workspace_bytes) {}
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  absl::Status Run(const KernelArgs&) override { return absl::OkStatus(); }
  int64_t ns() const { return ns_; }

 private:
  int64_t ns_;
  int64_t workspace_bytes_;
};

constexpr int kD2h = static_cast<int>(Lane::kD2h);
constexpr int kH2d = static_cast<int>(Lane::kH2d);
constexpr double kForever = std::numeric_limits<double>::infinity();

}  // namespace

// State of the replay.
struct FakeDevice::Clock {
  struct LaneState {
    size_t next = 0;  // position in the lane's ops
    bool running = false;
    double latency_ns = 0;  // that remains of the running copy
    double work = 0;        // that remains of the running op
  };
  double now_ns = 0;
  std::array<LaneState, planner::kLaneCount> lanes;
  std::vector<bool> happened;
};

FakeDevice::FakeDevice(FakeDeviceOptions options)
    : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Kernel>> FakeDevice::Prepare(
    const models::Graph&, const models::Node& node) {
  return std::unique_ptr<Kernel>(new FakeKernel(
      options_.node_ns ? options_.node_ns(node) : 1000,
      options_.workspace_bytes ? options_.workspace_bytes(node) : 0));
}

absl::Status FakeDevice::CreateArena(const ArenaSpec& spec) {
  if (has_arena_) {
    return absl::FailedPreconditionError("the device already has its arena");
  }
  spec_ = spec;
  arena_.resize(spec.arena_bytes);
  host_.resize(spec.host_bytes);
  has_arena_ = true;
  return absl::OkStatus();
}

absl::Status FakeDevice::Write(Space space, int64_t offset, const void* from,
                               int64_t bytes) {
  std::vector<std::byte>& to = space == Space::kHost ? host_ : arena_;
  LOADLINE_RETURN_IF_ERROR(
      CheckInside({offset, bytes}, static_cast<int64_t>(to.size()), "write"));
  if (bytes > 0) std::memcpy(to.data() + offset, from, bytes);
  return absl::OkStatus();
}

absl::Status FakeDevice::Read(Space space, int64_t offset, void* to,
                              int64_t bytes) {
  std::vector<std::byte>& from = space == Space::kHost ? host_ : arena_;
  LOADLINE_RETURN_IF_ERROR(
      CheckInside({offset, bytes}, static_cast<int64_t>(from.size()), "read"));
  if (bytes > 0) std::memcpy(to, from.data() + offset, bytes);
  return absl::OkStatus();
}

absl::Status FakeDevice::BeginStep() {
  Abort();
  return absl::OkStatus();
}

FakeDevice::Op& FakeDevice::Push(Lane lane, Op op) {
  std::vector<Op>& ops = ops_[static_cast<size_t>(lane)];
  ops.push_back(std::move(op));
  return ops.back();
}

absl::Status FakeDevice::Launch(const LaunchArgs& args) {
  if (launches_++ == options_.fail_launch) {
    return absl::InternalError("injected fault: the launch failed");
  }
  const auto* kernel = dynamic_cast<const FakeKernel*>(args.kernel);
  LOADLINE_CHECK(kernel != nullptr);
  Op op{.kind = Op::Kind::kWork,
        .work = static_cast<double>(kernel->ns()),
        .trace_slot = args.trace_slot};
  const auto add = [&](const Region& region, bool write) {
    if (!IsPresent(region)) return absl::OkStatus();
    op.accesses.push_back({Space::kDevice, region, write});
    return CheckInside(region, spec_.arena_bytes, "launch");
  };
  for (const Region& r : args.inputs) LOADLINE_RETURN_IF_ERROR(add(r, false));
  for (const Region& r : args.outputs) LOADLINE_RETURN_IF_ERROR(add(r, true));
  LOADLINE_RETURN_IF_ERROR(add(args.workspace, true));
  Push(Lane::kCompute, std::move(op));
  return absl::OkStatus();
}

absl::Status FakeDevice::Copy(const CopyArgs& args) {
  LOADLINE_CHECK(args.lane != Lane::kCompute);
  const Region device = {args.device_offset, args.bytes};
  const Region host = {args.host_offset, args.bytes};
  LOADLINE_RETURN_IF_ERROR(CheckCopy(args, spec_));
  if (copies_++ == options_.fail_copy) {
    pending_error_ = absl::DataLossError("injected fault: the copy failed");
  }
  const bool out = args.lane == Lane::kD2h;
  Op& op = Push(args.lane, {.kind = Op::Kind::kCopy,
                            .work = static_cast<double>(args.bytes),
                            .accesses = {{Space::kDevice, device, !out}},
                            .trace_slot = args.trace_slot});
  if (args.upload == nullptr) op.accesses.push_back({Space::kHost, host, out});
  return absl::OkStatus();
}

absl::Status FakeDevice::Fill(Lane lane, Space space, const Region& region,
                              uint8_t) {
  LOADLINE_RETURN_IF_ERROR(CheckFill(lane, space, region, spec_));
  Push(lane, {.kind = Op::Kind::kWork, .accesses = {{space, region, true}}});
  return absl::OkStatus();
}

absl::Status FakeDevice::Delay(const DelayArgs& args) {
  Push(args.lane,
       {.kind = Op::Kind::kWork, .work = static_cast<double>(DelayNs(args))});
  return absl::OkStatus();
}

absl::Status FakeDevice::Check(const CheckArgs& args) {
  LOADLINE_RETURN_IF_ERROR(CheckCheck(args, spec_));
  Push(Lane::kCompute, {.kind = Op::Kind::kWork,
                        .accesses = {{Space::kDevice, args.region, false}}});
  return absl::OkStatus();
}

absl::Status FakeDevice::Record(Lane lane, EventId event) {
  LOADLINE_CHECK(static_cast<int32_t>(event) < spec_.event_count);
  Push(lane, {.kind = Op::Kind::kRecord, .event = static_cast<int32_t>(event)});
  return absl::OkStatus();
}

absl::Status FakeDevice::Wait(Lane lane, EventId event) {
  LOADLINE_CHECK(static_cast<int32_t>(event) < spec_.event_count);
  Push(lane, {.kind = Op::Kind::kWait, .event = static_cast<int32_t>(event)});
  return absl::OkStatus();
}

absl::Status FakeDevice::Synchronize() {
  absl::Status status = Simulate();
  if (status.ok()) status = FindRace();
  if (status.ok()) status = std::exchange(pending_error_, absl::OkStatus());
  return status;
}

void FakeDevice::Abort() {
  for (std::vector<Op>& ops : ops_) ops.clear();
  pending_error_ = absl::OkStatus();
}

absl::Status FakeDevice::EnableTrace(int32_t slot_count) {
  trace_.assign(slot_count, TraceSpan{});
  return absl::OkStatus();
}

// Executes events and waits that are due, and starts operations that can start.
// True if anything changed.
bool FakeDevice::TakeInstantOps(Clock& clock) {
  bool moved = false;
  for (size_t l = 0; l < ops_.size(); ++l) {
    Clock::LaneState& lane = clock.lanes[l];
    while (!lane.running && lane.next < ops_[l].size()) {
      Op& op = ops_[l][lane.next];
      if (op.kind == Op::Kind::kWait && !clock.happened[op.event]) break;
      moved = true;
      if (op.kind == Op::Kind::kWait) {
        ++lane.next;
      } else if (op.kind == Op::Kind::kRecord) {
        clock.happened[op.event] = true;
        ++lane.next;
      } else {
        op.start_ns = clock.now_ns;
        lane.running = true;
        const bool copy = op.kind == Op::Kind::kCopy;
        const planner::Link& link =
            l == kD2h ? options_.machine.d2h : options_.machine.h2d;
        lane.latency_ns =
            copy ? static_cast<double>(link.latency_ns) * options_.slowdown[l]
                 : 0;
        lane.work = op.work * (copy ? 1.0 : options_.slowdown[l]);
      }
    }
  }
  return moved;
}

// Advances time to the next end of an operation or of a copy's latency.
void FakeDevice::Advance(Clock& clock) {
  const auto moving = [&](int l) {
    return clock.lanes[l].running && clock.lanes[l].latency_ns <= 0;
  };
  const double factor =
      moving(kD2h) && moving(kH2d) ? options_.machine.d2h_h2d_factor : 1.0;
  std::array<double, planner::kLaneCount> rate = {
      1.0,
      options_.machine.d2h.bytes_per_s * 1e-9 * factor /
          options_.slowdown[kD2h],
      options_.machine.h2d.bytes_per_s * 1e-9 * factor /
          options_.slowdown[kH2d]};
  for (size_t l = 0; l < ops_.size(); ++l) {  // operations measured in ns
    const Clock::LaneState& lane = clock.lanes[l];
    if (lane.running && ops_[l][lane.next].kind == Op::Kind::kWork) rate[l] = 1;
  }
  double step = kForever;
  for (size_t l = 0; l < clock.lanes.size(); ++l) {
    const Clock::LaneState& lane = clock.lanes[l];
    if (!lane.running) continue;
    step = std::min(step, lane.latency_ns > 0 ? lane.latency_ns
                          : lane.work > 0     ? lane.work / rate[l]
                                              : 0.0);
  }
  clock.now_ns += step;
  for (size_t l = 0; l < clock.lanes.size(); ++l) {
    Clock::LaneState& lane = clock.lanes[l];
    if (!lane.running) continue;
    if (lane.latency_ns > 0) {
      lane.latency_ns -= step;
      if (lane.latency_ns > 1e-6) continue;
      lane.latency_ns = 0;
      if (lane.work > 0) continue;
    } else {
      lane.work -= step * rate[l];
    }
    if (lane.work > 1e-6) continue;
    Op& op = ops_[l][lane.next++];
    op.end_ns = clock.now_ns;
    lane.running = false;
    if (op.trace_slot >= 0 &&
        static_cast<size_t>(op.trace_slot) < trace_.size()) {
      trace_[op.trace_slot] = {std::llround(op.start_ns),
                               std::llround(op.end_ns)};
    }
  }
}

absl::Status FakeDevice::Simulate() {
  Clock clock;
  clock.happened.resize(spec_.event_count, false);
  while (true) {
    while (TakeInstantOps(clock)) {
    }
    bool running = false;
    bool left = false;
    for (size_t l = 0; l < ops_.size(); ++l) {
      running = running || clock.lanes[l].running;
      left = left || clock.lanes[l].next < ops_[l].size();
    }
    if (!left) break;
    if (!running) {
      return absl::InternalError("the lanes wait for each other");
    }
    Advance(clock);
  }
  step_ns_ = std::llround(clock.now_ns);
  return absl::OkStatus();
}

absl::Status FakeDevice::FindRace() const {
  for (size_t la = 0; la < ops_.size(); ++la) {
    for (size_t lb = la + 1; lb < ops_.size(); ++lb) {
      for (const Op& a : ops_[la]) {
        for (const Op& b : ops_[lb]) {
          if (!(a.start_ns < b.end_ns && b.start_ns < a.end_ns)) continue;
          for (const Access& x : a.accesses) {
            for (const Access& y : b.accesses) {
              if (x.space == y.space && (x.write || y.write) &&
                  Overlap(x.region, y.region)) {
                return absl::InternalError(absl::StrCat(
                    "race: two lanes touch ", x.region.bytes, " bytes at ",
                    x.region.offset, " at ", a.start_ns, " ns"));
              }
            }
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace loadline::executor
