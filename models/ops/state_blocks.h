// Optimizer states in 8 bits: how their tensors are laid out. The numbers that
// codes stand for are in executor/ops/state_code.h.
//
// A state of n numbers is a u8[blocks,260] of ceil(n / 256) blocks. A block
// belongs to 256 consecutive numbers of the flat parameter: first their largest
// absolute value, an f32, then one code for each; codes after the last number
// are 0. Zero bytes are a state of zeros. A range of whole blocks is one range
// of bytes, so a state can be cut between any two blocks.
//
// Blocks and codes: T. Dettmers, M. Lewis, S. Shleifer, L. Zettlemoyer, "8-bit
// Optimizers via Block-wise Quantization", ICLR 2022.
#ifndef LOADLINE_MODELS_OPS_STATE_BLOCKS_H_
#define LOADLINE_MODELS_OPS_STATE_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "models/types.h"

namespace loadline::models {

inline constexpr int64_t kStateBlockElements = 256;
inline constexpr int64_t kStateScaleBytes = 4;
inline constexpr int64_t kStateBlockBytes =
    kStateScaleBytes + kStateBlockElements;

// The type of a state of `elements` numbers in 8 bits.
inline TensorType StateBlocksType(int64_t elements) {
  return {DType::kU8,
          {(elements + kStateBlockElements - 1) / kStateBlockElements,
           kStateBlockBytes}};
}

// Whether a state's type is one of blocks; else it has its numbers' own type.
inline bool IsStateBlocks(const TensorType& type) {
  return type.dtype == DType::kU8 && type.rank() == 2 &&
         type.dims[1] == kStateBlockBytes;
}

// How many numbers a state holds, of which at most `most` exist.
inline int64_t StateElements(const TensorType& type, int64_t most) {
  return IsStateBlocks(type)
             ? std::min(type.dims[0] * kStateBlockElements, most)
             : type.elements();
}

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_OPS_STATE_BLOCKS_H_
