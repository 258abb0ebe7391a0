// Measures when the commands of a step ran, with timed events around each.
#ifndef LOADLINE_EXECUTOR_CUDA_STEP_TIMER_H_
#define LOADLINE_EXECUTOR_CUDA_STEP_TIMER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "executor/cuda/handles.h"
#include "executor/device/device.h"

namespace loadline::executor::cuda {

class StepTimer {
 public:
  explicit StepTimer(Driver& driver) : driver_(driver) {}

  // Enables timing from now on; 0 slots: disables it.
  absl::Status Enable(int32_t slot_count);
  bool on() const { return !slots_.empty(); }

  // Times are relative to this point.
  absl::Status BeginStep(Stream stream);
  // Around a command on `stream`; no-op without a slot.
  absl::Status Start(int32_t slot, Stream stream);
  absl::Status End(int32_t slot, Stream stream);
  // After all work has ended: reads the times of the slots used.
  absl::Status Read();
  absl::Span<const TraceSpan> spans() const { return spans_; }

 private:
  struct Slot {
    OwnedEvent start;
    OwnedEvent end;
    bool used = false;
  };

  bool Has(int32_t slot) const {
    return slot >= 0 && static_cast<size_t>(slot) < slots_.size();
  }

  Driver& driver_;
  OwnedEvent begun_;
  std::vector<Slot> slots_;
  std::vector<TraceSpan> spans_;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_STEP_TIMER_H_
