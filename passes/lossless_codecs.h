// Which values can be stored in fewer bytes without losing a bit, by what is
// known of them before any step runs.
#ifndef LOADLINE_PASSES_LOSSLESS_CODECS_H_
#define LOADLINE_PASSES_LOSSLESS_CODECS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"

namespace loadline::passes {

// For each value its codec of the fewest bytes (models/ops/codec.h), or "":
//
//   bits       bool: masks, results of comparisons
//   u8 to i32  integers whose range is known: positions from MaxPool and TopK,
//              and inputs that an operator checks (indices of Gather, targets
//              of a cross-entropy)
//   bf16       f32 that was cast from bf16, also where elements were moved or
//              the largest chosen since
//
// Views have none: they are stored with the value whose bytes they share. A
// codec checks what it stores, so that an input outside of its range is an
// error as it is without the codec.
std::vector<std::string> LosslessCodecs(const models::Graph& graph);

// Both ends included.
struct IntegerRange {
  int64_t least = 0;
  int64_t most = 0;
};

// For each value the range of its integers, where it is known.
std::vector<std::optional<IntegerRange>> IntegerRanges(
    const models::Graph& graph);

}  // namespace loadline::passes

#endif  // LOADLINE_PASSES_LOSSLESS_CODECS_H_
