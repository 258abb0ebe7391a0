// A CUDA driver without a GPU. Memory is the host's and copies are real, but
// work runs late: only when something waits for it, and then in any order that
// streams, events and captured graphs allow, drawn from a seed. Work that
// events should have ordered and did not gives wrong results for some seed.
//
// As CUDA, it refuses what a capture forbids: allocating, waiting, copies of
// memory that is not pinned, streams that are never joined. Any call can be
// made to fail, and all resources are counted.
// made to fail, and everything handed out is counted.
#ifndef LOADLINE_TESTS_EXECUTOR_SUPPORT_FAKE_CUDA_DRIVER_H_
#define LOADLINE_TESTS_EXECUTOR_SUPPORT_FAKE_CUDA_DRIVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "executor/cuda/driver.h"
#include "executor/device/kernel.h"
#include "models/graph.h"

namespace loadline::executor {

struct FakeCudaOptions {
  uint64_t seed = 1;
  int copy_engines = 2;
  int64_t memory_bytes = int64_t{1} << 40;
  int64_t context_bytes = 0;  // part of it that the driver itself uses
  // Number of the call that fails, counted from 0; calls that free something
  // are not counted.
  int64_t fail_call = -1;
};

class FakeCudaDriver : public cuda::Driver {
 public:
  explicit FakeCudaDriver(FakeCudaOptions options = {});
  ~FakeCudaDriver() override;

  // Enqueues a kernel's work on the stream.
  absl::Status Enqueue(cuda::Stream stream, std::function<void()> work);
  // Called by work: lengthens it on the simulated clock.
  void Spend(int64_t ns) { clock_ns_ += ns; }

  // Calls so far, in total and by name ("Malloc").
  int64_t calls() const { return calls_; }
  int64_t calls(const std::string& name) const;
  // Resources that are not yet freed: memory, pinned regions, streams, events,
  // graphs.
  int64_t live() const { return live_; }
  // Sizes of each Malloc, and of each HostRegister, in order.
  const std::vector<int64_t>& allocated() const { return allocated_; }
  const std::vector<int64_t>& pinned() const { return pinned_; }
  // Work submitted to streams within named ranges, in order: "h1: Copy".
  const std::vector<std::string>& ranged() const { return ranged_; }

  absl::Status SetDevice(int index) override;
  absl::StatusOr<cuda::DeviceFacts> Facts(int index) override;
  absl::StatusOr<cuda::MemoryUse> Memory() override;
  absl::StatusOr<std::byte*> Malloc(int64_t bytes) override;
  absl::Status Free(std::byte* memory) override;
  absl::Status HostRegister(std::byte* memory, int64_t bytes) override;
  absl::Status HostUnregister(std::byte* memory) override;
  absl::StatusOr<cuda::Stream> CreateStream() override;
  absl::Status DestroyStream(cuda::Stream stream) override;
  absl::Status SynchronizeStream(cuda::Stream stream) override;
  absl::StatusOr<cuda::Event> CreateEvent(bool timed) override;
  absl::Status DestroyEvent(cuda::Event event) override;
  absl::Status RecordEvent(cuda::Event event, cuda::Stream stream) override;
  absl::Status WaitEvent(cuda::Stream stream, cuda::Event event) override;
  absl::StatusOr<int64_t> ElapsedNs(cuda::Event from, cuda::Event to) override;
  absl::Status Copy(void* to, const void* from, int64_t bytes,
                    cuda::CopyKind kind, cuda::Stream stream) override;
  absl::Status Fill(std::byte* memory, uint8_t byte, int64_t bytes,
                    cuda::Stream stream) override;
  void BeginRange(const char* name) override;
  void EndRange() override;
  absl::Status CallHost(cuda::Stream stream, void (*function)(void*),
                        void* data) override;
  absl::Status BeginCapture(cuda::Stream stream) override;
  absl::StatusOr<cuda::Graph> EndCapture(cuda::Stream stream) override;
  absl::Status DestroyGraph(cuda::Graph graph) override;
  absl::StatusOr<cuda::GraphExec> Instantiate(cuda::Graph graph) override;
  absl::Status DestroyGraphExec(cuda::GraphExec exec) override;
  absl::Status LaunchGraph(cuda::GraphExec exec, cuda::Stream stream) override;

 private:
  // An operation of a stream or of a graph.
  struct Op;
  using OpPtr = std::shared_ptr<Op>;
  struct CapturedGraph;
  using CapturePtr = std::shared_ptr<CapturedGraph>;
  struct FakeStream;
  struct FakeEvent;

  absl::Status Call(const char* name);
  absl::Status Push(FakeStream& stream, std::function<void()> work,
                    OpPtr* pushed = nullptr);
  void Submit(const OpPtr& op);
  void RunOne();
  absl::Status RunAll(FakeStream& stream);
  bool IsPinned(const void* memory, int64_t bytes) const;
  bool IsDevice(const void* memory, int64_t bytes) const;
  bool Capturing() const;

  FakeCudaOptions options_;
  std::mt19937_64 random_;
  int64_t calls_ = 0;
  std::map<std::string, int64_t> calls_by_name_;
  int64_t live_ = 0;
  int64_t used_bytes_ = 0;
  std::vector<int64_t> allocated_;
  std::vector<int64_t> pinned_;
  std::vector<std::string> ranges_;  // open
  std::vector<std::string> ranged_;
  std::map<const std::byte*, int64_t> device_memory_;
  std::map<const std::byte*, int64_t> pinned_memory_;
  std::set<FakeStream*> streams_;
  std::vector<OpPtr> ready_;
  int64_t clock_ns_ = 0;
};

// Turns kernels that compute at once (the host's, or emulated ones) into
// kernels that enqueue on a fake driver's streams, for a device's `prepare`
// option. `driver` must outlive the kernels.
using PrepareFunction = std::function<absl::StatusOr<std::unique_ptr<Kernel>>(
    const models::Graph&, const models::Node&)>;
PrepareFunction OnStreams(FakeCudaDriver& driver, PrepareFunction host);

}  // namespace loadline::executor

#endif  // LOADLINE_TESTS_EXECUTOR_SUPPORT_FAKE_CUDA_DRIVER_H_
