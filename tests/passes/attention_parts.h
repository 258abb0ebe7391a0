// Parts of a plain attention, which the tests of FuseAttention put together in
// many forms.
#ifndef LOADLINE_TESTS_PASSES_ATTENTION_PARTS_H_
#define LOADLINE_TESTS_PASSES_ATTENTION_PARTS_H_

#include <cstdint>
#include <string>

#include "models/graph.h"
#include "tests/passes/graphs.h"

namespace loadline::passes {

inline constexpr int64_t kLength = 5;  // of both sequences

// Queries and keys f32[2, kLength, 4], values f32[2, kLength, 3].
struct Parts {
  explicit Parts(Builder& b)
      : q(b.Input("q", {2, kLength, 4})),
        k(b.Input("k", {2, kLength, 4})),
        v(b.Input("v", {2, kLength, 3})) {}
  models::ValueId q, k, v;
};

// The last two of three dimensions exchanged.
models::ValueId Swapped(Builder& b, models::ValueId k);
// Over the keys.
models::ValueId Softmax(Builder& b, models::ValueId scores);

// A constant f32[1, length, length]: 0 up to the diagonal, `hidden` after it.
models::ValueId CausalMask(Builder& b, float hidden, int64_t length = kLength);
// A constant bool[kLength, kLength]: `visible` up to the diagonal, the opposite
// after it.
models::ValueId CausalCondition(Builder& b, bool visible);

// Makes Relu(y) the graph's output, runs FuseAttention and returns the graph as
// text. The graph must verify.
std::string Fused(Builder& b, models::ValueId y);

}  // namespace loadline::passes

#endif  // LOADLINE_TESTS_PASSES_ATTENTION_PARTS_H_
