// A stable radix sort of positions by a small key, on the device: least
// significant digit first, 8 bits at a time. All counters are integers and
// equal keys keep their order, so the result does not depend on timing.
#ifndef LOADLINE_EXECUTOR_CUDA_SORT_H_
#define LOADLINE_EXECUTOR_CUDA_SORT_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "executor/cuda/cuda_kernel.h"

namespace loadline::executor::cuda {

// A key with the position it came from.
struct Keyed {
  uint32_t key;
  uint32_t position;
};

class StableSort {
 public:
  // For `count` < 2^31 items with keys in [0, keys).
  StableSort(int64_t count, int64_t keys);

  // Bytes of two lists of items, and counters.
  int64_t workspace_bytes() const;
  // Positions in the workspace: of the items that the caller writes, and of the
  // sorted ones afterwards.
  Keyed* Unsorted(std::byte* workspace) const;
  const Keyed* Sorted(std::byte* workspace) const;

  absl::Status Enqueue(std::byte* workspace, cudaStream_t stream) const;

 private:
  Keyed* List(std::byte* workspace, int i) const;

  int64_t count_;
  int64_t tiles_;
  int passes_ = 0;
};

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_SORT_H_
