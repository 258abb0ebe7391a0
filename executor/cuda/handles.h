// Owners of driver handles, so that errors leak nothing. Errors of destruction
// are ignored, since nothing could be done about them.
#ifndef LOADLINE_EXECUTOR_CUDA_HANDLES_H_
#define LOADLINE_EXECUTOR_CUDA_HANDLES_H_

#include <utility>

#include "executor/cuda/driver.h"

namespace loadline::executor::cuda {

template <typename T, absl::Status (Driver::*GiveBack)(T)>
class Owned {
 public:
  Owned() = default;
  Owned(Driver& driver, T handle) : driver_(&driver), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : driver_(other.driver_),
        handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) (driver_->*GiveBack)(handle_).IgnoreError();
  }

  T get() const { return handle_; }

 private:
  Driver* driver_ = nullptr;
  T handle_ = nullptr;
};

using OwnedMemory = Owned<std::byte*, &Driver::Free>;
using OwnedStream = Owned<Stream, &Driver::DestroyStream>;
using OwnedEvent = Owned<Event, &Driver::DestroyEvent>;
using OwnedGraph = Owned<Graph, &Driver::DestroyGraph>;
using OwnedGraphExec = Owned<GraphExec, &Driver::DestroyGraphExec>;

// A named range of driver calls; ends with the object.
class Range {
 public:
  Range(Driver& driver, const char* name) : driver_(driver) {
    driver.BeginRange(name);
  }
  ~Range() { driver_.EndRange(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Driver& driver_;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_HANDLES_H_
