// LaunchKernel replaces <<<>>> by a function call, so that a kernel file is
// plain C++: tests compile it with other headers under the toolkit's names and
// run it without a GPU.
#ifndef LOADLINE_EXECUTOR_CUDA_LAUNCH_H_
#define LOADLINE_EXECUTOR_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "executor/cuda/data_errors.h"

namespace loadline::executor::cuda {

// Default number of threads of a block.
inline constexpr int kBlock = 256;

// Enough blocks to fill the largest GPU several times over; kernels with more
// elements loop. The number never depends on the GPU, so results do not either.
// Tests set it low, so that small tensors exercise the loops.
#ifdef LOADLINE_MOST_BLOCKS
inline constexpr int64_t kMostBlocks = LOADLINE_MOST_BLOCKS;
#else
inline constexpr int64_t kMostBlocks = 132 * 16;
#endif

inline absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, ": ", cudaGetErrorString(error)));
}

// Blocks for a loop of `threads` threads; at least one.
inline unsigned GridFor(int64_t threads, int64_t block = kBlock) {
  return static_cast<unsigned>(
      std::clamp<int64_t>((threads + block - 1) / block, 1, kMostBlocks));
}

template <typename... Parameters, typename... Arguments>
absl::Status LaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                          size_t shared_bytes, cudaStream_t stream,
                          Arguments&&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return CudaStatus(cudaLaunchKernelEx(&config, kernel,
                                       std::forward<Arguments>(arguments)...),
                    "launching a kernel");
}

__device__ inline void ReportDataError(const DataErrorSink& sink,
                                       int64_t position) {
  atomicMin(sink.word,
            (static_cast<DataErrorWord>(sink.launch) << kPositionBits) |
                static_cast<DataErrorWord>(position));
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_LAUNCH_H_
