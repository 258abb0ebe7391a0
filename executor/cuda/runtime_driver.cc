// One runtime call per method. ToStatus translates the runtime's error codes
// for users. Tested in tests/gpu.
#include "executor/cuda/runtime_driver.h"

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::executor::cuda {
namespace {

absl::Status ToStatus(absl::string_view call, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  // A failed call leaves a "last error", which would be reported by the next
  // launch.
  (void)cudaGetLastError();
  const std::string what = absl::StrCat(call, ": ", cudaGetErrorString(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(absl::StrCat(
          what, " (take a smaller budget, or end what else uses the GPU)"));
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
      return absl::UnavailableError(absl::StrCat(
          "no GPU: the driver says ", cudaGetErrorString(error),
          "; run without --device cuda, or on a machine with an NVIDIA GPU "
          "and a driver for CUDA ",
          CUDART_VERSION / 1000, " or later (nvidia-smi shows both)"));
    case cudaErrorDevicesUnavailable:
      return absl::UnavailableError(absl::StrCat(
          what, " (another process has the GPU to itself: wait for it)"));
    case cudaErrorInvalidDevice:
      return absl::InvalidArgumentError(
          absl::StrCat(what, " (nvidia-smi lists the GPUs, from 0)"));
    case cudaErrorNoKernelImageForDevice:
      return absl::UnavailableError(absl::StrCat(
          what, " (this build needs a GPU of compute capability 8.0 or more)"));
    default:
      return absl::InternalError(absl::StrCat(
          what,
          " (the GPU's state is lost: end this process; if it happens "
          "again, run it under compute-sanitizer)"));
  }
}

class Runtime final : public Driver {
 public:
  absl::Status SetDevice(int index) override {
    return ToStatus("cudaSetDevice", cudaSetDevice(index));
  }

  absl::StatusOr<DeviceFacts> Facts(int index) override {
    cudaDeviceProp prop;
    LOADLINE_RETURN_IF_ERROR(ToStatus("cudaGetDeviceProperties",
                                      cudaGetDeviceProperties(&prop, index)));
    char pci_id[32] = {};
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("cudaDeviceGetPCIBusId",
                 cudaDeviceGetPCIBusId(pci_id, sizeof(pci_id), index)));
    return DeviceFacts{
        .name = prop.name,
        .memory_bytes = static_cast<int64_t>(prop.totalGlobalMem),
        .capability_major = prop.major,
        .capability_minor = prop.minor,
        .copy_engines = prop.asyncEngineCount,
        .pci_id = pci_id};
  }

  absl::StatusOr<MemoryUse> Memory() override {
    size_t free = 0;
    size_t total = 0;
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("cudaMemGetInfo", cudaMemGetInfo(&free, &total)));
    return MemoryUse{static_cast<int64_t>(free), static_cast<int64_t>(total)};
  }

  absl::StatusOr<std::byte*> Malloc(int64_t bytes) override {
    void* memory = nullptr;
    LOADLINE_RETURN_IF_ERROR(
        ToStatus(absl::StrCat("cudaMalloc of ", bytes, " bytes"),
                 cudaMalloc(&memory, bytes)));
    return static_cast<std::byte*>(memory);
  }

  absl::Status Free(std::byte* memory) override {
    return ToStatus("cudaFree", cudaFree(memory));
  }

  absl::Status HostRegister(std::byte* memory, int64_t bytes) override {
    return ToStatus(absl::StrCat("cudaHostRegister of ", bytes, " bytes"),
                    cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
  }

  absl::Status HostUnregister(std::byte* memory) override {
    return ToStatus("cudaHostUnregister", cudaHostUnregister(memory));
  }

  absl::StatusOr<Stream> CreateStream() override {
    Stream stream = nullptr;
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("cudaStreamCreateWithFlags",
                 cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
    return stream;
  }

  absl::Status DestroyStream(Stream stream) override {
    return ToStatus("cudaStreamDestroy", cudaStreamDestroy(stream));
  }

  absl::Status SynchronizeStream(Stream stream) override {
    return ToStatus("cudaStreamSynchronize", cudaStreamSynchronize(stream));
  }

  absl::StatusOr<Event> CreateEvent(bool timed) override {
    Event event = nullptr;
    LOADLINE_RETURN_IF_ERROR(ToStatus(
        "cudaEventCreateWithFlags",
        cudaEventCreateWithFlags(
            &event, timed ? cudaEventDefault : cudaEventDisableTiming)));
    return event;
  }

  absl::Status DestroyEvent(Event event) override {
    return ToStatus("cudaEventDestroy", cudaEventDestroy(event));
  }

  absl::Status RecordEvent(Event event, Stream stream) override {
    return ToStatus("cudaEventRecord", cudaEventRecord(event, stream));
  }

  absl::Status WaitEvent(Stream stream, Event event) override {
    return ToStatus("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, event));
  }

  absl::StatusOr<int64_t> ElapsedNs(Event from, Event to) override {
    float ms = 0;
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("cudaEventElapsedTime", cudaEventElapsedTime(&ms, from, to)));
    return static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  }

  absl::Status Copy(void* to, const void* from, int64_t bytes, CopyKind kind,
                    Stream stream) override {
    return ToStatus(
        "cudaMemcpyAsync",
        cudaMemcpyAsync(to, from, bytes,
                        kind == CopyKind::kToDevice ? cudaMemcpyHostToDevice
                                                    : cudaMemcpyDeviceToHost,
                        stream));
  }

  absl::Status Fill(std::byte* memory, uint8_t byte, int64_t bytes,
                    Stream stream) override {
    return ToStatus("cudaMemsetAsync",
                    cudaMemsetAsync(memory, byte, bytes, stream));
  }

  void BeginRange(const char* name) override { nvtxRangePushA(name); }
  void EndRange() override { nvtxRangePop(); }

  absl::Status CallHost(Stream stream, void (*function)(void*),
                        void* data) override {
    return ToStatus("cudaLaunchHostFunc",
                    cudaLaunchHostFunc(stream, function, data));
  }

  // Relaxed mode: a library may load a kernel and its module when it first
  // enqueues it, which any other mode refuses, losing the capture. Work missing
  // from a capture is never part of the step, since we enqueue everything here;
  // the fake driver of the tests checks that.
  absl::Status BeginCapture(Stream stream) override {
    return ToStatus(
        "cudaStreamBeginCapture",
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }

  absl::StatusOr<Graph> EndCapture(Stream stream) override {
    Graph graph = nullptr;
    LOADLINE_RETURN_IF_ERROR(
        ToStatus("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph)));
    return graph;
  }

  absl::Status DestroyGraph(Graph graph) override {
    return ToStatus("cudaGraphDestroy", cudaGraphDestroy(graph));
  }

  absl::StatusOr<GraphExec> Instantiate(Graph graph) override {
    GraphExec exec = nullptr;
    LOADLINE_RETURN_IF_ERROR(ToStatus("cudaGraphInstantiate",
                                      cudaGraphInstantiate(&exec, graph, 0)));
    return exec;
  }

  absl::Status DestroyGraphExec(GraphExec exec) override {
    return ToStatus("cudaGraphExecDestroy", cudaGraphExecDestroy(exec));
  }

  absl::Status LaunchGraph(GraphExec exec, Stream stream) override {
    return ToStatus("cudaGraphLaunch", cudaGraphLaunch(exec, stream));
  }
};

}  // namespace

Driver& RuntimeDriver() {
  static auto* driver = new Runtime();
  return *driver;
}

}  // namespace loadline::executor::cuda
