// A step is captured the first time it is submitted: BeginStep opens the
// capture, and Synchronize closes it and launches the graph. Learning rate,
// step and seed are in pinned memory and are copied to the device before the
// step's first launch, so a replay uses the new ones. A word that reports wrong
// data is copied back at the end.
//
// Tested without a GPU in tests/executor/cuda/cuda_device_test.cc, on a fake
// driver whose streams run their work late and in any order that events allow.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/cuda/device.h"
#include "executor/device/stress_commands.h"
#include "planner/base/align.h"
#include "planner/base/check.h"
#include "planner/base/status_macros.h"
#include "planner/base/workers.h"

namespace loadline::executor {
namespace {

using cuda::CopyKind;
using cuda::OwnedGraph;
using cuda::OwnedGraphExec;

// Of uploads on their way to pinned memory: a thread starts in microseconds,
// and few threads copy as fast as a link does.
constexpr int64_t kStageBlockBytes = int64_t{4} << 20;
constexpr int kStageThreads = 4;

// A launch's number must fit the word of data errors.
constexpr size_t kMostLaunches = size_t{1} << (63 - cuda::kPositionBits);

}  // namespace

absl::Status CudaDevice::BeginStep() {
  LOADLINE_CHECK(has_arena_ && state_ == State::kIdle);
  LOADLINE_RETURN_IF_ERROR(driver_.SetDevice(options_.index));
  recorded_.graph = {};
  recorded_.kernels.clear();
  recorded_.scalars = nullptr;
  recorded_.uploads.clear();
  recorded_.host_work.clear();
  damage_ = absl::OkStatus();
  step_ = &recorded_;
  state_ = State::kRecording;
  const cuda::Stream compute = lanes_.stream(Lane::kCompute);
  if (options_.graph && !timer_.on()) {
    LOADLINE_RETURN_IF_ERROR(driver_.BeginCapture(compute));
    capturing_ = true;
  }
  LOADLINE_RETURN_IF_ERROR(timer_.BeginStep(compute));
  return lanes_.Fork();
}

CudaDevice::Control& CudaDevice::host_control() const {
  return *reinterpret_cast<Control*>(pinned_control_->base());
}

// Enqueues a copy of the scalars and a cleared word of data errors.
absl::Status CudaDevice::EnqueueControl() {
  host_control().scalars = *recorded_.scalars;
  host_control().data_error = cuda::kNoDataError;
  return driver_.Copy(control_.get(), pinned_control_->base(), sizeof(Control),
                      CopyKind::kToDevice, lanes_.stream(Lane::kCompute));
}

absl::Status CudaDevice::Launch(const LaunchArgs& args) {
  LOADLINE_CHECK(state_ == State::kRecording);
  LOADLINE_RETURN_IF_ERROR(CheckLaunch(args, spec_));
  auto* kernel = dynamic_cast<cuda::CudaKernel*>(args.kernel);
  LOADLINE_CHECK(kernel != nullptr && args.scalars != nullptr);
  if (recorded_.kernels.size() == kMostLaunches) {
    return absl::OutOfRangeError(
        absl::StrCat("a step with more than ", kMostLaunches, " launches"));
  }
  if (recorded_.kernels.empty()) {
    recorded_.scalars = args.scalars;
    LOADLINE_RETURN_IF_ERROR(EnqueueControl());
  }
  LOADLINE_CHECK(recorded_.scalars == args.scalars);
  KernelArgs on_device = operands_.Resolve(args, memory_.get());
  on_device.scalars = &reinterpret_cast<Control*>(control_.get())->scalars;
  // A traced launch is never grouped, so that its time is its own.
  auto* group =
      timer_.on() ? nullptr : dynamic_cast<cuda::GroupKernel*>(kernel);
  if (group == nullptr) {
    LOADLINE_RETURN_IF_ERROR(EndGroup());
    LOADLINE_RETURN_IF_ERROR(Enqueue(args, on_device, *kernel));
  } else {
    if (!group_.Takes(*group, args)) LOADLINE_RETURN_IF_ERROR(EndGroup());
    group_.Add(*group, args, on_device);
  }
  recorded_.kernels.push_back(kernel);
  return absl::OkStatus();
}

absl::Status CudaDevice::Enqueue(const LaunchArgs& args,
                                 const KernelArgs& on_device,
                                 cuda::CudaKernel& kernel) {
  const cuda::Stream stream = lanes_.stream(Lane::kCompute);
  const cuda::Range range(driver_, args.name);
  LOADLINE_RETURN_IF_ERROR(timer_.Start(args.trace_slot, stream));
  LOADLINE_RETURN_IF_ERROR(
      kernel.Enqueue(on_device, ContextOf(recorded_.kernels.size())));
  return timer_.End(args.trace_slot, stream);
}

absl::Status CudaDevice::EndGroup() {
  if (group_.empty()) return absl::OkStatus();
  const std::string name = group_.name();
  const cuda::Range range(driver_, name.c_str());
  return group_.Enqueue(ContextOf(recorded_.kernels.size() - group_.size()));
}

absl::Status CudaDevice::EndGroupOn(Lane lane) {
  return lane == Lane::kCompute ? EndGroup() : absl::OkStatus();
}

// Context of the step's launch of this number.
cuda::LaunchContext CudaDevice::ContextOf(size_t launch) const {
  return {.stream = lanes_.stream(Lane::kCompute),
          .data_error = &reinterpret_cast<Control*>(control_.get())->data_error,
          .launch = static_cast<int64_t>(launch)};
}

absl::Status CudaDevice::Copy(const CopyArgs& args) {
  LOADLINE_CHECK(state_ == State::kRecording);
  LOADLINE_RETURN_IF_ERROR(CheckCopy(args, spec_));
  if (args.bytes == 0) return absl::OkStatus();
  std::byte* const device = memory_.get() + args.device_offset;
  std::byte* const host =
      (args.upload != nullptr ? uploads_ : host_)->base() + args.host_offset;
  if (args.upload != nullptr) {
    recorded_.uploads.push_back(args);
    Stage({&args, 1});
  }
  const bool out = args.lane == Lane::kD2h;
  const cuda::Stream stream = lanes_.stream(args.lane);
  const cuda::Range range(driver_, args.name);
  LOADLINE_RETURN_IF_ERROR(timer_.Start(args.trace_slot, stream));
  LOADLINE_RETURN_IF_ERROR(
      driver_.Copy(out ? host : device, out ? device : host, args.bytes,
                   out ? CopyKind::kToHost : CopyKind::kToDevice, stream));
  return timer_.End(args.trace_slot, stream);
}

// One thread copies at a fraction of the link's rate.
void CudaDevice::Stage(absl::Span<const CopyArgs> uploads) {
  for (const CopyArgs& upload : uploads) {
    std::byte* const to = uploads_->base() + upload.host_offset;
    const std::byte* const from = *upload.upload;
    const auto copy = [&](int block) {
      const int64_t begin = block * kStageBlockBytes;
      std::memcpy(to + begin, from + begin,
                  static_cast<size_t>(
                      std::min(kStageBlockBytes, upload.bytes - begin)));
    };
    const auto blocks = static_cast<int>(
        planner::AlignUp(upload.bytes, kStageBlockBytes) / kStageBlockBytes);
    if (blocks == 1) {
      copy(0);
    } else {
      planner::Workers(kStageThreads).Run(blocks, copy);
    }
  }
}

// Enqueued on the lane's stream, and so called in replays too.
absl::Status CudaDevice::CallHost(Lane lane, std::function<void()> work) {
  LOADLINE_CHECK(state_ == State::kRecording);
  LOADLINE_RETURN_IF_ERROR(EndGroupOn(lane));
  recorded_.host_work.push_back(
      std::make_unique<std::function<void()>>(std::move(work)));
  return driver_.CallHost(
      lanes_.stream(lane),
      [](void* call) { (*static_cast<std::function<void()>*>(call))(); },
      recorded_.host_work.back().get());
}

absl::Status CudaDevice::Delay(const DelayArgs& args) {
  return CallHost(args.lane, [args] { SleepNs(DelayNs(args)); });
}

// Copies the bytes to the host, which checks them before the next Check's copy.
absl::Status CudaDevice::Check(const CheckArgs& args) {
  LOADLINE_CHECK(state_ == State::kRecording);
  LOADLINE_RETURN_IF_ERROR(CheckCheck(args, spec_));
  if (args.region.bytes == 0) return absl::OkStatus();
  LOADLINE_RETURN_IF_ERROR(EndGroup());
  LOADLINE_RETURN_IF_ERROR(driver_.Copy(
      host_control().checked.data(), memory_.get() + args.region.offset,
      args.region.bytes, CopyKind::kToHost, lanes_.stream(Lane::kCompute)));
  return CallHost(Lane::kCompute, [this, args] {
    damage_.Update(FindDamage(args, host_control().checked.data()));
  });
}

absl::Status CudaDevice::Fill(Lane lane, Space space, const Region& region,
                              uint8_t byte) {
  LOADLINE_CHECK(state_ == State::kRecording);
  LOADLINE_RETURN_IF_ERROR(CheckFill(lane, space, region, spec_));
  if (region.bytes == 0) return absl::OkStatus();
  if (space == Space::kHost) {
    return CallHost(
        lane, [at = host_->base() + region.offset, byte, bytes = region.bytes] {
          std::memset(at, byte, static_cast<size_t>(bytes));
        });
  }
  LOADLINE_RETURN_IF_ERROR(EndGroupOn(lane));
  return driver_.Fill(memory_.get() + region.offset, byte, region.bytes,
                      lanes_.stream(lane));
}

absl::Status CudaDevice::Record(Lane lane, EventId event) {
  LOADLINE_CHECK(state_ == State::kRecording);
  LOADLINE_RETURN_IF_ERROR(EndGroupOn(lane));
  return lanes_.Record(lane, event);
}

absl::Status CudaDevice::Wait(Lane lane, EventId event) {
  LOADLINE_CHECK(state_ == State::kRecording);
  LOADLINE_RETURN_IF_ERROR(EndGroupOn(lane));
  return lanes_.Wait(lane, event);
}

// Ends the recording of a step: copies results back and, if the step was
// captured, launches the graph.
absl::Status CudaDevice::Close() {
  const cuda::Stream compute = lanes_.stream(Lane::kCompute);
  LOADLINE_RETURN_IF_ERROR(EndGroup());
  LOADLINE_RETURN_IF_ERROR(lanes_.Join());
  if (!recorded_.kernels.empty()) {
    auto* control = reinterpret_cast<Control*>(control_.get());
    LOADLINE_RETURN_IF_ERROR(
        driver_.Copy(&host_control().data_error, &control->data_error,
                     sizeof(cuda::DataErrorWord), CopyKind::kToHost, compute));
  }
  if (!capturing_) return absl::OkStatus();
  capturing_ = false;
  LOADLINE_ASSIGN_OR_RETURN(const cuda::Graph graph,
                            driver_.EndCapture(compute));
  const OwnedGraph owned(driver_, graph);
  LOADLINE_ASSIGN_OR_RETURN(const cuda::GraphExec exec,
                            driver_.Instantiate(graph));
  recorded_.graph = OwnedGraphExec(driver_, exec);
  return driver_.LaunchGraph(exec, compute);
}

absl::Status CudaDevice::Synchronize() {
  if (state_ == State::kIdle) return absl::OkStatus();
  if (state_ == State::kRecording) {
    absl::Status status = Close();
    if (!status.ok()) {
      Abort();
      return status;
    }
  }
  state_ = State::kIdle;
  // The compute lane has joined the others, but they may still report errors.
  // After an error, running work must end before the step's memory is freed.
  absl::Status ended = lanes_.Synchronize();
  if (!ended.ok()) {
    Abort();
    return ended;
  }
  LOADLINE_RETURN_IF_ERROR(timer_.Read());
  LOADLINE_RETURN_IF_ERROR(std::exchange(damage_, absl::OkStatus()));
  return CheckDataError();
}

absl::Status CudaDevice::CheckDataError() {
  const cuda::DataErrorWord word = host_control().data_error;
  if (word == cuda::kNoDataError) return absl::OkStatus();
  host_control().data_error = cuda::kNoDataError;
  const cuda::DataError error = cuda::UnpackDataError(word);
  if (error.launch >= static_cast<int64_t>(step_->kernels.size())) {
    return absl::InternalError(absl::StrCat(
        "the device reports bad data in launch ", error.launch, " of ",
        step_->kernels.size(), ": its memory was overwritten"));
  }
  return step_->kernels[error.launch]->DescribeDataError(error.position);
}

void CudaDevice::Abort() {
  group_.Clear();
  if (capturing_) {
    capturing_ = false;
    absl::StatusOr<cuda::Graph> graph =
        driver_.EndCapture(lanes_.stream(Lane::kCompute));
    if (graph.ok()) OwnedGraph(driver_, *graph);
  }
  lanes_.Synchronize().IgnoreError();
  state_ = State::kIdle;
}

CapturedStep CudaDevice::Capture() {
  if (state_ != State::kIdle || recorded_.graph.get() == nullptr)
    return kNotCaptured;
  const CapturedStep id{next_id_++};
  step_ = &(captured_[id] = std::move(recorded_));
  recorded_ = {};
  return id;
}

absl::StatusOr<bool> CudaDevice::Replay(CapturedStep id) {
  const auto found = captured_.find(id);
  if (found == captured_.end()) return false;
  LOADLINE_CHECK(state_ == State::kIdle);
  LOADLINE_RETURN_IF_ERROR(driver_.SetDevice(options_.index));
  step_ = &found->second;
  const cuda::Range range(driver_, "step");
  damage_ = absl::OkStatus();
  if (step_->scalars != nullptr) host_control().scalars = *step_->scalars;
  Stage(step_->uploads);
  LOADLINE_RETURN_IF_ERROR(
      driver_.LaunchGraph(step_->graph.get(), lanes_.stream(Lane::kCompute)));
  state_ = State::kRunning;
  return true;
}

void CudaDevice::Forget(CapturedStep id) { captured_.erase(id); }

}  // namespace loadline::executor
