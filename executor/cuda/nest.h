// A loop nest on the device: maps a row-major position to the offset in each of
// several strided tensors.
#ifndef LOADLINE_EXECUTOR_CUDA_NEST_H_
#define LOADLINE_EXECUTOR_CUDA_NEST_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "executor/ops/loop_nest.h"
#include "executor/ops/prepare.h"

namespace loadline::executor::cuda {

// Division by a number known in advance: two instructions instead of dozens if
// dividend and divisor are below 2^31. Source: T. Granlund, P. Montgomery,
// "Division by Invariant Integers using Multiplication", PLDI 1994.
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(divisor) {
    if (divisor <= 0 || divisor > std::numeric_limits<int32_t>::max()) return;
    while ((int64_t{1} << shift_) < divisor) ++shift_;
    multiplier_ = static_cast<uint32_t>(
        ((uint64_t{1} << 32) *
         ((uint64_t{1} << shift_) - static_cast<uint64_t>(divisor))) /
            static_cast<uint64_t>(divisor) +
        1);
  }

  __device__ int64_t Divide(int64_t n) const {
    if (multiplier_ == 0 || n >= (int64_t{1} << 31)) return n / divisor_;
    const auto small = static_cast<uint32_t>(n);
    return (__umulhi(small, multiplier_) + small) >> shift_;
  }

 private:
  int64_t divisor_ = 1;
  uint32_t multiplier_ = 0;  // 0: too large, use ordinary division
  uint32_t shift_ = 0;
};

inline constexpr int kMostDims = 8;

template <int kTensors>
struct Nest {
  int rank = 0;
  int64_t elements = 1;
  int64_t dims[kMostDims];
  Divider dividers[kMostDims];
  int64_t strides[kTensors][kMostDims];

  __host__ __device__ int64_t inner() const { return dims[rank - 1]; }
  __host__ __device__ int64_t inner_stride(int tensor) const {
    return strides[tensor][rank - 1];
  }

  __device__ void Offsets(int64_t position,
                          int64_t (&offsets)[kTensors]) const {
    for (int t = 0; t < kTensors; ++t) offsets[t] = 0;
    for (int d = rank - 1; d > 0; --d) {
      const int64_t rest = dividers[d].Divide(position);
      const int64_t index = position - rest * dims[d];
      for (int t = 0; t < kTensors; ++t) offsets[t] += index * strides[t][d];
      position = rest;
    }
    for (int t = 0; t < kTensors; ++t) offsets[t] += position * strides[t][0];
  }
};

// Unimplemented: more dimensions remain than a kernel supports.
template <int kTensors>
absl::StatusOr<Nest<kTensors>> MakeNest(const executor::Prepare& p,
                                        const LoopNest<kTensors>& loops) {
  Nest<kTensors> nest;
  nest.rank = static_cast<int>(loops.dims().size());
  if (nest.rank > kMostDims) {
    return absl::UnimplementedError(
        p.Invalid("more than 8 dimensions that cannot be merged").message());
  }
  nest.elements = loops.elements();
  for (int d = 0; d < nest.rank; ++d) {
    nest.dims[d] = loops.dims()[d];
    nest.dividers[d] = Divider(nest.dims[d]);
    for (int t = 0; t < kTensors; ++t) {
      nest.strides[t][d] = loops.strides(t)[d];
    }
  }
  return nest;
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_NEST_H_
