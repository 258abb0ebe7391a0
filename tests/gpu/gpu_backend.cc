// Wraps a kernel for device memory as one for host memory. It takes the
// operands' sizes from the graph; two operands with the same host address share
// memory.
#include "tests/gpu/gpu_backend.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "executor/cuda/cuda_kernel.h"
#include "executor/cuda/handles.h"
#include "executor/cuda/kernels.h"
#include "executor/cuda/runtime_driver.h"
#include "planner/base/status_macros.h"

namespace loadline::conformance {
namespace {

namespace cuda = executor::cuda;
using cuda::CopyKind;

constexpr int64_t kGuardBytes = 256;
constexpr auto kCanary = std::byte{0xC7};

int64_t RoundUp(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// A block of device memory, laid out and filled on the host first.
class Block {
 public:
  // Reserves `bytes` bytes between canaries; returns their offset.
  int64_t Add(int64_t bytes) {
    const auto offset = static_cast<int64_t>(image_.size()) + kGuardBytes;
    image_.resize(offset + RoundUp(bytes) + kGuardBytes, kCanary);
    parts_.emplace_back(offset, bytes);
    return offset;
  }
  std::byte* at(int64_t offset) { return image_.data() + offset; }
  int64_t bytes() const { return static_cast<int64_t>(image_.size()); }
  bool Intact() const {
    std::vector<bool> inside(image_.size(), false);
    for (const auto& [offset, bytes] : parts_) {
      std::fill_n(inside.begin() + offset, bytes, true);
    }
    for (size_t i = 0; i < image_.size(); ++i) {
      if (!inside[i] && image_[i] != kCanary) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> image_;
  std::vector<std::pair<int64_t, int64_t>> parts_;
};

class OnGpu final : public executor::Kernel {
 public:
  OnGpu(std::unique_ptr<executor::Kernel> kernel, const models::Graph& graph,
        const models::Node& node)
      : kernel_(std::move(kernel)) {
    const auto bytes = [&](models::ValueId id) {
      return id == models::kNoValue ? 0 : graph.value(id).type.bytes();
    };
    for (models::ValueId id : node.inputs) input_bytes_.push_back(bytes(id));
    for (models::ValueId id : node.outputs) output_bytes_.push_back(bytes(id));
  }

  int64_t workspace_bytes() const override {
    return kernel_->workspace_bytes();
  }
  std::vector<std::string> algorithms() const override {
    return kernel_->algorithms();
  }

  absl::Status Run(const executor::KernelArgs& args) override {
    Block block;
    std::map<const std::byte*, int64_t> offsets;
    const auto place = [&](const std::byte* host, int64_t bytes) {
      if (host == nullptr || offsets.count(host) > 0) return;
      offsets[host] = block.Add(bytes);
      std::memcpy(block.at(offsets[host]), host, bytes);
    };
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      place(args.inputs[i], input_bytes_[i]);
    }
    for (size_t i = 0; i < args.outputs.size(); ++i) {
      place(args.outputs[i], output_bytes_[i]);
    }
    const int64_t workspace = block.Add(workspace_bytes());
    const int64_t scalars = block.Add(sizeof(executor::StepScalars));
    std::memcpy(block.at(scalars), args.scalars, sizeof(*args.scalars));
    const int64_t word = block.Add(sizeof(cuda::DataErrorWord));
    std::memcpy(block.at(word), &cuda::kNoDataError,
                sizeof(cuda::kNoDataError));

    cuda::Driver& driver = cuda::RuntimeDriver();
    LOADLINE_ASSIGN_OR_RETURN(std::byte* const base,
                              driver.Malloc(block.bytes()));
    const cuda::OwnedMemory memory(driver, base);
    LOADLINE_ASSIGN_OR_RETURN(const cuda::Stream stream, driver.CreateStream());
    const cuda::OwnedStream owned_stream(driver, stream);
    LOADLINE_RETURN_IF_ERROR(driver.Copy(base, block.at(0), block.bytes(),
                                         CopyKind::kToDevice, stream));
    std::vector<const std::byte*> inputs;
    for (const std::byte* host : args.inputs) {
      inputs.push_back(host == nullptr ? nullptr : base + offsets[host]);
    }
    std::vector<std::byte*> outputs;
    for (std::byte* host : args.outputs) {
      outputs.push_back(host == nullptr ? nullptr : base + offsets[host]);
    }
    auto& kernel = static_cast<cuda::CudaKernel&>(*kernel_);
    LOADLINE_RETURN_IF_ERROR(kernel.Enqueue(
        {.inputs = inputs,
         .outputs = outputs,
         .workspace = workspace_bytes() > 0 ? base + workspace : nullptr,
         .scalars = reinterpret_cast<executor::StepScalars*>(base + scalars)},
        {.stream = stream,
         .data_error = reinterpret_cast<cuda::DataErrorWord*>(base + word)}));
    LOADLINE_RETURN_IF_ERROR(driver.Copy(block.at(0), base, block.bytes(),
                                         CopyKind::kToHost, stream));
    LOADLINE_RETURN_IF_ERROR(driver.SynchronizeStream(stream));
    if (!block.Intact()) {
      return absl::InternalError("a kernel wrote outside its operands");
    }
    for (size_t i = 0; i < args.outputs.size(); ++i) {
      if (args.outputs[i] == nullptr) continue;
      std::memcpy(args.outputs[i], block.at(offsets[args.outputs[i]]),
                  output_bytes_[i]);
    }
    cuda::DataErrorWord error;
    std::memcpy(&error, block.at(word), sizeof(error));
    return error == cuda::kNoDataError
               ? absl::OkStatus()
               : kernel.DescribeDataError(
                     cuda::UnpackDataError(error).position);
  }

 private:
  std::unique_ptr<executor::Kernel> kernel_;
  std::vector<int64_t> input_bytes_;
  std::vector<int64_t> output_bytes_;
};

absl::StatusOr<std::unique_ptr<executor::Kernel>> PrepareOnGpu(
    const models::Graph& graph, const models::Node& node) {
  LOADLINE_RETURN_IF_ERROR(cuda::RuntimeDriver().SetDevice(0));
  LOADLINE_ASSIGN_OR_RETURN(std::unique_ptr<executor::Kernel> kernel,
                            executor::PrepareCudaKernel(graph, node));
  return std::make_unique<OnGpu>(std::move(kernel), graph, node);
}

absl::Status RunOnGpu(executor::Kernel& kernel,
                      const executor::KernelArgs& args) {
  return kernel.Run(args);
}

}  // namespace

const Backend kGpu = {PrepareOnGpu, RunOnGpu};

}  // namespace loadline::conformance
