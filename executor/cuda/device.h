// A Device on a GPU. The arena is one allocation of exactly the planned bytes,
// the host store one region of pinned memory, and each lane a stream. A step is
// captured as one CUDA graph when it first runs; Replay launches that graph, so
// that a step costs the host one call.
//
// Kernels must be cuda::CudaKernel. Consecutive launches of cuda::GroupKernel
// on the compute lane are merged into one. With tracing on, commands go
// directly to the streams, each between two timed events.
#ifndef LOADLINE_EXECUTOR_CUDA_DEVICE_H_
#define LOADLINE_EXECUTOR_CUDA_DEVICE_H_

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "executor/cuda/cuda_kernel.h"
#include "executor/cuda/driver.h"
#include "executor/cuda/handles.h"
#include "executor/cuda/lanes.h"
#include "executor/cuda/launch_group.h"
#include "executor/cuda/pinned.h"
#include "executor/cuda/step_timer.h"
#include "executor/device/device.h"
#include "executor/device/operands.h"

namespace loadline::executor {

struct CudaDeviceOptions {
  int index = 0;  // among the GPUs visible to the process
  // False: no graphs; every step is submitted anew.
  bool graph = true;
  // Makes kernels.
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const models::Graph&,
                                                        const models::Node&)>
      prepare;
};

class CudaDevice : public Device {
 public:
  // Bytes that the device allocates in addition to arena and host store, each.
  static constexpr int64_t kControlBytes = 256;

  // `driver` must outlive the device. Unavailable: no such GPU.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(
      cuda::Driver& driver, CudaDeviceOptions options);
  ~CudaDevice() override;

  absl::string_view name() const override { return "cuda"; }
  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(
      const models::Graph& graph, const models::Node& node) override;
  bool is_host() const override { return false; }
  bool offers_algorithms() const override { return true; }
  void SetAlgorithms(Algorithms algorithms) override;
  absl::Status CreateArena(const ArenaSpec& spec) override;
  absl::StatusOr<int64_t> UsedBytes() override;
  bool has_arena() const override { return has_arena_; }
  const ArenaSpec& arena() const override { return spec_; }
  absl::Status Write(Space space, int64_t offset, const void* from,
                     int64_t bytes) override;
  absl::Status Read(Space space, int64_t offset, void* to,
                    int64_t bytes) override;
  absl::Status BeginStep() override;
  absl::Status Launch(const LaunchArgs& args) override;
  absl::Status Copy(const CopyArgs& args) override;
  absl::Status Fill(Lane lane, Space space, const Region& region,
                    uint8_t byte) override;
  absl::Status Delay(const DelayArgs& args) override;
  absl::Status Check(const CheckArgs& args) override;
  absl::Status Record(Lane lane, EventId event) override;
  absl::Status Wait(Lane lane, EventId event) override;
  absl::Status Synchronize() override;
  void Abort() override;
  CapturedStep Capture() override;
  absl::StatusOr<bool> Replay(CapturedStep id) override;
  void Forget(CapturedStep id) override;
  absl::Status EnableTrace(int32_t slot_count) override;
  absl::Span<const TraceSpan> trace() const override { return timer_.spans(); }

  const cuda::DeviceFacts& facts() const { return facts_; }

 private:
  // Communication between host and step: one copy in device memory, one in
  // pinned memory.
  struct Control {
    StepScalars scalars;
    cuda::DataErrorWord data_error = cuda::kNoDataError;
    // In pinned memory only: the bytes to be checked.
    std::array<std::byte, kMostCheckBytes> checked;
  };
  static_assert(sizeof(Control) <= kControlBytes);

  struct Step {
    cuda::OwnedGraphExec graph;  // none: not captured
    // By launch: describes a data error.
    std::vector<cuda::CudaKernel*> kernels;
    const StepScalars* scalars = nullptr;
    std::vector<CopyArgs> uploads;
    // Functions that the streams call, at stable addresses.
    std::vector<std::unique_ptr<std::function<void()>>> host_work;
  };

  enum class State { kIdle, kRecording, kRunning };

  CudaDevice(cuda::Driver& driver, CudaDeviceOptions options);

  Control& host_control() const;
  absl::Status EnqueueControl();
  absl::Status Enqueue(const LaunchArgs& args, const KernelArgs& on_device,
                       cuda::CudaKernel& kernel);
  // Enqueues the pending group of launches, before other work on its lane.
  absl::Status EndGroup();
  absl::Status EndGroupOn(Lane lane);
  cuda::LaunchContext ContextOf(size_t launch) const;
  absl::Status CallHost(Lane lane, std::function<void()> work);
  // Copies what is uploaded to pinned memory, from which the step reads it.
  void Stage(absl::Span<const CopyArgs> uploads);
  absl::Status Close();
  absl::Status CheckDataError();

  cuda::Driver& driver_;
  CudaDeviceOptions options_;
  Algorithms algorithms_;
  cuda::DeviceFacts facts_;
  ArenaSpec spec_;
  bool has_arena_ = false;
  cuda::OwnedMemory memory_;   // the arena
  cuda::OwnedMemory control_;  // a Control
  std::unique_ptr<cuda::PinnedRegion> host_;
  std::unique_ptr<cuda::PinnedRegion> uploads_;
  std::unique_ptr<cuda::PinnedRegion> pinned_control_;
  cuda::Lanes lanes_;
  cuda::StepTimer timer_;

  State state_ = State::kIdle;
  bool capturing_ = false;
  Step recorded_;         // being recorded, or the last one recorded
  Step* step_ = nullptr;  // running: recorded_ or a captured one
  std::map<CapturedStep, Step> captured_;
  int64_t next_id_ = 0;
  absl::Status damage_;  // first failed Check of the step
  cuda::LaunchGroup group_;
  Operands operands_;
};

}  // namespace loadline::executor

#endif  // LOADLINE_EXECUTOR_CUDA_DEVICE_H_
