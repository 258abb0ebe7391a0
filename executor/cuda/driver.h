// The calls of the CUDA runtime that the CUDA device makes: a thin interface,
// so that the device can run on a fake driver without a GPU. Handles are the
// runtime's own opaque pointers; no CUDA header is needed.
//
// Every error names the call and says what to do. ResourceExhausted: out of
// memory. Unavailable: no GPU, no driver, or a driver that is too old.
#ifndef LOADLINE_EXECUTOR_CUDA_DRIVER_H_
#define LOADLINE_EXECUTOR_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/cuda/stream.h"

struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace loadline::executor::cuda {

using Event = CUevent_st*;
using Graph = CUgraph_st*;
using GraphExec = CUgraphExec_st*;

struct DeviceFacts {
  std::string name;
  int64_t memory_bytes = 0;
  int capability_major = 0;
  int capability_minor = 0;
  // 1: copies in both directions alternate.
  int copy_engines = 0;
  std::string pci_id;  // "0000:17:00.0"
};

struct MemoryUse {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

enum class CopyKind { kToDevice, kToHost };

class Driver {
 public:
  virtual ~Driver() = default;

  // Selects device `index` for the calling thread; initializes it at the first
  // call.
  virtual absl::Status SetDevice(int index) = 0;
  virtual absl::StatusOr<DeviceFacts> Facts(int index) = 0;
  // For the whole device, including other processes.
  virtual absl::StatusOr<MemoryUse> Memory() = 0;

  virtual absl::StatusOr<std::byte*> Malloc(int64_t bytes) = 0;
  virtual absl::Status Free(std::byte* memory) = 0;
  // Pins host pages, so that copies run asynchronously.
  virtual absl::Status HostRegister(std::byte* memory, int64_t bytes) = 0;
  virtual absl::Status HostUnregister(std::byte* memory) = 0;

  virtual absl::StatusOr<Stream> CreateStream() = 0;
  virtual absl::Status DestroyStream(Stream stream) = 0;
  virtual absl::Status SynchronizeStream(Stream stream) = 0;

  // Events without timing are cheaper.
  virtual absl::StatusOr<Event> CreateEvent(bool timed) = 0;
  virtual absl::Status DestroyEvent(Event event) = 0;
  virtual absl::Status RecordEvent(Event event, Stream stream) = 0;
  virtual absl::Status WaitEvent(Stream stream, Event event) = 0;
  // Nanoseconds between two timed events that have happened.
  virtual absl::StatusOr<int64_t> ElapsedNs(Event from, Event to) = 0;

  // Enqueued; returns at once if the host memory is pinned.
  virtual absl::Status Copy(void* to, const void* from, int64_t bytes,
                            CopyKind kind, Stream stream) = 0;
  virtual absl::Status Fill(std::byte* memory, uint8_t byte, int64_t bytes,
                            Stream stream) = 0;

  // Names the work enqueued until EndRange, for a profiler (NVTX); ranges nest.
  // Costs almost nothing without a profiler.
  virtual void BeginRange(const char* name) = 0;
  virtual void EndRange() = 0;

  // Calls the function in stream order, once per run of a graph. The function
  // must not call the driver.
  virtual absl::Status CallHost(Stream stream, void (*function)(void*),
                                void* data) = 0;

  // From here on `stream`, and every stream that waits for an event recorded on
  // it, records commands instead of running them.
  virtual absl::Status BeginCapture(Stream stream) = 0;
  virtual absl::StatusOr<Graph> EndCapture(Stream stream) = 0;
  virtual absl::Status DestroyGraph(Graph graph) = 0;
  virtual absl::StatusOr<GraphExec> Instantiate(Graph graph) = 0;
  virtual absl::Status DestroyGraphExec(GraphExec exec) = 0;
  virtual absl::Status LaunchGraph(GraphExec exec, Stream stream) = 0;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_DRIVER_H_
