// Reads and writes a block of an optimizer state in 8 bits
// (models/ops/state_blocks.h) by one warp. The first state of an optimizer has
// signed codes, and the second unsigned ones.
#ifndef LOADLINE_EXECUTOR_CUDA_STATE_BLOCKS_H_
#define LOADLINE_EXECUTOR_CUDA_STATE_BLOCKS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "executor/cuda/numbers.h"
#include "executor/cuda/team.h"
#include "executor/ops/state_code.h"
#include "models/ops/state_blocks.h"

namespace loadline::executor::cuda {

// Codes of one 32-bit access; blocks begin at multiples of four bytes.
inline constexpr int kStateWidth = 4;
// Numbers of a block that a thread holds.
inline constexpr int kStatePerThread =
    static_cast<int>(models::kStateBlockElements) / kWarp;

// The position in the block of this thread's number k: neighbouring threads
// have neighbouring packs.
__device__ inline int StatePosition(int k) {
  return k / kStateWidth * (kWarp * kStateWidth) +
         TeamThread<kWarp>() * kStateWidth + k % kStateWidth;
}

// The number of each code, of both states; in shared memory.
struct StateNumbers {
  float of_code[2][kStateCodes];
};
__device__ inline void MakeStateNumbers(StateNumbers& numbers) {
  for (int code = static_cast<int>(threadIdx.x); code < kStateCodes;
       code += static_cast<int>(blockDim.x)) {
    numbers.of_code[0][code] = NumberOfCode<SignedCode>(code);
    numbers.of_code[1][code] = NumberOfCode<UnsignedCode>(code);
  }
}

struct StateBlock {
  float numbers[kStatePerThread];
};

// The block of element `at`, a multiple of kStateBlockElements.
__device__ inline StateBlock ReadStateBlock(const StateNumbers& numbers,
                                            int state, const uint8_t* from,
                                            int64_t at) {
  from += at / models::kStateBlockElements * models::kStateBlockBytes;
  const float scale = *reinterpret_cast<const float*>(from);
  StateBlock block;
#pragma unroll
  for (int k = 0; k < kStatePerThread; k += kStateWidth) {
    const auto codes = LoadPack<kStateWidth>(from + models::kStateScaleBytes +
                                             StatePosition(k));
#pragma unroll
    for (int i = 0; i < kStateWidth; ++i) {
      block.numbers[k + i] = numbers.of_code[state][codes.at[i]] * scale;
    }
  }
  return block;
}

// `block` has zeros after the state's last number. All lanes must call.
__device__ inline void WriteStateBlock(const StateBlock& block, int state,
                                       int64_t at, uint8_t* to) {
  to += at / models::kStateBlockElements * models::kStateBlockBytes;
  float scale = 0;
#pragma unroll
  for (float number : block.numbers) scale = fmaxf(scale, fabsf(number));
  scale = TeamReduce<kWarp>(scale, Maximum());
  if (TeamThread<kWarp>() == 0) *reinterpret_cast<float*>(to) = scale;
#pragma unroll
  for (int k = 0; k < kStatePerThread; k += kStateWidth) {
    Pack<uint8_t, kStateWidth> codes;
#pragma unroll
    for (int i = 0; i < kStateWidth; ++i) {
      const float share = ShareOfScale(block.numbers[k + i], scale);
      codes.at[i] =
          static_cast<uint8_t>(state == 0 ? CodeOfNumber<SignedCode>(share)
                                          : CodeOfNumber<UnsignedCode>(share));
    }
    StorePack(to + models::kStateScaleBytes + StatePosition(k), codes);
  }
}

}  // namespace loadline::executor::cuda

#endif  // LOADLINE_EXECUTOR_CUDA_STATE_BLOCKS_H_
