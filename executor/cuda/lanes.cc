// Fork and Join connect the copy lanes to the compute lane at the beginning and
// the end of a step. A capture requires this; without a capture it makes the
// compute lane's end the step's end. Tested in
// tests/executor/cuda/cuda_device_test.cc.
#include "executor/cuda/lanes.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

constexpr std::array kCopyLanes = {Lane::kD2h, Lane::kH2d};

absl::StatusOr<OwnedStream> MakeStream(Driver& driver) {
  LOADLINE_ASSIGN_OR_RETURN(const Stream stream, driver.CreateStream());
  return OwnedStream(driver, stream);
}

absl::StatusOr<OwnedEvent> MakeEvent(Driver& driver) {
  LOADLINE_ASSIGN_OR_RETURN(const Event event, driver.CreateEvent(false));
  return OwnedEvent(driver, event);
}

}  // namespace

absl::Status Lanes::Create(int copy_engines, int32_t event_count) {
  for (Lane lane : {Lane::kCompute, Lane::kD2h, Lane::kH2d}) {
    const auto l = static_cast<size_t>(lane);
    LOADLINE_ASSIGN_OR_RETURN(ended_[l], MakeEvent(*driver_));
    if (lane == Lane::kH2d && copy_engines < 2) continue;
    LOADLINE_ASSIGN_OR_RETURN(streams_[l], MakeStream(*driver_));
  }
  LOADLINE_ASSIGN_OR_RETURN(begun_, MakeEvent(*driver_));
  for (int32_t i = 0; i < event_count; ++i) {
    LOADLINE_ASSIGN_OR_RETURN(OwnedEvent event, MakeEvent(*driver_));
    events_.push_back(std::move(event));
  }
  recorded_.resize(events_.size());
  return absl::OkStatus();
}

Stream Lanes::stream(Lane lane) const {
  const Stream own = streams_[static_cast<size_t>(lane)].get();
  return own != nullptr ? own : streams_[static_cast<size_t>(Lane::kD2h)].get();
}

absl::Status Lanes::Fork() {
  recorded_.assign(recorded_.size(), false);
  LOADLINE_RETURN_IF_ERROR(
      driver_->RecordEvent(begun_.get(), stream(Lane::kCompute)));
  for (Lane lane : kCopyLanes) {
    LOADLINE_RETURN_IF_ERROR(driver_->WaitEvent(stream(lane), begun_.get()));
  }
  return absl::OkStatus();
}

absl::Status Lanes::Join() {
  for (Lane lane : kCopyLanes) {
    const Event ended = ended_[static_cast<size_t>(lane)].get();
    LOADLINE_RETURN_IF_ERROR(driver_->RecordEvent(ended, stream(lane)));
    LOADLINE_RETURN_IF_ERROR(driver_->WaitEvent(stream(Lane::kCompute), ended));
  }
  return absl::OkStatus();
}

absl::Status Lanes::CheckEvent(EventId event) const {
  if (static_cast<int32_t>(event) >= 0 && Index(event) < events_.size()) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      absl::StrCat("no event ", static_cast<int32_t>(event)));
}

absl::Status Lanes::Record(Lane lane, EventId event) {
  LOADLINE_RETURN_IF_ERROR(CheckEvent(event));
  recorded_[Index(event)] = true;
  return driver_->RecordEvent(events_[Index(event)].get(), stream(lane));
}

absl::Status Lanes::Wait(Lane lane, EventId event) {
  LOADLINE_RETURN_IF_ERROR(CheckEvent(event));
  if (!recorded_[Index(event)]) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a wait for event ", Index(event), ", which this step did not record"));
  }
  return driver_->WaitEvent(stream(lane), events_[Index(event)].get());
}

absl::Status Lanes::Synchronize() {
  absl::Status status;
  for (const OwnedStream& stream : streams_) {
    if (stream.get() != nullptr) {
      status.Update(driver_->SynchronizeStream(stream.get()));
    }
  }
  return status;
}

}  // namespace loadline::executor::cuda
