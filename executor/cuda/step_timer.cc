// A traced step is not captured: events recorded in a capture have no time.
// Tested in tests/executor/cuda/cuda_device_test.cc.
#include "executor/cuda/step_timer.h"

#include <utility>

#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

absl::StatusOr<OwnedEvent> MakeTimedEvent(Driver& driver) {
  LOADLINE_ASSIGN_OR_RETURN(const Event event, driver.CreateEvent(true));
  return OwnedEvent(driver, event);
}

}  // namespace

absl::Status StepTimer::Enable(int32_t slot_count) {
  slots_.clear();
  spans_.clear();
  if (slot_count <= 0) return absl::OkStatus();
  std::vector<Slot> slots(slot_count);
  LOADLINE_ASSIGN_OR_RETURN(begun_, MakeTimedEvent(driver_));
  for (Slot& slot : slots) {
    LOADLINE_ASSIGN_OR_RETURN(slot.start, MakeTimedEvent(driver_));
    LOADLINE_ASSIGN_OR_RETURN(slot.end, MakeTimedEvent(driver_));
  }
  slots_ = std::move(slots);
  spans_.resize(slot_count);
  return absl::OkStatus();
}

absl::Status StepTimer::BeginStep(Stream stream) {
  if (!on()) return absl::OkStatus();
  for (Slot& slot : slots_) slot.used = false;
  return driver_.RecordEvent(begun_.get(), stream);
}

absl::Status StepTimer::Start(int32_t slot, Stream stream) {
  if (!Has(slot)) return absl::OkStatus();
  return driver_.RecordEvent(slots_[slot].start.get(), stream);
}

absl::Status StepTimer::End(int32_t slot, Stream stream) {
  if (!Has(slot)) return absl::OkStatus();
  slots_[slot].used = true;
  return driver_.RecordEvent(slots_[slot].end.get(), stream);
}

absl::Status StepTimer::Read() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (!slot.used) continue;
    LOADLINE_ASSIGN_OR_RETURN(
        spans_[i].start_ns, driver_.ElapsedNs(begun_.get(), slot.start.get()));
    LOADLINE_ASSIGN_OR_RETURN(spans_[i].end_ns,
                              driver_.ElapsedNs(begun_.get(), slot.end.get()));
  }
  return absl::OkStatus();
}

}  // namespace loadline::executor::cuda
