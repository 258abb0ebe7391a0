// Kernels with mistakes that the emulator must detect.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_FAULTY_KERNELS_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_FAULTY_KERNELS_H_

#include <vector>

#include "absl/status/status.h"

namespace cuda_emulator {

// Half of a block does not reach the barrier.
absl::Status RunDivergentBarrier();
// The halves of a block wait at two barriers.
absl::Status RunTwoBarriers();
// One lane of a warp does not take part in a shuffle.
absl::Status RunMissingLane();
// More threads than a block may have.
absl::Status RunTooLargeBlock();
// Every thread writes its number to shared memory and reads its neighbour's,
// with or without a barrier in between; `read` gets the results.
absl::Status RunNeighbours(bool barrier, std::vector<int>& read);

}  // namespace cuda_emulator

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_FAULTY_KERNELS_H_
