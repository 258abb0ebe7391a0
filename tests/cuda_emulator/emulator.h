// Runs CUDA kernels on the CPU, for tests without a GPU.
//
// The kernel files are compiled as C++ against the headers of this folder. A
// launch runs every block, one after the other; a block's threads are fibers
// that give way at barriers and warp exchanges only. What a GPU would not show
// is an error here: a barrier that not all threads of a block reach, or in
// different places; an exchange that misses a lane of its warp. In a random
// order of blocks and threads, a race that wants a barrier changes results.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_EMULATOR_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_EMULATOR_H_

#include <cstdint>

namespace cuda_emulator {

// The order in which blocks, and between two barriers threads, run: ascending
// for 0, else random from this seed.
void SetOrder(uint64_t seed);

// How many launches and threads ran so far, in this process.
struct Counts {
  int64_t launches = 0;
  int64_t threads = 0;
};
Counts CountsSoFar();

}  // namespace cuda_emulator

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_EMULATOR_H_
