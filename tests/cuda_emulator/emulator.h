// Runs CUDA kernels on the CPU, for tests without a GPU.
//
// The kernel files are compiled as C++ with the headers of this folder. A
// launch runs its blocks one after the other; a block's threads are fibers that
// switch only at barriers and warp exchanges. Mistakes that a GPU may hide are
// errors here: a barrier that some threads of a block do not reach or reach
// elsewhere, and an exchange without all lanes of its warp. With a random order
// of blocks and threads, a race for lack of a barrier changes results.
#ifndef LOADLINE_TESTS_CUDA_EMULATOR_EMULATOR_H_
#define LOADLINE_TESTS_CUDA_EMULATOR_EMULATOR_H_

#include <cstdint>

namespace cuda_emulator {

// Order in which blocks run, and threads between two barriers: ascending for 0,
// otherwise random from this seed.
void SetOrder(uint64_t seed);

// Launches and threads run so far in this process.
struct Counts {
  int64_t launches = 0;
  int64_t threads = 0;
};
Counts CountsSoFar();

}  // namespace cuda_emulator

#endif  // LOADLINE_TESTS_CUDA_EMULATOR_EMULATOR_H_
