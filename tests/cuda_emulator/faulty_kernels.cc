// Run by tests/conformance/cuda_emulator_test.cc.
#include "tests/cuda_emulator/faulty_kernels.h"

#include "executor/cuda/launch.h"

namespace cuda_emulator {
namespace {

using loadline::executor::cuda::LaunchKernel;

constexpr int kThreads = 64;

__global__ void DivergentBarrier() {
  if (threadIdx.x < kThreads / 2) __syncthreads();
}

__global__ void TwoBarriers() {
  if (threadIdx.x < kThreads / 2) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void MissingLane() {
  if (threadIdx.x != 7) __shfl_xor_sync(0xffffffffu, 1, 1);
}

__global__ void Nothing() {}

__global__ void Neighbours(bool barrier, int* read) {
  __shared__ int numbers[kThreads];
  const int i = static_cast<int>(threadIdx.x);
  numbers[i] = -1;
  __syncthreads();
  numbers[i] = i;
  if (barrier) __syncthreads();
  read[i] = numbers[(i + 1) % kThreads];
}

}  // namespace

absl::Status RunDivergentBarrier() {
  return LaunchKernel(DivergentBarrier, 2, kThreads, 0, nullptr);
}
absl::Status RunTwoBarriers() {
  return LaunchKernel(TwoBarriers, 2, kThreads, 0, nullptr);
}
absl::Status RunMissingLane() {
  return LaunchKernel(MissingLane, 2, kThreads, 0, nullptr);
}
absl::Status RunTooLargeBlock() {
  return LaunchKernel(Nothing, 1, 1025, 0, nullptr);
}
absl::Status RunNeighbours(bool barrier, std::vector<int>& read) {
  read.assign(kThreads, -2);
  return LaunchKernel(Neighbours, 1, kThreads, 0, nullptr, barrier,
                      read.data());
}

}  // namespace cuda_emulator
