// A ring with one producer and one consumer: `enqueued_` counts the producer's
// commands, `done_` the finished ones, and each side sleeps on the other's
// counter. The holder of turn_ owns the current slot until its command has
// ended. Tested in tests/executor/cpu/cpu_device_test.cc.
#include "executor/cpu/copy_lane.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "executor/cpu/parallel.h"
#include "executor/device/stress_commands.h"
#include "planner/base/status_macros.h"

namespace loadline::executor {
namespace {

// Block size of a copy that all threads share.
constexpr int64_t kBlockBytes = int64_t{256} << 10;

}  // namespace

void FirstError::Set(absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (set_.load(std::memory_order_relaxed)) return;
  status_ = std::move(status);
  set_.store(true, std::memory_order_release);
}

absl::Status FirstError::Get() {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status FirstError::Take() {
  if (!IsSet()) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  set_.store(false, std::memory_order_release);
  return std::exchange(status_, absl::OkStatus());
}

CopyLane::CopyLane(Lane lane, int32_t capacity, LaneContext* context)
    : lane_(lane),
      context_(context),
      ring_(static_cast<size_t>(capacity)),
      thread_([this] { Loop(); }) {}

CopyLane::~CopyLane() {
  Enqueue({.kind = LaneCommand::Kind::kStop});
  Wake();
  thread_.join();
}

void CopyLane::Enqueue(const LaneCommand& command) {
  const uint32_t at = enqueued_.load(std::memory_order_relaxed);
  uint32_t done = done_.load(std::memory_order_acquire);
  while (at - done == ring_.size()) {
    done_.wait(done, std::memory_order_acquire);
    done = done_.load(std::memory_order_acquire);
  }
  ring_[at % ring_.size()] = command;
  enqueued_.store(at + 1, std::memory_order_release);
}

bool CopyLane::Full() const {
  return enqueued_.load(std::memory_order_relaxed) -
             done_.load(std::memory_order_acquire) ==
         ring_.size();
}

void CopyLane::Wake() {
  const uint32_t at = enqueued_.load(std::memory_order_relaxed);
  if (at == woken_at_) return;
  woken_at_ = at;
  if (done_.load(std::memory_order_acquire) != at) enqueued_.notify_one();
}

void CopyLane::Drain() {
  Wake();
  const uint32_t target = enqueued_.load(std::memory_order_relaxed);
  uint32_t done = done_.load(std::memory_order_acquire);
  while (done != target) {
    done_.wait(done, std::memory_order_acquire);
    done = done_.load(std::memory_order_acquire);
  }
}

CopyLane::Turn CopyLane::TakeTurn(bool all_threads) {
  const uint32_t at = done_.load(std::memory_order_relaxed);
  if (at == enqueued_.load(std::memory_order_acquire)) return Turn::kNothing;
  const LaneCommand& command = ring_[at % ring_.size()];
  if (command.kind == LaneCommand::Kind::kStop) return Turn::kStops;
  const EventTable& events = *context_->events;
  if (command.kind == LaneCommand::Kind::kWait &&
      !events.Happened(command.event, events.step())) {
    return Turn::kWaits;
  }
  if (context_->before_command) context_->before_command(lane_);
  Do(command, all_threads);
  done_.store(at + 1, std::memory_order_release);
  done_.notify_one();
  return Turn::kDone;
}

bool CopyLane::Help() {
  const std::unique_lock<std::mutex> lock(turn_, std::try_to_lock);
  return lock.owns_lock() && TakeTurn(/*all_threads=*/true) == Turn::kDone;
}

void CopyLane::Loop() {
  while (true) {
    const uint32_t at = done_.load(std::memory_order_acquire);
    enqueued_.wait(at, std::memory_order_acquire);
    EventId event = kNoEvent;
    uint32_t step = 0;
    {
      const std::lock_guard<std::mutex> lock(turn_);
      const Turn turn = TakeTurn(/*all_threads=*/false);
      if (turn == Turn::kStops) return;
      if (turn != Turn::kWaits) continue;
      event = ring_[done_.load(std::memory_order_relaxed) % ring_.size()].event;
      step = context_->events->step();
    }
    // Not under turn_: the helper may continue as soon as the event happens,
    // and even end the step before this thread wakes.
    context_->events->Wait(event, step);
  }
}

void CopyLane::Do(const LaneCommand& command, bool all_threads) {
  switch (command.kind) {
    case LaneCommand::Kind::kCopy: {
      if (context_->error->IsSet()) return;
      absl::Status status = DoCopy(command.copy, all_threads);
      if (!status.ok()) context_->error->Set(std::move(status));
      return;
    }
    case LaneCommand::Kind::kFill: {
      if (context_->error->IsSet()) return;
      absl::Status status = DoFill(command);
      if (!status.ok()) context_->error->Set(std::move(status));
      return;
    }
    case LaneCommand::Kind::kDelay:
      return SleepNs(DelayNs(command.delay));
    case LaneCommand::Kind::kRecord:
      return context_->events->Record(command.event);
    case LaneCommand::Kind::kWait:  // has happened
    case LaneCommand::Kind::kStop:
      return;
  }
}

absl::Status CopyLane::DoFill(const LaneCommand& command) {
  const Region& region = command.fill;
  if (command.space == Space::kDevice) {
    std::memset(context_->arena->base() + region.offset, command.byte,
                static_cast<size_t>(region.bytes));
    return absl::OkStatus();
  }
  std::array<uint8_t, 4096> block;
  block.fill(command.byte);
  for (int64_t done = 0; done < region.bytes;) {
    const int64_t bytes = std::min<int64_t>(block.size(), region.bytes - done);
    LOADLINE_RETURN_IF_ERROR(
        context_->store->Write(region.offset + done, block.data(), bytes));
    done += bytes;
  }
  return absl::OkStatus();
}

absl::Status CopyLane::Move(const CopyArgs& copy, int64_t begin, int64_t end) {
  std::byte* device = context_->arena->base() + copy.device_offset + begin;
  if (copy.upload != nullptr) {
    std::memcpy(device, *copy.upload + begin, static_cast<size_t>(end - begin));
    return absl::OkStatus();
  }
  HostStore& store = *context_->store;
  return lane_ == Lane::kD2h
             ? store.Write(copy.host_offset + begin, device, end - begin)
             : store.Read(copy.host_offset + begin, device, end - begin);
}

absl::Status CopyLane::DoCopy(const CopyArgs& copy, bool all_threads) {
  const int64_t start_ns = SteadyNowNs();
  absl::Status status;
  if (!all_threads || copy.bytes < 2 * kBlockBytes) {
    status = Move(copy, 0, copy.bytes);
  } else {
    FirstError error;
    cpu::ParallelFor(copy.bytes, kBlockBytes, [&](int64_t begin, int64_t end) {
      absl::Status moved = Move(copy, begin, end);
      if (!moved.ok()) error.Set(std::move(moved));
    });
    status = error.Take();
  }
  if (copy.trace_slot >= 0 &&
      static_cast<size_t>(copy.trace_slot) < context_->trace->size()) {
    (*context_->trace)[copy.trace_slot] = {
        start_ns - context_->step_begin_ns,
        SteadyNowNs() - context_->step_begin_ns};
  }
  return status;
}

}  // namespace loadline::executor
