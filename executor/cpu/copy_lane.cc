// A ring with one producer and one consumer: `enqueued_` counts what the
// producer has put in, `done_` what the thread has finished, and each side
// sleeps on the other's counter. A slot belongs to the thread until its
// command has ended. Tested in tests/executor/cpu_device_test.cc.
#include "executor/cpu/copy_lane.h"

#include <chrono>
#include <cstring>
#include <utility>

namespace loadline::executor {

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

int64_t SteadyNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

CopyLane::CopyLane(Lane lane, int32_t capacity, LaneContext* context)
    : lane_(lane),
      context_(context),
      ring_(static_cast<size_t>(capacity)),
      thread_([this] { Loop(); }) {}

CopyLane::~CopyLane() {
  Enqueue({.kind = LaneCommand::Kind::kStop});
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
  enqueued_.notify_one();
}

void CopyLane::Drain() {
  const uint32_t target = enqueued_.load(std::memory_order_relaxed);
  uint32_t done = done_.load(std::memory_order_acquire);
  while (done != target) {
    done_.wait(done, std::memory_order_acquire);
    done = done_.load(std::memory_order_acquire);
  }
}

void CopyLane::Loop() {
  for (uint32_t at = 0;; ++at) {
    enqueued_.wait(at, std::memory_order_acquire);
    const LaneCommand& command = ring_[at % ring_.size()];
    if (command.kind == LaneCommand::Kind::kStop) return;
    if (context_->before_command) context_->before_command(lane_);
    Do(command);
    done_.store(at + 1, std::memory_order_release);
    done_.notify_one();
  }
}

void CopyLane::Do(const LaneCommand& command) {
  switch (command.kind) {
    case LaneCommand::Kind::kCopy: {
      if (context_->error->IsSet()) return;
      absl::Status status = DoCopy(command.copy);
      if (!status.ok()) context_->error->Set(std::move(status));
      return;
    }
    case LaneCommand::Kind::kFill:
      if (context_->error->IsSet()) return;
      std::memset(context_->arena->base() + command.fill.offset, command.byte,
                  static_cast<size_t>(command.fill.bytes));
      return;
    case LaneCommand::Kind::kRecord:
      return context_->events->Record(command.event);
    case LaneCommand::Kind::kWait:
      return context_->events->Wait(command.event);
    case LaneCommand::Kind::kStop:
      return;
  }
}

absl::Status CopyLane::DoCopy(const CopyArgs& copy) {
  const int64_t start_ns = SteadyNowNs();
  std::byte* device = context_->arena->base() + copy.device_offset;
  absl::Status status =
      lane_ == Lane::kD2h
          ? context_->store->Write(copy.host_offset, device, copy.bytes)
          : context_->store->Read(copy.host_offset, device, copy.bytes);
  if (copy.trace_slot >= 0 &&
      static_cast<size_t>(copy.trace_slot) < context_->trace->size()) {
    (*context_->trace)[copy.trace_slot] = {
        start_ns - context_->step_begin_ns,
        SteadyNowNs() - context_->step_begin_ns};
  }
  return status;
}

}  // namespace loadline::executor
